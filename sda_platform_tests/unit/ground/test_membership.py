"""Membership: reports of simulated Serf agents, the merge of their views, the registry, and what people are shown."""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.clock import MissionClock
from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT, STATUS_NAMES, MembershipEvent
from sda_platform.ground.assets import shown_fleet
from sda_platform.ground.checks import members_are_alive, members_are_registered, views_agree
from sda_platform.ground.current_fleet import current_fleet
from sda_platform.ground.membership import Membership
from sda_platform.ground.membership_states import VIEW_EXPIRES_S, decode, disputed, merged
from sda_platform.ground.reporting import REPORT_S, ViewReporter, change_registry
from sda_platform.ground.serf import SerfAgent, SerfMember
from sda_platform.ground.tables import FLEET_MEMBERSHIP, MEMBERSHIP_FEED, MEMBERSHIP_OBSERVATIONS
from sda_platform.landing.record_rows import pending_rows
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9
NAMES = ("a", "b", "c")


def claim(
    observer: str, member: str, status: int, *, generation: int = 1, number: int = 1, after_s: float = 0.0
) -> dict[str, Any]:
    time_ns = START_NS + round(after_s * SECOND_NS)
    return vars(MembershipEvent(observer, member, STATUS_NAMES[status], time_ns, generation, number))


def by_member(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["member"]: row for row in rows}


def everybody(status: int, *, number: int = 1, after_s: float = 0.0) -> list[dict[str, Any]]:
    """All of `NAMES` hold themselves and each other for ``status``."""
    return [claim(o, m, status, number=number, after_s=after_s) for o in NAMES for m in NAMES]


def test_of_several_views_the_newest_generation_and_then_the_worst_status_holds__TG5_TG12() -> None:
    rows = by_member(merged([], [*everybody(ALIVE), claim("a", "c", DEAD, number=2, after_s=1)]))
    assert (rows["c"]["status"], rows["c"]["alive_views"], rows["c"]["other_views"]) == ("failed", 2, 1)
    assert rows["c"]["since_time_ns"] == START_NS + SECOND_NS
    assert list(disputed(rows.values())) == ["c is alive for 2 observers, not for 1"]
    refuted = claim("c", "c", ALIVE, generation=2, number=2, after_s=2)
    (row,) = [each for each in merged(rows.values(), [refuted]) if each["member"] == "c"]
    assert (row["status"], row["generation"], row["since_time_ns"]) == ("alive", 2, refuted["event_time_ns"])


def test_who_leaves_on_purpose_has_not_failed__TG25() -> None:
    seen = [claim("a", "c", LEFT, number=2, after_s=1), claim("b", "c", DEAD, number=2, after_s=2)]
    row = by_member(merged([], [*everybody(ALIVE), *seen]))["c"]
    assert row["status"] == "left"
    assert list(disputed([row])) == []


def test_an_observer_that_reports_no_more_has_no_vote() -> None:
    before = merged([], [*everybody(ALIVE), claim("a", "c", DEAD, number=2)])
    assert by_member(before)["c"]["status"] == "failed"
    later = [claim(name, name, ALIVE, number=3, after_s=VIEW_EXPIRES_S + 1) for name in ("b", "c")]
    rows = by_member(merged(before, later))
    assert (rows["c"]["status"], rows["c"]["alive_views"]) == ("alive", 2)
    assert rows["c"]["since_time_ns"] == START_NS


EVENTS = st.lists(
    st.builds(
        lambda observer, member, status, generation, number: claim(
            observer, member, status, generation=generation, number=number, after_s=number
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(range(4)),
        st.integers(0, 2),
        st.integers(1, 300),
    ),
    max_size=12,
    unique_by=lambda event: (event["observer"], event["number"]),
)


@given(EVENTS, st.integers(0, 12), st.randoms(use_true_random=False))
def test_the_fleet_depends_neither_on_batches_nor_on_order_nor_on_repeats__TG17(
    events: list[dict[str, Any]], cut: int, chance: random.Random
) -> None:
    whole = merged([], events)
    shuffled = chance.sample(events, len(events))
    assert merged([], [*shuffled, *events]) == whole
    ordered = sorted(events, key=lambda event: event["number"])
    first = merged([], ordered[:cut])
    second = merged(first, ordered[cut:])
    assert by_member([*first, *second]) == by_member(whole)
    assert merged(whole, events) == [], "what is known changes nothing"


def test_gossip_alone_admits_nobody__TG25(tmp_path: Path) -> None:
    zone = LandingZone(str(tmp_path / "landing"), MEMBERSHIP_FEED)
    rows = merged([], everybody(ALIVE))
    assert not any(row["is_registered"] for row in rows)
    change_registry(zone, START_NS, "ann", ["a", "d"], admits=True)
    change_registry(zone, START_NS + 1, "ann", ["a"], admits=False)
    fleet = by_member(merged(rows, pending_rows(zone, decode)))
    assert {name: row["is_registered"] for name, row in fleet.items()} == {"d": True}
    assert fleet["d"]["status"] is None, "it belongs, and was never seen"


@dataclass
class SimulatedSerf:
    """What `SerfAgent` answers, of an agent ``own``."""

    own: str = "a"
    seen: dict[str, SerfMember] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.starts()

    def starts(self) -> None:
        """The agent starts anew and has no tag."""
        self.holds(self.own, ALIVE)

    def holds(self, name: str, status: int, generation: int = 0) -> None:
        self.seen = {**self.seen, name: SerfMember(name, Membership(generation, status), "10.0.0.1:7946", "station")}

    def name(self) -> str:
        return self.own

    def members(self) -> dict[str, SerfMember]:
        return self.seen

    def set_generation(self, generation: int) -> None:
        self.holds(self.own, ALIVE, generation)


@dataclass
class Reported:
    """A reporter of a simulated agent, and what it has sealed."""

    home: Path
    serf: SimulatedSerf = field(default_factory=SimulatedSerf)

    @property
    def zone(self) -> LandingZone:
        return LandingZone(str(self.home / "landing"), MEMBERSHIP_FEED)

    def reporter(self) -> ViewReporter:
        clock: Callable[[], int] = MissionClock(START_NS, 0, 0.0).now_ns
        return ViewReporter(self.serf, self.zone, self.home / "fleet", clock)  # type: ignore[arg-type] # simulated

    def claims(self) -> list[tuple[str, str, int]]:
        rows = sorted(pending_rows(self.zone, decode), key=lambda row: row["number"])
        return [(row["member"], row["event"], row["generation"]) for row in rows]


def test_an_agent_reports_changes_at_once_and_itself_at_intervals(tmp_path: Path) -> None:
    reported = Reported(tmp_path)
    reporter = reported.reporter()
    reported.serf.holds("b", ALIVE, 4)
    assert [reporter.round(second) for second in (0.0, 1.0, REPORT_S - 1, REPORT_S, REPORT_S + 1)] == [2, 0, 0, 1, 0]
    reported.serf.holds("b", DEAD, 4)
    assert reporter.round(REPORT_S + 2) == 1
    assert reported.claims() == [("a", "alive", 1), ("b", "alive", 4), ("a", "alive", 1), ("b", "failed", 4)]


def test_a_restarted_agent_goes_on_above_its_old_generation__TG23(tmp_path: Path) -> None:
    reported = Reported(tmp_path)
    reporter = reported.reporter()
    reporter.round(0.0)
    reported.serf.starts()
    reporter.round(1.0)
    assert reported.serf.seen["a"].claim.generation == reporter.generation == 2
    again = reported.reporter()
    again.round(0.0)
    assert again.generation == 3
    assert [generation for _, _, generation in reported.claims()] == [1, 2, 3]
    (row,) = merged([], pending_rows(reported.zone, decode))
    assert row["generation"] == 3


def test_the_fleet_is_shown_with_reports_that_are_not_yet_consumed(tmp_path: Path) -> None:
    lake, reported = lake_at(tmp_path / "lake"), Reported(tmp_path)
    assert current_fleet(lake, str(tmp_path / "landing")) == []
    observed = [claim(name, name, ALIVE) for name in ("b", "c")]
    commit(lake, MEMBERSHIP_OBSERVATIONS, [{**event, "record_number": n} for n, event in enumerate(observed)])
    rows = merged([], observed)
    commit(lake, FLEET_MEMBERSHIP, rows, windows=[genesis_window(MEMBERSHIP_OBSERVATIONS)])
    landed = [claim("b", "c", DEAD, number=2)]
    commit(lake, MEMBERSHIP_OBSERVATIONS, landed)
    reported.reporter().round(0.0)
    fleet = by_member(current_fleet(lake, str(tmp_path / "landing")))
    assert {name: row["status"] for name, row in fleet.items()} == {"a": "alive", "b": "alive", "c": "failed"}


def test_checks_name_who_failed_who_is_disputed_and_who_is_not_registered(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    admitted = [vars(MembershipEvent("ann", name, "admitted", START_NS)) for name in ("a", "c", "d")]
    rows = merged([], [*everybody(ALIVE), claim("a", "c", DEAD, number=2), *admitted])
    commit(lake, FLEET_MEMBERSHIP, rows, windows=[genesis_window(MEMBERSHIP_OBSERVATIONS)])
    resource = LakeResource(uri=lake.uri, home=str(tmp_path), spark=SparkResource(remote="local"))
    expected = {
        members_are_alive: "c (failed); d (never seen)",
        views_agree: "c is alive for 2 observers, not for 1",
        members_are_registered: "b",
    }
    for check, description in expected.items():
        result = check(resource)
        assert isinstance(result, dg.AssetCheckResult)
        assert (result.passed, result.description) == (False, description)


def test_a_materialization_shows_counts_the_worst_first_and_the_views() -> None:
    admitted = [vars(MembershipEvent("ann", name, "admitted", START_NS)) for name in NAMES]
    facts = shown_fleet(merged([], [*everybody(ALIVE), claim("a", "c", DEAD, number=2), *admitted]))
    assert (facts["now_alive"], facts["now_failed"], facts["disputed"]) == (2, 1, 1)
    assert facts["members"].md_str.splitlines()[2].startswith("| c ")
    assert "data:image/png;base64," in facts["views"].md_str
    assert shown_fleet([]) == {}


def test_serf_that_is_absent_or_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sda_platform.lake.errors import Unavailable

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="apt-get install serf"):
        SerfAgent("127.0.0.1:9").members()
    program = tmp_path / "serf"
    program.write_text("#!/bin/sh\necho connection refused >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9 does not answer: connection refused"):
        SerfAgent("127.0.0.1:9").members()


def test_members_of_serf_are_read_with_their_generation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers = [
        {"name": "a", "addr": "10.0.0.1:7946", "tags": {"generation": "7", "role": "station"}, "status": "alive"},
        {"name": "b", "addr": "10.0.0.2:7946", "tags": None, "status": "leaving"},
        {"name": "c", "addr": "10.0.0.3:7946", "tags": {"generation": "x"}, "status": "none"},
    ]
    program = tmp_path / "serf"
    program.write_text(f"#!/bin/sh\necho '{json.dumps({'members': answers})}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert SerfAgent("127.0.0.1:9").members() == {
        "a": SerfMember("a", Membership(7, ALIVE), "10.0.0.1:7946", "station"),
        "b": SerfMember("b", Membership(0, LEFT), "10.0.0.2:7946", ""),
    }

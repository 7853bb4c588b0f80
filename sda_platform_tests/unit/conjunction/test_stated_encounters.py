"""Received CDMs above the levels of the policy are alerts by rule: one for each encounter, whoever found it first."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.tables import EPHEMERIDES
from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.cdm_comparison import comparisons_with
from sda_platform.conjunction.cdm_decoding import decode
from sda_platform.conjunction.checks import alerts_follow_assessments
from sda_platform.conjunction.identity import SLOT_NS, event_ids
from sda_platform.conjunction.resource import AlertingResource
from sda_platform.conjunction.review import due_events, events_to_judge
from sda_platform.conjunction.stated_encounters import as_rows, named_by_messages, statements
from sda_platform.conjunction.superseded_messages import path_changes
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SAME_EVENT_NS,
)
from sda_platform.conjunction.transforms import ASSESSMENT_COLUMNS, alert_corrections
from sda_platform.conjunction.unalerted_cdms import unalerted_cdms
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.executors import Stored
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.selections import OneOf
from sda_platform.orbits.earth_orientation import states_in_teme
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.received_cdms import Told, messages_of
from sda_platform_tests.support.segments import START_NS, after, described

SECOND_NS = 10**9
TCA_NS = (after(48 * 3600) // SLOT_NS) * SLOT_NS + SLOT_NS // 2
DATA = Path(__file__).parents[2] / "data"
PAIR = (25544, 270387)


class Desk:
    """A lake with messages and our own events, and its alerts."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root, self.settings, self.received = root, settings, 0
        self.lake = lake_at(root)

    def receives(self, *messages: Told | bytes, segment_format: str = "cdm-kvn") -> None:
        rows = []
        for message in messages:
            data = messages_of([message]) if isinstance(message, Told) else message
            for row in decode(data, described(data, "messages", segment_format=segment_format)).to_pylist():
                self.received += 1
                place = {"segment_sha256": f"{self.received:064x}", "received_time_ns": START_NS + self.received}
                rows.append({**place, "error_kind": None, **row})
        commit(self.lake, RECEIVED_CDMS, rows)

    def screens(self, event_id: str, pc: float, *, tca_ns: int = TCA_NS, pair: tuple[int, int] = PAIR) -> None:
        """Our screening finds the event, and assesses it."""
        known = {
            "event_id": event_id, "sequence": 0, "op": "insert", "norad_id_1": pair[0], "norad_id_2": pair[1],
            "tca_time_ns": tca_ns,
        }  # fmt: skip
        commit(self.lake, CONJUNCTION_CANDIDATES, [known])
        assessed = {"collision_probability": pc, "miss_distance_km": 0.3, "risk": "green", "is_2d_valid": True}
        sources = {"state_source_1": "element_set", "state_source_2": "element_set", "mahalanobis_distance": 5.0}
        commit(self.lake, CONJUNCTION_ASSESSMENTS, [{**known, **assessed, **sources, "maximum_sigma_scale": 2.0}])

    def tracks_a_manoeuvre(self, norad_id: int, at_ns: int) -> None:
        commit(self.lake, TRACKS, [{"norad_id": norad_id, "state": "confirmed", "last_manoeuvre_ns": at_ns}])

    def has_ephemeris(self, norad_id: int, *, off_km: float, created_ns: int, until_ns: int | None = None) -> None:
        """An ephemeris of the first object of a message, that far above the path that the message states."""
        time_ns = TCA_NS + np.arange(-600, 601, 60) * SECOND_NS
        since_s, speed = ((time_ns - TCA_NS) / SECOND_NS)[:, None], 7.546
        angle = since_s * speed / 7000.0
        start = Told(tca_ns=TCA_NS).cdm().objects[0]
        out, along = start.position_km / 7000.0, start.velocity_km_s / speed
        r = (7000.0 + off_km) * (np.cos(angle) * out + np.sin(angle) * along)
        v = speed * (np.cos(angle) * along - np.sin(angle) * out)
        r, v = states_in_teme("EME2000", r, v, time_ns)
        path = {
            "norad_id": norad_id, "created_time_ns": created_ns, "segment_sha256": "ab", "segment_name": "plan.oem",
            "record_number": 0, "error_kind": None, "usable_from_ns": int(time_ns[0]),
            "usable_until_ns": until_ns or int(time_ns[-1]), "state_time_ns": time_ns.tolist(),
            "state": np.hstack([r, v]).ravel().tolist(), "covariance_time_ns": [TCA_NS],
            "covariance": np.diag([1e-2] * 3 + [1e-8] * 3)[np.tril_indices(6)].tolist(), "received_time_ns": created_ns,
        }  # fmt: skip
        commit(self.lake, EPHEMERIDES, [path])

    def policy(self) -> tuple[AlertPolicy, dict[str, Any]]:
        recorded = AlertingResource(**self.settings).recorded()
        return AlertingResource().as_recorded(recorded).policy(), {"alerting": recorded}

    def alerts(self, now_ns: int = START_NS) -> list[dict[str, Any]]:
        """Commit the next alerts; their entries."""
        lake = lake_at(self.root, now_ns=now_ns)
        policy, settings = self.policy()
        plan = lake.plan(CONJUNCTION_ALERTS, settings=settings)
        due = due_events(lake, plan, policy)
        judged = events_to_judge(lake, plan, due)
        stated = statements(lake, plan, judged, due)
        chosen = OneOf("event_id", pa.array(sorted({*judged, *stated}), pa.string()))
        entries: list[dict[str, Any]] = alert_corrections(
            Stored(CONJUNCTION_ASSESSMENTS, "event_id", ASSESSMENT_COLUMNS, chosen).arrow(lake, plan),
            Stored(CONJUNCTION_ALERTS, "event_id", where=chosen).arrow(lake, plan),
            as_rows(stated),
            policy=policy,
            as_of_ns=plan.as_of_ns,
        ).to_pylist()
        pinned = {"snapshots": plan.snapshots, "settings": settings, "as_of_ns": now_ns}
        commit(lake, CONJUNCTION_ALERTS, entries, windows=plan.windows, watermarks={}, segments=(), **pinned)
        log = lake.log(CONJUNCTION_ALERTS)
        assert alerts_follow_assessments(lake, log, list(log.commits(None))) == []
        return entries


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "lake")


def told(entries: list[dict[str, Any]]) -> list[tuple[int, str, str, str | None]]:
    return [(e["sequence"], e["op"], e["risk"], e["change"] if e["op"] == "insert" else None) for e in entries]


def first_id(tca_ns: int = TCA_NS, pair: tuple[int, int] = PAIR) -> str:
    return event_ids(pair, [(tca_ns, SLOT_NS)])[0]


def test_an_event_that_only_a_message_has_is_an_alert_as_the_message_states_it(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4, miss_km=0.2))
    (alert,) = desk.alerts()
    assert (alert["event_id"], alert["risk"], alert["rule"]) == (first_id(), "red", "stated_by_other")
    assert (alert["stated_probability"], alert["stated_by"]) == (3e-4, "18 SDS")
    assert (alert["collision_probability"], alert["maximum_probability"]) == (None, None), "those are ours"
    assert (alert["miss_distance_km"], alert["tca_time_ns"], alert["data_quality"]) == (0.2, TCA_NS, "received_cdm")
    assert (alert["norad_id_1"], alert["norad_id_2"], alert["object_name_2"]) == (*PAIR, "OBJECT 2")
    assert desk.alerts() == [], "nothing is new"
    assert list(unalerted_cdms(desk.lake, START_NS)) == []


@pytest.mark.parametrize(("stated", "risk"), [(9.9e-6, None), (1e-5, "yellow"), (9.9e-5, "yellow"), (1e-4, "red")])
def test_the_levels_are_those_of_our_own_probabilities(desk: Desk, stated: float, risk: str | None) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=stated))
    assert [alert["risk"] for alert in desk.alerts()] == ([risk] if risk else [])


def test_a_message_without_a_stated_probability_counts_by_its_states(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, sigma_km=0.1))
    assert [alert["rule"] for alert in desk.alerts()] == ["stated_by_other"]


@pytest.mark.parametrize("sample", ["leo_debris.kvn", "leo_debris.xml"])
def test_a_real_message_is_an_alert_if_its_level_says_so(tmp_path: Path, sample: str) -> None:
    data = (DATA / "cdm" / sample).read_bytes()
    desk = Desk(tmp_path / "lake", yellow_pc=1e-9, red_pc=1.0)
    desk.receives(data, segment_format=f"cdm-{sample.rpartition('.')[2]}")
    (row,) = desk.lake.log(RECEIVED_CDMS).rows().to_pylist()
    (alert,) = desk.alerts(row["tca_time_ns"] - 3600 * SECOND_NS)
    reported = row["recomputed_probability"] if row["stated_probability"] is None else row["stated_probability"]
    assert alert["stated_probability"] == float(f"{reported:.2e}")
    assert (alert["norad_id_1"], alert["stated_by"]) == (row["norad_id_1"], row["originator"])


def test_the_rule_can_be_switched_off_and_the_difference_is_a_fault_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "lake", stated_by_other=False)
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4))
    assert desk.alerts() == []
    assert ["no such event" in each.text for each in unalerted_cdms(desk.lake, START_NS)] == [True]


def test_our_own_event_has_one_alert_whichever_rule_gives_its_level(desk: Desk) -> None:
    desk.screens("ours", 2e-5)
    assert told(desk.alerts()) == [(0, "insert", "yellow", "new")]
    desk.receives(Told(tca_ns=TCA_NS + 30 * SECOND_NS, stated=3e-4))
    assert told(desk.alerts()) == [
        (0, "retract", "yellow", None),
        (1, "insert", "red", "risk_level,stated_probability"),
    ]


@pytest.mark.parametrize("off_ns", [0, SLOT_NS // 2 - SECOND_NS], ids=["middle", "border"])
def test_an_event_that_we_find_after_the_message_goes_on_with_its_alert(desk: Desk, off_ns: int) -> None:
    """Also where our TCA is in the next slot, by which screening alone would name the event otherwise."""
    stated_ns, own_ns = TCA_NS + off_ns, TCA_NS + off_ns + 5 * SECOND_NS
    desk.receives(Told(tca_ns=stated_ns, stated=3e-4))
    (alert,) = desk.alerts()
    plan = desk.lake.plan(CONJUNCTION_CANDIDATES)
    (named,) = named_by_messages(desk.lake, plan, START_NS).to_pylist()
    known = [(named["tca_time_ns"], named["event_id"])]
    assert event_ids(PAIR, [(own_ns, SLOT_NS)], known) == [alert["event_id"]]
    desk.screens(alert["event_id"], 5e-4, tca_ns=own_ns)
    (retract, insert) = desk.alerts()
    assert {retract["event_id"], insert["event_id"]} == {alert["event_id"]}
    assert (insert["rule"], insert["collision_probability"], insert["stated_probability"]) == (
        "probability",
        5e-4,
        3e-4,
    )
    assert insert["change"] == "probability,data_quality"


def test_an_event_of_ours_under_another_id_replaces_the_alert_in_one_commit(desk: Desk) -> None:
    """It was screened while the message was on its way."""
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4))
    (alert,) = desk.alerts()
    desk.screens("ours", 1e-9, tca_ns=TCA_NS + 5 * SECOND_NS)
    found = {(e["event_id"], e["op"]) for e in desk.alerts()}
    assert found == {(alert["event_id"], "retract"), ("ours", "insert")}


def test_a_new_message_revises_the_alert_and_a_lower_one_ends_it(desk: Desk) -> None:
    first = Told(tca_ns=TCA_NS, stated=3e-4)
    desk.receives(first)
    desk.alerts()
    desk.receives(Told(tca_ns=TCA_NS + SECOND_NS, stated=4e-4, created_ns=after(60)))
    assert desk.alerts() == [], "no decision depends on it"
    desk.receives(Told(tca_ns=TCA_NS + 20 * SECOND_NS, stated=2e-5, created_ns=after(120)))
    assert told(desk.alerts()) == [
        (0, "retract", "red", None),
        (1, "insert", "yellow", "risk_level,stated_probability,tca"),
    ]
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4, created_ns=after(90)))
    assert desk.alerts() == [], "an older statement that arrives later changes nothing"
    desk.receives(Told(tca_ns=TCA_NS, stated=1e-8, created_ns=after(180)))
    assert told(desk.alerts()) == [(1, "retract", "yellow", None)]


def test_a_message_from_before_a_manoeuvre_holds_no_level_and_one_from_after_it_does__48(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4, created_ns=after(60)))
    assert told(desk.alerts()) == [(0, "insert", "red", "new")]
    desk.tracks_a_manoeuvre(PAIR[1], after(30))
    assert desk.alerts() == [], "the message is newer"
    desk.tracks_a_manoeuvre(PAIR[0], after(90))
    assert told(desk.alerts()) == [(0, "retract", "red", None)]
    assert list(unalerted_cdms(desk.lake, START_NS)) == [], "that the alert is gone is no fault"
    (message,) = comparisons_with(desk.lake, {"norad_id_1": PAIR[0], "norad_id_2": PAIR[1], "tca_time_ns": TCA_NS})
    assert message["superseded"] == f"{PAIR[0]} has manoeuvred since"
    desk.receives(Told(tca_ns=TCA_NS, stated=2e-4, created_ns=after(120)))
    assert told(desk.alerts()) == [(1, "insert", "red", "new")]


def test_a_superseded_message_keeps_no_level_of_our_own_event_by_hysteresis__48(desk: Desk) -> None:
    desk.screens("ours", 1e-12)
    desk.receives(Told(tca_ns=TCA_NS, stated=2e-5))
    (alert,) = desk.alerts()
    desk.receives(Told(tca_ns=TCA_NS, stated=6e-6, created_ns=after(60)))
    (_, kept) = desk.alerts()
    assert (alert["risk"], kept["rule"]) == ("yellow", "hysteresis")
    desk.tracks_a_manoeuvre(PAIR[0], after(90))
    assert told(desk.alerts()) == [(1, "retract", "yellow", None)]


@pytest.mark.parametrize(
    ("off_km", "created_s", "counts"), [(5.0, 60, False), (0.05, 60, True), (5.0, -60, True)],
    ids=["another path", "the same path", "an older one"],
)  # fmt: skip
def test_a_newer_ephemeris_on_another_path_ends_what_a_message_states__48(
    desk: Desk, off_km: float, created_s: float, counts: bool
) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4))
    assert len(desk.alerts()) == 1
    desk.has_ephemeris(PAIR[0], off_km=off_km, created_ns=after(created_s))
    assert told(desk.alerts()) == ([] if counts else [(0, "retract", "red", None)])


def test_only_ephemerides_that_reach_a_closest_approach_are_read__48(desk: Desk) -> None:
    """Else each commit of alerts would read more, the older the platform."""
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4))
    ended_ns = TCA_NS - SAME_EVENT_NS
    for created_s, until_ns in ((60, ended_ns - 1), (70, ended_ns), (80, None)):
        desk.has_ephemeris(PAIR[0], off_km=5.0, created_ns=after(created_s), until_ns=until_ns)
    head = desk.lake.log(EPHEMERIDES).head()
    read = TableSnapshot(EPHEMERIDES.name, head.commit_version, head.sequence)
    found = path_changes(desk.lake, [read], desk.lake.log(RECEIVED_CDMS).rows().to_pylist())
    assert sorted(row["created_time_ns"] for row in found.ephemerides) == [after(70), after(80)]


def test_of_several_originators_the_largest_counts_and_the_encounter_has_one_alert(desk: Desk) -> None:
    desk.receives(
        Told(tca_ns=TCA_NS, stated=2e-5), Told(tca_ns=TCA_NS + SECOND_NS, stated=2e-3, originator="EU SST"),
        Told(tca_ns=TCA_NS, stated=1e-9, originator="LEOLABS", pair=PAIR[::-1]),
    )  # fmt: skip
    (alert,) = desk.alerts()
    assert (alert["event_id"], alert["risk"], alert["stated_by"]) == (first_id(), "red", "EU SST")


def test_encounters_of_a_pair_that_are_not_one_have_an_alert_each(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4), Told(tca_ns=TCA_NS + SLOT_NS, stated=3e-4))
    assert len({alert["event_id"] for alert in desk.alerts()}) == 2


def test_objects_that_messages_only_name_have_an_alert_too(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4, pair=("UNKNOWN-7", 270387)))
    (alert,) = desk.alerts()
    assert (alert["norad_id_1"], alert["object_name_1"], alert["norad_id_2"]) == (None, "UNKNOWN-7", 270387)


def test_an_alert_of_a_message_closes_once_after_its_tca(desk: Desk) -> None:
    desk.receives(Told(tca_ns=TCA_NS, stated=3e-4))
    desk.alerts()
    late = told(desk.alerts(TCA_NS + 10 * 86_400 * SECOND_NS))
    assert late == [(0, "retract", "red", None), (1, "insert", "red", "closed")]
    assert desk.alerts(TCA_NS + 11 * 86_400 * SECOND_NS) == []


def test_a_message_about_the_past_is_no_alert(desk: Desk) -> None:
    desk.receives(Told(tca_ns=after(-60), stated=1e-2))
    assert desk.alerts() == []


def test_a_message_far_from_our_event_is_another_encounter(desk: Desk) -> None:
    desk.screens("ours", 2e-5)
    desk.receives(Told(tca_ns=TCA_NS + SAME_EVENT_NS, stated=3e-4))
    assert {alert["event_id"] for alert in desk.alerts()} == {"ours", first_id(TCA_NS + SAME_EVENT_NS)}

"""What was believed when an alert was issued stays known for years, through every maintenance of the time between."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.history.alert_states import AlertStates
from sda_platform.history.errors import VersionExpired
from sda_platform.history.explanation import Explanation, explain_alert
from sda_platform.history.impact import impact_of
from sda_platform.history.maintenance import maintain_all
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_view import PinnedView
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import delta_log
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.retention import RETENTION, Retention, retention_of
from sda_platform.lake.table import Table
from sda_platform.retention_settings import RetentionSettings
from sda_platform.units import DAY_MS
from sda_platform_tests.support.crashes import crash_at
from sda_platform_tests.support.delta_tables import commit, commit_file, lake_at
from sda_platform_tests.support.sampling import IS_SOAK, number
from sda_platform_tests.unit.history.lakes import EVENT, OTHER_EVENT, TABLES, add, decide, elements

BEGIN_MS = 1_700_000_000_000 // DAY_MS * DAY_MS
"""Long ago, so that delta-rs, which asks the machine's clock, removes a file as soon as it may."""
LAST_DAY, OF_THE_ALERT = 400, 10
CHECKPOINT_EVERY = 4
FEW = replace(RETENTION, newest_commits=6)
"""As the retention, but for the number of commits that stay at any age: the days here have one each."""


@dataclass
class Platform:
    """A lake whose commits are made at ``day``; delta-rs stamps them with the machine's time, so that is replaced."""

    lake: Lake
    day: float = 0.0
    stamped: dict[str, int] = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        return BEGIN_MS + round(self.day * DAY_MS)

    def stamp(self) -> None:
        """Give the versions since the last call the time of now, also where they name the removal of a file."""
        for table in TABLES.values():
            log = self.lake.log(table)
            for version in range(self.stamped.get(table.name, -1) + 1, log.version() + 1):
                self._stamp(commit_file(self.lake, table, version))
                self.stamped[table.name] = version
                if version % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
                    DeltaTable(log.uri).create_checkpoint()

    def _stamp(self, file: Path) -> None:
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            for name, key in (("commitInfo", "timestamp"), ("remove", "deletionTimestamp")):
                if name in action:
                    action[name][key] = self.now_ms
        file.write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions))

    def live(self, event: str, risk: str = "red") -> None:
        """A day's element sets, catalogue and decision."""
        day = int(self.day)
        add(self.lake, ELEMENT_SETS, elements(7, day + 1, f"day-{day}"), elements(8, day + 1, f"day-{day}", record=1))
        add(self.lake, ORBITAL_CATALOG, elements(7, day + 1, f"day-{day}"), elements(8, day + 1, f"day-{day}"))
        add(self.lake, TRACKS, {"norad_id": 7, "epoch_time_ns": day + 1}, {"norad_id": 99, "epoch_time_ns": day + 1})
        decide(self.lake, event, day, collision_probability=1e-4 / (day + 1), risk=risk)
        self.stamp()

    def maintain(self, retention: Retention = FEW) -> dict[str, Any]:
        found = maintain_all(self.lake, list(TABLES.values()), now_ms=self.now_ms, is_manual=True, retention=retention)
        self.stamp()
        return found


def then(found: Explanation) -> Any:
    """What an explanation says of the time of the decision."""
    return [(fact.what, fact.then) for fact in found.facts], str(found.then), found.then.facts


def days() -> Iterator[int]:
    """The days around that of the alert, and later every 26th, in a soak each: every log is cut above it."""
    yield from range(OF_THE_ALERT - 3, OF_THE_ALERT + 3)
    yield from range(OF_THE_ALERT + number(3, 26), LAST_DAY + 1, number(1, 26))


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Platform, Explanation, str]:
    """A platform after 400 days, with what it said on the day of the alert, and the state of that day by its time."""
    platform = Platform(lake_at(tmp_path_factory.mktemp("years"), now_ns=BEGIN_MS * 1_000_000))
    explained, at_noon = None, ""
    for day in days():
        platform.day = day + 0.5
        platform.live(EVENT if day == OF_THE_ALERT else OTHER_EVENT, "yellow" if day % 2 else "red")
        if day == OF_THE_ALERT:
            explained = explain_alert(platform.lake, TABLES, EVENT)
            at_noon = str(vector_of(platform.lake, TABLES, iso(platform.now_ms * 1_000_000)))
        if IS_SOAK or day <= OF_THE_ALERT + 2 or day % 4 == 0:
            platform.day = day + 1.1
            platform.maintain()
    assert explained is not None
    return platform, explained, at_noon


def test_an_alert_of_day_10_is_explained_on_day_400_as_on_its_day(
    past: tuple[Platform, Explanation, str],
) -> None:
    platform, explained, at_noon = past
    later = explain_alert(lake_at(platform.lake.uri), TABLES, EVENT)
    assert then(later) == then(explained)
    assert {fact.what for fact in later.facts if fact.then} >= {"alert", "assessment", "element set of 7", "track of 7"}
    for table in TABLES.values():
        log = platform.lake.log(table)
        if log.version() > 0:
            assert delta_log.oldest_version(log.uri) > 6, f"{table.name}: its log was cut above the alert"
    noon_ms = BEGIN_MS + OF_THE_ALERT * DAY_MS + DAY_MS // 2
    assert str(vector_of(platform.lake, TABLES, iso(noon_ms * 1_000_000))) == at_noon


def test_a_past_state_of_part_of_a_table_says_so(past: tuple[Platform, Explanation, str]) -> None:
    platform, explained, _ = past
    assert "only the rows" not in explained.then.moment
    state = vector_of(platform.lake, TABLES, EVENT)
    assert state.moment.endswith("; of orbital_catalog, tracks only the rows of objects of alerts were kept")
    view = PinnedView(platform.lake, TABLES, state)
    assert view.rows("SELECT norad_id FROM tracks").to_pylist() == [{"norad_id": 7}]
    assert view.rows("SELECT count(*) AS n FROM element_sets").to_pylist() == [{"n": 2 * 4}]
    gone = vector_of(platform.lake, TABLES, "orbital_catalog=1")
    with pytest.raises(VersionExpired):
        PinnedView(platform.lake, TABLES, gone).rows("FROM orbital_catalog")


def test_what_nobody_could_keep_is_unknown_and_not_absent(tmp_path: Path) -> None:
    platform = Platform(lake_at(tmp_path))
    platform.live(EVENT)
    read = [platform.lake.log(table).open().file_uris() for table in (ORBITAL_CATALOG, TRACKS)]  # type: ignore[union-attr]
    platform.day = 1.0
    platform.live(OTHER_EVENT)
    for file in (file for files in read for file in files):
        Path(file).unlink()
    platform.maintain()
    with pytest.raises(VersionExpired):
        explain_alert(platform.lake, TABLES, EVENT)
    for platform.day in (10.0, 11.0):
        platform.live(OTHER_EVENT)
        platform.maintain()
    with pytest.raises(VersionExpired):
        explain_alert(platform.lake, TABLES, EVENT)
    found = explain_alert(platform.lake, TABLES, f"{OTHER_EVENT}@1")
    known = {fact.what: fact.then for fact in found.facts}
    assert known["track of 7"] is not None
    assert known["track of 8"] is None, "there was none"


def test_what_rests_on_an_input_of_long_ago_is_found_by_its_commits(past: tuple[Platform, Explanation, str]) -> None:
    found = {each.table: each.sequences for each in impact_of(past[0].lake, TABLES, f"day-{OF_THE_ALERT}").tables}
    assert found["element_sets"] == [4]
    assert 4 in found["conjunction_alerts"]


def test_every_commit_is_found_by_sequence_and_the_chain_of_manifests_is_whole(
    past: tuple[Platform, Explanation, str],
) -> None:
    log = past[0].lake.log(CONJUNCTION_ALERTS)
    commits = log.commits(None)
    assert [commit.sequence for commit in commits] == list(range(log.head().sequence, 0, -1))
    assert [c.manifest.previous_sha256 for c in commits[:-1]] == [c.manifest_sha256 for c in commits[1:]]
    assert [log.find(sequence) for sequence in (1, 4, len(commits))] == [commits[-1], commits[-4], commits[0]]
    assert log.find(len(commits) + 1) is None


# One table of retention, which every remover obeys.


def test_evidence_and_records_go_at_their_ages_and_under_a_legal_hold_never(tmp_path: Path) -> None:
    platform = Platform(lake_at(tmp_path))
    platform.live(EVENT)
    for _ in range(21):
        commit(platform.lake, RAW_RECORDS)
        platform.stamp()
    platform.maintain()
    held = replace(retention_of(RetentionSettings(legal_hold=True)), newest_commits=6)
    assert held.is_held
    platform.day = 20.0
    assert platform.maintain()["removed_versions"] > 0
    platform.day = 10_000.0
    assert platform.maintain(held)["removed_records"] == 0
    assert platform.lake.log(RAW_RECORDS).find(1) is not None
    assert AlertStates(platform.lake.uri).rows("orbital_catalog", 1, ()) is not None
    platform.day = 2_550.0
    assert platform.maintain()["removed_records"] == 0
    platform.day = 2_560.0
    assert platform.maintain()["removed_records"] == 3, "the states of catalogue and tracks, and a file of manifests"
    assert AlertStates(platform.lake.uri).rows("orbital_catalog", 1, ()) is None
    assert platform.lake.log(RAW_RECORDS).find(1) is None


def test_a_record_that_would_go_before_its_evidence_is_refused() -> None:
    assert retention_of(RetentionSettings()) == RETENTION
    assert retention_of(RetentionSettings(evidence_days=400, record_days=500, operations_days=7)) == replace(
        RETENTION, evidence_days=400, record_days=500, operations_days=7
    )
    with pytest.raises(ValueError, match="SDA_RECORD_DAYS must not be below SDA_EVIDENCE_DAYS"):
        RetentionSettings(evidence_days=400, record_days=399)


@pytest.mark.parametrize("point", ["log.kept", "alert_states.kept", "durable.written", "durable.renamed"])
def test_a_maintenance_that_is_killed_keeps_each_commit_and_state_once(tmp_path: Path, point: str) -> None:
    platform = Platform(lake_at(tmp_path))
    platform.live(EVENT)
    for _ in range(21):
        commit(platform.lake, RAW_RECORDS)
        platform.stamp()
    platform.day = 5.0
    if point == "log.kept":
        platform.maintain()
        platform.day = 20.0
    with crash_at(point):
        platform.maintain()
    platform.maintain()
    platform.day = 20.5
    platform.maintain()
    log = platform.lake.log(RAW_RECORDS)
    assert [c.sequence for c in log.commits(None)] == list(range(21, 0, -1))
    assert delta_log.oldest_version(log.uri) > 0, "what is found of it is kept"
    states = AlertStates(platform.lake.uri)
    assert [states.rows(name, 1, (7, 8)).num_rows for name in ("orbital_catalog", "tracks")] == [2, 1]  # type: ignore[union-attr]


def test_a_log_with_a_commit_that_cannot_be_read_is_not_cut_and_damage_of_what_is_kept_is_named(tmp_path: Path) -> None:
    log = busy(tmp_path, ELEMENT_SETS)
    damaged = commit_file(lake_at(tmp_path), ELEMENT_SETS, 3)
    whole = damaged.read_text()
    torn = (line[:60] if line.startswith('{"commitInfo"') else line for line in whole.split("\n"))
    damaged.write_text("\n".join(torn))
    with pytest.raises(InvariantError, match=r"version 3 of the log cannot be read .*, so the log is not cut"):
        maintained(tmp_path)
    damaged.write_text(whole)
    maintained(tmp_path)
    assert log.find(2) is not None
    (file,) = Path(log.uri, "_commits").iterdir()
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InvariantError, match=rf"{file.name} is damaged .*restore it from a backup"):
        TableLog(ELEMENT_SETS, log.uri).find(2)


def test_a_hole_in_the_log_is_not_bridged_by_what_is_kept(tmp_path: Path) -> None:
    log = busy(tmp_path, ELEMENT_SETS)
    maintained(tmp_path)
    assert len(log.commits(None)) == 21
    commit_file(lake_at(tmp_path), ELEMENT_SETS, 15).unlink()
    assert [c.version for c in TableLog(ELEMENT_SETS, log.uri).commits(None)] == list(range(20, 15, -1))


def maintained(root: Path) -> None:
    """The maintenance of day 30."""
    tables, now_ms = list(TABLES.values()), BEGIN_MS + 30 * DAY_MS
    maintain_all(lake_at(root), tables, now_ms=now_ms, is_manual=True, retention=FEW)


def busy(root: Path, table: Table) -> TableLog:
    """A table of 21 commits, whose log can be cut."""
    platform = Platform(lake_at(root))
    for _ in range(21):
        commit(platform.lake, table)
        platform.stamp()
    return platform.lake.log(table)

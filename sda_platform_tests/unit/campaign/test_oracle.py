"""The campaign's oracle has teeth: each rule is content with a sound platform, and sees the violation planted here."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.world import RecordId
from sda_platform_tests.support.delta_tables import commit, lake_at, lose_rows, rows_of
from sda_platform_tests.support.segments import put

SOUND = b"a sound record"
SEGMENT = hashlib.sha256(SOUND).hexdigest()
TABLES = (RAW_RECORDS, OBSERVATIONS, DEAD_LETTERS)


@dataclass
class Stored:
    """A small platform after two batches, and the account of what was written."""

    home: Path
    lake: Lake
    subscriber: SqliteSubscriber
    written: dict[RecordId, bytes | None]


def raw(number: int, **values: object) -> dict[str, object]:
    return {"segment_sha256": SEGMENT, "record_number": number, "payload": SOUND + bytes([number]), **values}


def stored_below(home: Path) -> Stored:
    """Four records in two batches, the last one dead, an alert, and the subscriber who got it."""
    lake, subscriber = lake_at(home / "lake"), SqliteSubscriber(home / "subscriber.sqlite")
    for numbers in ((0, 1), (2, 3)):
        commit(lake, RAW_RECORDS, [raw(n, error_kind="bad_length" if n == 3 else None) for n in numbers])
        commit(lake, OBSERVATIONS, [{"observation_id": f"o{n}", "record_number": n} for n in numbers if n != 3])
    commit(lake, FUSED_TRACKS, counts={"late": 1})
    late = raw(2, stage="fused_tracks", error_kind="late_observation", error="late")
    commit(lake, DEAD_LETTERS, [raw(3, stage="raw_records", error_kind="bad_length", error="bad"), late])
    for sequence in (0, 1):
        commit(lake, CONJUNCTION_ALERTS, [{"event_id": "e", "sequence": sequence, "op": "insert"}])
        subscriber.apply(f"batch {sequence}", [AlertEntry("e", sequence, "insert", "{}")])
    (home / "landing/radar/archive").mkdir(parents=True)
    (home / "landing/radar/archive" / SEGMENT).write_bytes(SOUND)
    return Stored(home, lake, subscriber, {(SEGMENT, n): SOUND + bytes([n]) for n in range(4)})


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    return stored_below(tmp_path)


RULES: dict[str, Callable[[Stored], list[str]]] = {
    "O1": lambda s: oracle.identity(s.lake, s.written),
    "O1, late": lambda s: oracle.late(s.lake),
    "O2": lambda s: oracle.content(s.lake, s.written),
    "O3": lambda s: oracle.log(s.lake, TABLES),
    "O4": lambda s: oracle.files(s.lake, TABLES),
    "O5": lambda s: oracle.derived(s.lake, stored_below(s.home / "twin").lake, TABLES),
    "O6": lambda s: oracle.deliveries(s.lake, s.subscriber),
    "O7": lambda s: oracle.acknowledged(s.lake, str(s.home / "landing")),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_sound_platform_has_no_problem(stored: Stored, rule: str) -> None:
    assert RULES[rule](stored) == []


def a_record_lost(stored: Stored) -> None:
    lose_rows(stored.lake, RAW_RECORDS, "record_number = 1")


def a_record_doubled(stored: Stored) -> None:
    commit(stored.lake, RAW_RECORDS, [raw(1)])


def a_dead_letter_lost(stored: Stored) -> None:
    lose_rows(stored.lake, DEAD_LETTERS, "record_number = 3")


def a_late_observation_unrecorded(stored: Stored) -> None:
    commit(stored.lake, FUSED_TRACKS, counts={"late": 1})


def a_late_observation_recorded_twice(stored: Stored) -> None:
    commit(stored.lake, DEAD_LETTERS, [raw(2, stage="fused_tracks", error_kind="late_observation", error="late")])


def a_record_nobody_wrote(stored: Stored) -> None:
    commit(stored.lake, RAW_RECORDS, [raw(17)])


def other_bytes(stored: Stored) -> None:
    lose_rows(stored.lake, RAW_RECORDS, "record_number = 1")
    commit(stored.lake, RAW_RECORDS, [raw(1, payload=b"not what was sent")])


def a_transaction_twice(stored: Stored) -> None:
    write_deltalake(
        stored.lake.log(OBSERVATIONS).uri,
        rows_of(OBSERVATIONS, [{"observation_id": "again"}]),
        mode="append",
        commit_properties=CommitProperties(app_transactions=[Transaction(OBSERVATIONS.app_id, 2)]),
    )


def a_sequence_left_out(stored: Stored) -> None:
    commit(stored.lake, OBSERVATIONS, [], sequence=4)


def another_predecessor(stored: Stored) -> None:
    commit(stored.lake, OBSERVATIONS, [], previous_sha256="0" * 64)


def the_last_commit_emptied(stored: Stored) -> None:
    max((stored.home / "lake/observations/_delta_log").glob("*.json")).write_bytes(b"")


def a_live_file_deleted(stored: Stored) -> None:
    next((stored.home / "lake/observations").glob("*.parquet")).unlink()


def a_live_file_truncated(stored: Stored) -> None:
    data = next((stored.home / "lake/observations").glob("*.parquet"))
    data.write_bytes(data.read_bytes()[:-20])


def a_live_file_replaced(stored: Stored) -> None:
    """By another one of its size, that opens: only its rows tell."""
    data = sorted((stored.home / "lake/raw_records").glob("*.parquet"))
    actions = DeltaTable(str(stored.home / "lake/raw_records")).get_add_actions(flatten=True)
    assert len(data) == len(actions) == 2
    data[0].write_bytes(b"PAR1" + data[0].read_bytes()[4:-1] + b"!")


def an_observation_changed(stored: Stored) -> None:
    lose_rows(stored.lake, OBSERVATIONS, "record_number = 1")
    commit(stored.lake, OBSERVATIONS, [{"observation_id": "o1", "record_number": 1, "range_m": 0.5000000000000001}])


def an_alert_unsent(stored: Stored) -> None:
    commit(stored.lake, CONJUNCTION_ALERTS, [{"event_id": "f", "sequence": 0, "op": "insert"}])


def an_alert_sent_twice(stored: Stored) -> None:
    stored.subscriber.apply("a batch that no plan made", [AlertEntry("e", 1, "insert", "{}")])


def an_alert_of_nobody(stored: Stored) -> None:
    stored.subscriber.apply("another", [AlertEntry("ghost", 0, "insert", "{}")])


def an_acknowledged_segment_lost(stored: Stored) -> None:
    (stored.home / "landing/radar/archive" / ("f" * 64)).write_bytes(b"acknowledged before it was committed")


@pytest.mark.parametrize(
    ("rule", "plant"),
    [
        ("O1", a_record_lost),
        ("O1", a_record_doubled),
        ("O1", a_dead_letter_lost),
        ("O1", a_record_nobody_wrote),
        ("O1, late", a_late_observation_unrecorded),
        ("O1, late", a_late_observation_recorded_twice),
        ("O2", other_bytes),
        ("O3", a_transaction_twice),
        ("O3", a_sequence_left_out),
        ("O3", another_predecessor),
        ("O5", the_last_commit_emptied),
        ("O4", a_live_file_deleted),
        ("O4", a_live_file_truncated),
        ("O4", a_live_file_replaced),
        ("O5", an_observation_changed),
        ("O6", an_alert_unsent),
        ("O6", an_alert_sent_twice),
        ("O6", an_alert_of_nobody),
        ("O7", an_acknowledged_segment_lost),
    ],
)
def test_a_planted_violation_is_reported__O10(stored: Stored, rule: str, plant: Callable[[Stored], None]) -> None:
    plant(stored)
    assert RULES[rule](stored), f"{rule} does not see {plant.__name__}"


def test_counting_does_not_see_a_deleted_live_file__O4_control(stored: Stored) -> None:
    """Why O4 opens files: a row count is answered from statistics (99)."""
    before = stored.lake.log(OBSERVATIONS).row_count()
    a_live_file_deleted(stored)
    assert stored.lake.log(OBSERVATIONS).row_count() == before


def test_a_run_or_a_segment_that_hangs_is_reported__O8(tmp_path: Path) -> None:
    zone = LandingZone(str(tmp_path), "radar")
    with dg.DagsterInstance.ephemeral() as instance:
        assert oracle.at_rest(instance, str(tmp_path)) == []
        instance.add_run(dg.DagsterRun("hot", run_id="hangs", status=dg.DagsterRunStatus.STARTED))
        put(zone, "waits.meta.json", b"{}")
        put(zone, "half-written.tmp", b"")
        told = " ".join(oracle.at_rest(instance, str(tmp_path)))
    assert "hangs" in told and "waits.meta.json is left" in told and "half-written.tmp is left" in told


@pytest.mark.parametrize(
    ("changed", "is_equal"),
    [
        ({"track_id_1": "a later window"}, True),
        ({"mahalanobis_distance": 2.69}, True),
        ({"miss_distance_km": 2.7}, False),
        ({"collision_probability": 6e-6}, False),
        ({"status": "closed"}, False),
    ],
    ids=lambda value: str(value),
)
def test_an_alert_keeps_what_is_no_cause_of_a_revision_as_it_was_sent__O5(
    tmp_path: Path, changed: dict[str, object], is_equal: bool
) -> None:
    alert = {"event_id": "e", "sequence": 0, "op": "insert", "miss_distance_km": 2.8, "status": "open"}
    lakes = [lake_at(tmp_path / name) for name in ("victim", "twin")]
    for lake, values in zip(lakes, ({}, changed), strict=True):
        commit(lake, CONJUNCTION_ALERTS, [{**alert, **values}])
    victim, twin = lakes
    assert (oracle.derived(victim, twin, [CONJUNCTION_ALERTS]) == []) == is_equal

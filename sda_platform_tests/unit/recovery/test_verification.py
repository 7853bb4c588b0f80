"""Each oracle of exactly-once, shown to see what it guards: the same tables whole, then broken."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sda_platform.catalog.checks import catalog_balance
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.conjunction.checks import alerts_follow_assessments, assessments_follow_candidates
from sda_platform.conjunction.resource import AlertingResource
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.dead_letters.checks import dead_letters_balance
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.checks import deliveries_balance
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.checks import observations_balance
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.recovery.review import Balance
from sda_platform.recovery.verification import (
    broken_chain,
    broken_correction_logs,
    duplicate_keys,
    unbalanced_segments,
)
from sda_platform_tests.support.delta_tables import (
    commit,
    commit_file,
    genesis_window,
    lake_at,
    lose_rows,
    next_window,
)
from sda_platform_tests.support.segments import after

AHEAD_NS = after(3600.0)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path)


def problems(lake: Lake, table: Table, check: Balance) -> list[str]:
    log = lake.log(table)
    return check(lake, log, log.commits())


def record(segment: str, number: int, **values: Any) -> dict[str, Any]:
    return {"segment_sha256": segment, "record_number": number, "received_time_ns": 10 + number, **values}


def chain(lake: Lake) -> list[str]:
    return broken_chain(lake.log(OBSERVATIONS).commits())


# The chain of manifests.


def test_a_whole_chain_has_no_problem(lake: Lake) -> None:
    assert chain(lake) == []
    window = genesis_window(RAW_RECORDS)
    for _ in range(3):
        commit(lake, OBSERVATIONS, windows=[window])
        window = next_window(window)
    assert chain(lake) == []


def test_a_gap_in_the_sequence_is_seen(lake: Lake) -> None:
    commit(lake, OBSERVATIONS)
    commit(lake, OBSERVATIONS, sequence=3)
    assert chain(lake) == ["sequence 3 follows 1"]


def test_every_fault_of_a_chain_is_listed_newest_first(lake: Lake) -> None:
    first = genesis_window(RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=[first])
    commit(lake, OBSERVATIONS, sequence=3, fencing_token=5)
    commit(lake, OBSERVATIONS, previous_sha256="of another history", windows=[first])
    assert chain(lake) == [
        "sequence 4 names another predecessor than sequence 3",
        "sequence 4 was committed under no token, after sequence 3 under token 5: leases overlapped",
        "sequence 3 follows 1",
    ]


def test_a_fork_is_seen(lake: Lake) -> None:
    commit(lake, OBSERVATIONS)
    commit(lake, OBSERVATIONS, previous_sha256="of another history")
    assert chain(lake) == ["sequence 2 names another predecessor than sequence 1"]


@pytest.mark.parametrize(("token", "mine"), [(42, "token 42"), (None, "no token")])
def test_a_commit_of_a_former_holder_of_the_lease_is_seen__ML2(lake: Lake, token: int | None, mine: str) -> None:
    for held in (43, 43, 44):
        commit(lake, OBSERVATIONS, fencing_token=held)
    assert broken_chain(lake.log(OBSERVATIONS).commits()) == []
    commit(lake, OBSERVATIONS, fencing_token=token)
    assert broken_chain(lake.log(OBSERVATIONS).commits()) == [
        f"sequence 4 was committed under {mine}, after sequence 3 under token 44: leases overlapped"
    ]


def test_a_beginning_that_is_none_is_seen(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, previous_sha256="of a lost history")
    assert chain(lake) == ["sequence 1 is not the first of its chain"]


@pytest.mark.parametrize(
    ("after", "told"), [(2, "after 2, but sequence 1 ended at 1"), (0, "after 0, but sequence 1 ended at 1")]
)
def test_a_skipped_or_repeated_window_is_seen(lake: Lake, after: int, told: str) -> None:
    first = genesis_window(RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=[first])
    commit(lake, OBSERVATIONS, windows=[type(first)(RAW_RECORDS.name, after, 3, after, 3)])
    assert chain(lake) == [f"sequence 2 consumed raw_records {told}"]


def test_a_log_whose_newest_commit_is_gone_but_remembered_has_no_head(lake: Lake) -> None:
    """Delta's own checkpoint shows of the transaction, the file that held ours is empty."""
    commit(lake, OBSERVATIONS)
    commit(lake, OBSERVATIONS)
    DeltaTable(lake.log(OBSERVATIONS).uri).create_checkpoint()
    commit_file(lake, OBSERVATIONS, 1).write_text("")
    with pytest.raises(InvariantError, match="sequence 2 was committed, but its newest manifest is 1"):
        lake.head(OBSERVATIONS)


def test_a_commit_of_another_table_in_the_log_is_seen(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, table=RAW_RECORDS.name)
    with pytest.raises(InvariantError, match=r"a commit of raw_records lies in the log of observations"):
        lake.head(OBSERVATIONS)


# Keys.


def test_a_key_written_twice_is_seen_in_one_commit_and_across_commits(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": i, "sensor_time_ns": n} for n, i in enumerate("ab")])
    assert problems(lake, OBSERVATIONS, lambda _, log, commits: duplicate_keys(log, commits)) == []
    commit(lake, OBSERVATIONS, [{"observation_id": i, "sensor_time_ns": 0} for i in "accfddee"])
    assert problems(lake, OBSERVATIONS, lambda _, log, commits: duplicate_keys(log, commits)) == [
        "4 keys occur more than once, such as ('a',), ('c',), ('d',)"
    ]


def test_a_key_repeated_long_after_is_seen(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": "a", "sensor_time_ns": 7}])
    for n in range(5):
        commit(lake, OBSERVATIONS, [{"observation_id": str(n), "sensor_time_ns": n}])
    commit(lake, OBSERVATIONS, [{"observation_id": "a", "sensor_time_ns": 7}])
    assert problems(lake, OBSERVATIONS, lambda _, log, commits: duplicate_keys(log, commits))


def test_an_object_twice_in_the_catalogue_is_seen_whatever_its_epochs_are(lake: Lake) -> None:
    commit(lake, ORBITAL_CATALOG, [{"norad_id": 5, "epoch_time_ns": 1_000}])
    for n in range(5):
        commit(lake, ORBITAL_CATALOG, [{"norad_id": 100 + n, "epoch_time_ns": 9_000}])
    commit(lake, ORBITAL_CATALOG, [{"norad_id": 5, "epoch_time_ns": 9_000}])
    told = problems(lake, ORBITAL_CATALOG, lambda _, log, commits: duplicate_keys(log, commits))
    assert told == ["1 keys occur more than once, such as (5,)"]


# Landed = valid + dead.


def landed(lake: Lake, rows: int = 2, promised: int = 2) -> None:
    commit(
        lake,
        RAW_RECORDS,
        [record("s1", n) for n in range(rows)],
        segments=[SegmentRef("radar", "a", "s1", 1, promised)],
    )


def test_a_segment_whose_records_are_all_stored_balances(lake: Lake) -> None:
    landed(lake)
    assert problems(lake, RAW_RECORDS, unbalanced_segments) == []


def test_a_lost_row_of_a_segment_is_seen(lake: Lake) -> None:
    landed(lake)
    lose_rows(lake, RAW_RECORDS, "record_number = 1")
    assert problems(lake, RAW_RECORDS, unbalanced_segments) == ["radar/a: 2 records landed, 1 rows stored"]


def test_a_surplus_row_of_a_segment_is_seen(lake: Lake) -> None:
    landed(lake, rows=3)
    assert problems(lake, RAW_RECORDS, unbalanced_segments) == ["radar/a: 2 records landed, 3 rows stored"]


def test_rows_that_no_segment_explains_are_seen(lake: Lake) -> None:
    commit(lake, RAW_RECORDS, [record("0123456789abcdef", 0), record("f" * 64, 0), record("f" * 64, 1)])
    assert problems(lake, RAW_RECORDS, unbalanced_segments) == [
        "1 rows of a segment 0123456789ab… that no commit names",
        "2 rows of a segment ffffffffffff… that no commit names",
    ]


def test_a_data_file_that_is_gone_is_seen(lake: Lake) -> None:
    landed(lake)
    next(Path(lake.log(RAW_RECORDS).uri).glob("*.parquet")).unlink()
    with pytest.raises(FileNotFoundError):
        problems(lake, RAW_RECORDS, unbalanced_segments)


# Valid = observations + duplicates; every error a dead letter.


def observed(lake: Lake, *ids: str) -> None:
    raw = [record("s1", n, observation_id=i, sensor_time_ns=5) for n, i in enumerate("aab")]
    raw.append(record("s1", 3, error_kind="bad_length", error="why"))
    commit(lake, RAW_RECORDS, raw)
    commit(
        lake,
        OBSERVATIONS,
        [{"observation_id": i, "sensor_time_ns": 5} for i in ids],
        windows=[genesis_window(RAW_RECORDS)],
    )


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ("ab", []),
        ("a", ["1 observations missing"]),
        ("abx", ["1 observations unexpected"]),
        ("aab", ["1 observations repeated"]),
    ],
)
def test_observations_balance_with_valid_records(lake: Lake, stored: str, told: list[str]) -> None:
    observed(lake, *stored)
    assert problems(lake, OBSERVATIONS, observations_balance) == told


def test_a_second_delivery_of_an_earlier_observation_is_no_loss(lake: Lake) -> None:
    observed(lake, "a", "b")
    commit(lake, RAW_RECORDS, [record("s2", 0, observation_id="b", sensor_time_ns=5)])
    commit(lake, OBSERVATIONS, windows=[next_window(genesis_window(RAW_RECORDS))])
    assert problems(lake, OBSERVATIONS, observations_balance) == []


@pytest.mark.parametrize(
    ("numbers", "told"),
    [([3, 9], []), ([9], ["1 letters missing"]), ([3, 10], ["1 letters missing", "1 letters unexpected"])],
)
def test_dead_letters_balance_with_errors(lake: Lake, numbers: list[int], told: list[str]) -> None:
    observed(lake, "a", "b")
    commit(lake, RECEIVED_CDMS, [record("m", 0, error_kind="missing_field", error="why"), record("m", 1)])
    letters = [record("s1", n, stage="raw_records") for n in numbers if n < 9]
    letters += [record("m", n - 9, stage="received_cdms") for n in numbers if n >= 9]
    windows = [genesis_window(RAW_RECORDS), genesis_window(ELEMENT_SETS, 0), genesis_window(RECEIVED_CDMS)]
    commit(lake, DEAD_LETTERS, letters, windows=windows)
    assert problems(lake, DEAD_LETTERS, dead_letters_balance) == told


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([(1, 50), (2, 60)], []),
        ([(1, 50)], ["1 objects landed but are not in the catalogue"]),
        ([(1, 40), (2, 60)], ["1 entries are not the best set that landed"]),
    ],
)
def test_the_catalogue_balances_with_what_landed(lake: Lake, entries: list[tuple[int, int]], told: list[str]) -> None:
    sets = [record("s1", n, norad_id=i, epoch_time_ns=t) for n, (i, t) in enumerate([(1, 40), (1, 50), (2, 60)])]
    commit(
        lake,
        ELEMENT_SETS,
        [*sets, record("s1", 3, norad_id=3, epoch_time_ns=9, error_kind="propagation_refused", error="why")],
    )
    rows = [each for each in sets if (each["norad_id"], each["epoch_time_ns"]) in entries]
    commit(lake, ORBITAL_CATALOG, rows, windows=[genesis_window(ELEMENT_SETS)])
    assert problems(lake, ORBITAL_CATALOG, catalog_balance) == told


def test_a_tie_that_the_engine_decided_otherwise_is_found__CM14(lake: Lake) -> None:
    better, worse = (record("s1", n, norad_id=1, epoch_time_ns=50, source_priority=20 - n) for n in range(2))
    commit(lake, ELEMENT_SETS, [worse, better])
    commit(lake, ORBITAL_CATALOG, [worse], windows=[genesis_window(ELEMENT_SETS)])
    assert problems(lake, ORBITAL_CATALOG, catalog_balance) == ["1 entries are not the best set that landed"]


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([(1, 50), (2, AHEAD_NS)], []),
        ([(1, 40), (2, AHEAD_NS)], ["1 entries are not the best set that landed"]),
        ([(1, 50)], ["1 objects landed but are not in the catalogue"]),
    ],
)
def test_a_set_with_an_epoch_ahead_is_not_yet_due_in_the_catalogue_A1(
    lake: Lake, entries: list[tuple[int, int]], problem: list[str]
) -> None:
    sets = [(1, 40), (1, 50), (1, AHEAD_NS), (2, AHEAD_NS)]
    landed = [record("s1", n, norad_id=i, epoch_time_ns=t) for n, (i, t) in enumerate(sets)]
    commit(lake, ELEMENT_SETS, landed)
    rows = [each for each in landed if (each["norad_id"], each["epoch_time_ns"]) in entries]
    commit(lake, ORBITAL_CATALOG, rows, windows=[genesis_window(ELEMENT_SETS)])
    assert problems(lake, ORBITAL_CATALOG, catalog_balance) == problem


# Journals.


@pytest.mark.parametrize(
    ("turns", "is_whole"),
    [
        ([(0, "insert")], True),
        ([(0, "insert"), (0, "retract"), (1, "insert")], True),
        ([(0, "retract")], False),
        ([(1, "insert")], False),
        ([(0, "insert"), (1, "insert")], False),
        ([(0, "insert"), (0, "retract"), (0, "retract"), (1, "insert")], False),
        ([(0, "insert"), (0, "retract"), (2, "insert")], False),
    ],
)
def test_a_journal_says_insert_0_retract_0_insert_1__DP3_I17(
    lake: Lake, turns: list[tuple[int, str]], is_whole: bool
) -> None:
    rows = [{"event_id": "x", "sequence": s, "op": op, "tca_time_ns": 1} for s, op in turns]
    commit(lake, CONJUNCTION_CANDIDATES, [{"event_id": "y", "sequence": 0, "op": "insert", "tca_time_ns": 1}])
    commit(lake, CONJUNCTION_CANDIDATES, rows)
    told = problems(lake, CONJUNCTION_CANDIDATES, broken_correction_logs)
    assert told == ([] if is_whole else [f"1 correction logs do not alternate, such as x: {sorted(turns)}"])


def journal(*said: tuple[str, str], **values: Any) -> list[dict[str, Any]]:
    return [{"event_id": e, "sequence": 0, "op": op, "tca_time_ns": 1, **values} for e, op in said]


@pytest.mark.parametrize(
    ("assessed", "told"), [("x", []), ("", ["1 assessed events missing"]), ("xz", ["1 assessed events unexpected"])]
)
def test_assessments_follow_standing_candidates(lake: Lake, assessed: str, told: list[str]) -> None:
    commit(lake, CONJUNCTION_CANDIDATES, journal(("x", "insert"), ("y", "insert"), ("y", "retract")))
    windows = [genesis_window(CONJUNCTION_CANDIDATES)]
    commit(lake, CONJUNCTION_ASSESSMENTS, journal(*((e, "insert") for e in assessed)), windows=windows)
    assert problems(lake, CONJUNCTION_ASSESSMENTS, assessments_follow_candidates) == told


@pytest.mark.parametrize(
    ("alerted", "told"),
    [("x", []), ("", ["1 alerts missing, such as x"]), ("xg", ["1 alerts unexpected, such as g"])],
)
def test_alerts_follow_the_assessments_that_the_policy_selects(lake: Lake, alerted: str, told: list[str]) -> None:
    ahead = {"tca_time_ns": after(3600)}
    rows = [
        {**journal(("x", "insert"), collision_probability=2e-4)[0], **ahead},
        {**journal(("g", "insert"), collision_probability=2e-7, risk="yellow")[0], **ahead},
    ]
    commit(lake, CONJUNCTION_ASSESSMENTS, rows)
    commit(
        lake,
        CONJUNCTION_ALERTS,
        [{**each, **ahead} for each in journal(*((e, "insert") for e in alerted), risk="red", status="open")],
        windows=[genesis_window(CONJUNCTION_ASSESSMENTS)],
        settings={"alerting": AlertingResource().recorded()},
    )
    assert problems(lake, CONJUNCTION_ALERTS, alerts_follow_assessments) == told


@pytest.mark.parametrize(
    ("delivered", "told"),
    [
        ("xy", []),
        ("x", ["1 deliveries missing"]),
        ("xyz", ["1 deliveries unexpected"]),
        ("xxy", ["1 deliveries repeated"]),
    ],
)
def test_deliveries_balance_with_alerts(lake: Lake, delivered: str, told: list[str]) -> None:
    commit(lake, CONJUNCTION_ALERTS, journal(("x", "insert"), ("y", "insert")))
    rows = [{"alert_id": e, "sequence": 0, "op": "insert", "tca_time_ns": 1} for e in delivered]
    commit(lake, ALERT_DELIVERIES, rows, windows=[genesis_window(CONJUNCTION_ALERTS)])
    assert problems(lake, ALERT_DELIVERIES, deliveries_balance) == told

"""Late observations are found from the commits of fused_tracks, and each becomes one dead letter (DP3-Q4)."""

from pathlib import Path

import pytest

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.dead_letters.checks import dead_letters_balance
from sda_platform.dead_letters.lateness import raw_records_of
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.fusion.lateness import late_observations
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.unconsumed import commits_of
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at, next_window

OPEN_FROM_NS = 1000


def observed(number: int, sensor_time_ns: int, **values: object) -> dict[str, object]:
    identity = {"observation_id": f"o{number}", "segment_sha256": "s", "record_number": number}
    return {**identity, "sensor_time_ns": sensor_time_ns, "received_time_ns": 2000 + number, **values}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two batches: of the first nothing was late; of the second records 2 and 4 were, and 3 had been reprocessed."""
    lake = lake_at(tmp_path)
    rows = [[observed(0, 10), observed(1, 20)]]
    rows.append([observed(2, 999), observed(3, 5, reprocess_count=1), observed(4, 30), observed(5, 1000)])
    for batch in rows:
        commit(lake, RAW_RECORDS, [{**r, "payload": b"p", "feed": "radar"} for r in batch])
        commit(lake, OBSERVATIONS, batch)
    commit(lake, ELEMENT_SETS)
    first = genesis_window(OBSERVATIONS)
    commit(lake, FUSED_TRACKS, windows=[first], watermarks={FIRST_OPEN_WINDOW: 0}, counts={"late": 0})
    marks = {FIRST_OPEN_WINDOW: OPEN_FROM_NS}
    commit(lake, FUSED_TRACKS, windows=[next_window(first)], watermarks=marks, counts={"late": 2})
    return lake


def numbers(lake: Lake, window: TableWindow) -> list[int]:
    return sorted(
        late_observations(lake, commits_of(lake.log(FUSED_TRACKS), window)).column("record_number").to_pylist()
    )


def test_late_is_what_was_measured_before_the_first_open_window_and_came_live(lake: Lake) -> None:
    both, first = genesis_window(FUSED_TRACKS, 2), genesis_window(FUSED_TRACKS)
    assert numbers(lake, both) == numbers(lake, next_window(first)) == [2, 4]
    assert numbers(lake, first) == numbers(lake, TableWindow(FUSED_TRACKS.name, 2, 2, 1, 1)) == []


def test_each_late_observation_finds_its_bytes(lake: Lake) -> None:
    late = late_observations(lake, commits_of(lake.log(FUSED_TRACKS), genesis_window(FUSED_TRACKS, 2)))
    assert set(raw_records_of(lake, late).column("record_number").to_pylist()) >= {2, 4}


@pytest.mark.parametrize(
    ("told", "problems"),
    [([2, 4], []), ([2], ["1 letters missing"]), ([2, 4, 5], ["1 letters unexpected"])],
    ids=["all", "one lost", "one too many"],
)
def test_a_late_observation_that_is_no_letter_is_seen__DP3_Q4(lake: Lake, told: list[int], problems: list[str]) -> None:
    windows = [genesis_window(RAW_RECORDS, 2), genesis_window(ELEMENT_SETS), genesis_window(FUSED_TRACKS, 2)]
    letters = [{"stage": FUSED_TRACKS.name, "segment_sha256": "s", "record_number": n} for n in told]
    commit(lake, DEAD_LETTERS, letters, windows=windows)
    log = lake.log(DEAD_LETTERS)
    assert dead_letters_balance(lake, log, log.commits()) == problems

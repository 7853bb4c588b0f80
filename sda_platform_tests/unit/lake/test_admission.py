"""What a commit does with rows that break the contract: left out and kept, marked, or nothing is committed."""

import dataclasses
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.dead_letters.rejected import refused_letters
from sda_platform.dead_letters.tables import REFUSING
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import BrokenContract
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform.registry import TABLES
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delta_tables import commit, genesis_window, no_engine, rows_of, with_delta_rs

NAN, INF = math.nan, math.inf


class DeltaRsLake(Lake):
    """A lake whose engine is delta-rs."""

    requires_lineage = False
    reads_unverified = True
    engine = staticmethod(with_delta_rs)

    def frame(self, table: Table, rows: pa.Table, *, stamped: bool = False) -> Any:
        return rows


def lake_in(directory: Path | str) -> Lake:
    return DeltaRsLake(str(directory), MissionClock(1, 0, 0.0), no_engine, "run")


def alone(table: Table) -> Table:
    return dataclasses.replace(table, consumes=(), reads=(), feedback=tuple)


def append(lake: Lake, table: Table, *rows: dict[str, Any]) -> None:
    segment = SegmentRef("radar", f"{lake.head(table).sequence}.seg", "0" * 64, 1, 1)
    plan = lake.plan_landing(table, lake.head(table), [segment])
    content = rows_of(table, rows).drop_columns([COMMIT_SEQUENCE])
    (lake.replace if table.replaces_rows else lake.append)(plan, content)


def letters(lake: Lake, table: Table, commits: int = 1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = refused_letters(lake, [(table, genesis_window(table, commits))], 9).to_pylist()
    return found


BAD_STATES: dict[str, list[Any]] = {
    "x_km": [NAN, INF, -INF],
    "covariance": [[], [1.0], [NAN] * 21, [1.0, *[0.0] * 20, 1.0], [-1.0, *[0.0] * 20], [0.0, 1.0, *[0.0] * 19]],
}
INDEFINITE = [1.0, 2.0, 1.0, *[0.0] * 18]
BAD: list[tuple[Table, str, Any]] = [
    *((table, name, value) for table in (TRACKS, FUSED_TRACKS) for name, bad in BAD_STATES.items() for value in bad),
    (TRACKS, "covariance", INDEFINITE),
    (TRACKS, "joint_covariance", [-1.0] + [0.0] * 35),
    (TRACKS, "kept_orbit", [0.0] * 43),
    (FUSED_TRACKS, "predicted_state", [0.0] * 5 + [INF]),
    (FUSED_TRACKS, "half_fits", [0.0] * 28),
    (FUSED_TRACKS, "observation_ids", []),
    (OBSERVATIONS, "elevation_rad", INF),
    (CONJUNCTION_ASSESSMENTS, "collision_probability", 1.5),
    (CONJUNCTION_ASSESSMENTS, "covariance_1", [NAN] * 21),
    (CONJUNCTION_ASSESSMENTS, "relative_velocity_radial_km_s", NAN),
]


@pytest.mark.parametrize(("table", "column", "value"), BAD)
def test_a_row_that_breaks_the_contract_becomes_a_dead_letter_and_the_others_flow(
    table: Table, column: str, value: Any, tmp_path: Path
) -> None:
    lake, key = lake_in(tmp_path), table.key[0]
    numbers = (1, 2, 3) if key == "norad_id" else ("1", "2", "3")
    append(lake, alone(table), *({key: n, **({column: value} if n in (2, "2") else {})} for n in numbers))
    assert sorted(map(str, lake.log(table).rows([key])[key].to_pylist())) == ["1", "3"]
    (letter,) = letters(lake, table)
    assert (letter["stage"], letter["error_kind"], letter["segment_name"]) == (
        table.name, "broken_contract", f"{table.name} commit 1",
    )  # fmt: skip
    assert f"{key} 2" in letter["error"] and f"{column} breaks" in letter["error"]
    assert f'"{column}":' in letter["payload"].decode()


DOUBLES = [(t, c) for t in TABLES if t.refuses_rows for c in t.columns if c.data_type.simpleString() == "double"]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(DOUBLES), st.sets(st.integers(0, 6), min_size=1), st.sampled_from([NAN, INF, -INF]))
def test_rows_written_and_refused_are_all_rows(chosen: tuple[Table, Column], bad: set[int], value: float) -> None:
    table, column = chosen
    key = table.key[0]
    names = [n + 1 if table.arrow_schema.field(key).type == pa.int64() else str(n) for n in range(7)]
    with TemporaryDirectory() as directory:
        lake = lake_in(directory)
        rows = [{key: name, **({column.name: value} if n in bad else {})} for n, name in enumerate(names)]
        append(lake, alone(table), *rows)
        assert set(lake.log(table).rows([key])[key].to_pylist()) == {names[n] for n in range(7) if n not in bad}
        assert len(letters(lake, table)) == len(bad) == lake.log(table).commits()[0].manifest.counts["refused"]


def test_a_refused_correction_leaves_the_entry_that_it_would_replace(tmp_path: Path) -> None:
    lake, table = lake_in(tmp_path), alone(CONJUNCTION_ASSESSMENTS)
    append(lake, table, {"event_id": "a", "sequence": 0}, {"event_id": "b", "sequence": 0})
    entries = [
        {
            "event_id": event,
            "sequence": number,
            "op": op,
            "miss_distance_km": NAN if (event, number) == ("a", 1) else 0.5,
        }
        for event in "ab"
        for number, op in ((0, "retract"), (1, "insert"))
    ]
    append(lake, table, *entries)
    rows = lake.log(table).rows(["event_id", "sequence", "op"]).to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", 0, "insert"), ("b", 0, "insert"), ("b", 0, "retract"), ("b", 1, "insert"),
    ]  # fmt: skip
    assert len(letters(lake, table, 2)) == 2


def test_a_crash_at_any_step_leaves_each_row_and_each_letter_once(tmp_path: Path) -> None:
    table, seen = dataclasses.replace(TRACKS, consumes=(OBSERVATIONS,), reads=()), set()
    for number, attempt in enumerate(crashes()):
        lake = lake_in(tmp_path / str(number))
        commit(lake, OBSERVATIONS, [{"observation_id": "a"}])

        def write(lake: Lake = lake) -> None:
            plan = lake.plan(table)
            if not plan.is_empty:
                lake.replace(plan, rows_of(table, [{"norad_id": 1}, {"norad_id": 2, "x_km": NAN}]))

        with attempt:
            write()
        write()
        assert lake.log(table).rows(["norad_id"]).to_pylist() == [{"norad_id": 1}]
        seen.add(str(letters(lake, table)))
        assert len(letters(lake, table)) == 1
    assert number >= 5, "it passes several points"
    assert len(seen) == 1, "a repeated commit gives the same letter"


def test_equal_rows_of_two_commits_are_two_letters_and_a_lost_file_is_said(tmp_path: Path) -> None:
    lake, table = lake_in(tmp_path), alone(TRACKS)
    for _ in range(2):
        append(lake, table, {"norad_id": 7, "x_km": NAN})
    assert len({letter["segment_sha256"] for letter in letters(lake, table, 2)}) == 2
    (tmp_path / "tracks" / "_refused" / f"{lake.log(table).commits()[0].manifest.nonce}.jsonl").unlink()
    lost = [letter for letter in letters(lake, table, 2) if letter["payload"] is None]
    assert len(lost) == 1 and "is lost" in lost[0]["error"]


def test_a_landed_record_that_breaks_the_contract_keeps_its_place_and_bytes_and_gets_an_error(tmp_path: Path) -> None:
    lake, table = lake_in(tmp_path), alone(RAW_RECORDS)
    rows = [{"record_number": n, "payload": b"%d" % n, "feed": "radar", "range_m": (5.0, NAN)[n]} for n in (0, 1)]
    append(lake, table, *({**row, "segment_name": "a.seg", "segment_sha256": "s"} for row in rows))
    good, bad = lake.log(table).rows().sort_by("record_number").to_pylist()
    assert (good["error_kind"], good["range_m"]) == (None, 5.0)
    assert (bad["payload"], bad["range_m"], bad["error_kind"]) == (b"1", None, "broken_contract")
    assert bad["error"] == "radar/a.seg record 1: range_m breaks less_than(1000000000.0); range_m breaks finite"


def test_a_table_that_may_leave_no_row_out_commits_nothing(tmp_path: Path) -> None:
    lake, table = lake_in(tmp_path), alone(ALERT_DELIVERIES)
    with pytest.raises(BrokenContract, match="1 rows break the contract, so that nothing was committed"):
        append(lake, table, {"sequence": 0}, {"sequence": -3})
    assert lake.head(table).sequence == 0


def test_every_table_that_refuses_rows_has_its_dead_letters() -> None:
    assert {table.name for table in REFUSING} == {table.name for table in TABLES if table.refuses_rows}

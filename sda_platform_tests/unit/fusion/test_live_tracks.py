"""The current view is the fold of the journal, whatever the order in which its windows were reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.fusion.checks import stale_tracks
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.scenes import SECOND_NS, START_NS
from sda_platform_tests.support.windows import observed_windows, some_catalogue

NEVER = TRACK_SCHEMA.empty_table()


@pytest.fixture(scope="module")
def windows() -> pa.Table:
    """Standing fits of a dozen objects through four windows."""
    fuse = window_fuser(some_catalogue(), 30 * SECOND_NS)
    return pa.concat_tables([fuse(rows) for rows in observed_windows(objects=12, windows=4)])


def followed(windows: pa.Table, previous: pa.Table = NEVER, *, seconds: float = 120.0) -> pa.Table:
    return live_tracks(
        windows, windows.select(CHANGE_COLUMNS), previous, some_catalogue(), START_NS + round(seconds * SECOND_NS)
    )


def test_one_row_an_object_at_its_newest_window(windows: pa.Table) -> None:
    rows = followed(windows)
    newest = windows.group_by("norad_id").aggregate([("epoch_time_ns", "max"), ("epoch_time_ns", "count")])
    told = {r["norad_id"]: (r["epoch_time_ns_max"], r["epoch_time_ns_count"]) for r in newest.to_pylist()}
    assert {r["norad_id"]: (r["epoch_time_ns"], r["windows"]) for r in rows.to_pylist()} == told
    assert {r["state"] for r in rows.to_pylist() if r["windows"] >= 3} == {"confirmed"}
    assert {r["state"] for r in rows.to_pylist() if r["windows"] < 3} <= {"new"}


def test_the_order_of_the_windows_changes_no_bit__DP3_Q1_G2(windows: pa.Table) -> None:
    expected = followed(windows)
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(windows.num_rows)
        assert followed(windows.take(pa.array(order))).equals(expected)


def test_a_window_that_was_corrected_moves_its_track_and_no_other(windows: pa.Table) -> None:
    before = followed(windows)
    number = windows["norad_id"][0].as_py()
    rows = windows.to_pylist()
    first = next(n for n, row in enumerate(rows) if row["norad_id"] == number)
    rows[first]["x_km"] += 0.05
    after = followed(pa.Table.from_pylist(rows, windows.schema), before)
    changed = [
        a["norad_id"] for a, b in zip(after.to_pylist(), before.to_pylist(), strict=True) if a["x_km"] != b["x_km"]
    ]
    assert changed == [number]


def test_time_makes_tracks_coast_and_only_those_rows_are_written(windows: pa.Table) -> None:
    before = followed(windows)
    nothing = windows.slice(0, 0).select(CHANGE_COLUMNS)
    soon = live_tracks(windows.slice(0, 0), nothing, before, some_catalogue(), START_NS + 130 * SECOND_NS)
    assert soon.num_rows == 0
    later = live_tracks(windows.slice(0, 0), nothing, before, some_catalogue(), START_NS + 400 * SECOND_NS)
    assert set(later["state"].to_pylist()) == {"coasting"}
    assert later["x_km"].to_pylist() == [
        r["x_km"] for r in before.to_pylist() if r["norad_id"] in later["norad_id"].to_pylist()
    ], "the state stays at its epoch"


def test_a_manoeuvre_stays_known_after_its_windows_have_left_the_memory__48(windows: pa.Table) -> None:
    first_ns, rows = int(windows["epoch_time_ns"].to_numpy().min()), followed(windows)
    for at_ns, kept in ((first_ns - SECOND_NS, True), (int(windows["epoch_time_ns"].to_numpy().max()), False)):
        column = pa.array([at_ns] * rows.num_rows, pa.int64())
        moved = rows.set_column(rows.schema.get_field_index("last_manoeuvre_ns"), "last_manoeuvre_ns", column)
        after = followed(windows, moved)
        assert set(after["manoeuvre_time_ns"].to_pylist()) == {None}
        assert set(after["last_manoeuvre_ns"].to_pylist()) == ({at_ns} if kept else {None}), "else it is refuted"


def test_an_object_whose_every_window_was_retracted_is_lost(windows: pa.Table) -> None:
    before = followed(windows)
    number = before["norad_id"][0].as_py()
    gone = windows.filter(pc.equal(windows["norad_id"], number)).select(CHANGE_COLUMNS)
    after = live_tracks(windows.slice(0, 0), gone, before, some_catalogue(), START_NS + 130 * SECOND_NS)
    assert [(r["norad_id"], r["state"]) for r in after.to_pylist()] == [(number, "lost")]


def test_windows_of_an_earlier_version_without_their_prior_are_left_out(windows: pa.Table) -> None:
    rows = windows.to_pylist()
    for row in rows:
        row["predicted_covariance"] = None
    assert followed(pa.Table.from_pylist(rows, windows.schema)).num_rows == 0


def test_the_check_sees_a_track_that_did_not_follow_its_windows(windows: pa.Table, tmp_path: Path) -> None:
    lake = lake_at(tmp_path, now_ns=START_NS + 120 * SECOND_NS)
    journal: list[dict[str, Any]] = [{**row, "sequence": 0, "op": "insert"} for row in windows.to_pylist()]
    commit(lake, FUSED_TRACKS, journal)
    rows = followed(windows).to_pylist()
    rows[3]["epoch_time_ns"] -= 30 * SECOND_NS
    commit(lake, TRACKS, rows[1:], windows=[genesis_window(FUSED_TRACKS)])
    log = lake.log(TRACKS)
    (problem,) = stale_tracks(lake, log, log.commits())
    assert problem == f"2 objects have newer windows than their tracks, such as {rows[0]['norad_id']}"

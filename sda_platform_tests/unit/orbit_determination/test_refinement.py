"""Our own element sets: when a track is refined, what is offered, and how the catalogue takes it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sda_platform.definitions  # noqa: F401  # declares what the tables promise
from sda_platform.catalog.decoding import decode
from sda_platform.catalog.sources import SOURCE_PRIORITY
from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.landing.zone import LandingZone
from sda_platform.orbit_determination.checks import unsound_refinements
from sda_platform.orbit_determination.publication import publish
from sda_platform.orbit_determination.refinement import due, refined
from sda_platform.orbit_determination.tables import ELEMENT_PUBLICATIONS, REFINED_ELEMENTS
from sda_platform.orchestration.table_checks import review_declared
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.scenes import SECOND_NS, START_NS
from sda_platform_tests.support.windows import WINDOW_NS, beacons, published, some_catalogue

WINDOWS = 10
AS_OF_NS = START_NS + WINDOWS * WINDOW_NS
NONE = pa.table({"norad_id": pa.array([], pa.int64()), "epoch_time_ns": pa.array([], pa.int64())})


@pytest.fixture(scope="module")
def windows() -> pa.Table:
    """Five minutes of three satellites that report where they are."""
    fuse = window_fuser(some_catalogue(), WINDOW_NS)
    return pa.concat_tables([fuse(rows) for rows in beacons(objects=3, windows=WINDOWS, seed=14)])


@pytest.fixture(scope="module")
def tracks(windows: pa.Table) -> pa.Table:
    return live_tracks(windows, windows.select(CHANGE_COLUMNS), TRACK_SCHEMA.empty_table(), some_catalogue(), AS_OF_NS)


def of_catalogue() -> dict[int, dict[str, Any]]:
    named = {"international_designator": None}
    return {r["norad_id"]: {**r, **named, "object_name": f"N{r['norad_id']}"} for r in published(some_catalogue())}


def changed(rows: pa.Table, **values: Any) -> pa.Table:
    return pa.Table.from_pylist([{**row, **values} for row in rows.to_pylist()], rows.schema)


def test_a_track_is_due_when_it_lives_was_seen_often_and_not_refined_lately(tracks: pa.Table) -> None:
    assert due(tracks, NONE).num_rows == tracks.num_rows == 3
    assert due(changed(tracks, state="new"), NONE).num_rows == 0
    assert due(changed(tracks, state="lost"), NONE).num_rows == 0
    assert due(changed(tracks, windows=5), NONE).num_rows == 0
    number, epoch_ns = tracks["norad_id"][0].as_py(), tracks["epoch_time_ns"][0].as_py()
    lately = pa.table({"norad_id": [number], "epoch_time_ns": [epoch_ns - 1799 * SECOND_NS]})
    assert number not in due(tracks, lately)["norad_id"].to_pylist()
    assert due(tracks, changed(lately, epoch_time_ns=epoch_ns - 1800 * SECOND_NS)).num_rows == 3


def test_what_is_refined_is_clearly_better_than_what_was_published(windows: pa.Table, tracks: pa.Table) -> None:
    rows = refined(windows, tracks, of_catalogue(), AS_OF_NS).to_pylist()
    assert len(rows) == 3
    for row in rows:
        assert row["position_sigma_m"] < row["published_sigma_m"] / 5
        assert row["epoch_time_ns"] == START_NS + WINDOWS * WINDOW_NS - WINDOW_NS // 2
        assert row["object_name"] == f"N{row['norad_id']}"


def test_a_track_after_a_manoeuvre_is_refined_from_what_came_since_only(windows: pa.Table, tracks: pa.Table) -> None:
    moved = changed(tracks, manoeuvre_time_ns=START_NS + 3 * WINDOW_NS)
    assert set(refined(windows, moved, of_catalogue(), AS_OF_NS)["windows"].to_pylist()) == {WINDOWS - 3}
    just_now = changed(tracks, manoeuvre_time_ns=START_NS + 7 * WINDOW_NS)
    assert refined(windows, just_now, of_catalogue(), AS_OF_NS).num_rows == 0, "too few windows since"


def test_they_are_offered_once_and_decoded_as_any_other_source(
    windows: pa.Table, tracks: pa.Table, tmp_path: Path
) -> None:
    lake, zone = lake_at(tmp_path / "lake", now_ns=AS_OF_NS), LandingZone(str(tmp_path / "landing"), ELEMENTS_FEED)
    rows = refined(windows, tracks, of_catalogue(), AS_OF_NS)
    commit(lake, REFINED_ELEMENTS, rows.to_pylist())
    review_declared(lake, REFINED_ELEMENTS)
    ledger = publish(lake, lake.plan(ELEMENT_PUBLICATIONS), zone)
    assert publish(lake, lake.plan(ELEMENT_PUBLICATIONS), zone) == ledger, "a repeated run seals nothing else"
    (row,) = ledger.to_pylist()
    assert row["source_table"] == "refined_elements"
    assert row["segment_name"].startswith("refined_elements-00000001-")
    assert row["element_sets"] == 3
    (segment,) = zone.pending()
    assert segment.meta is not None
    data = (tmp_path / "landing" / ELEMENTS_FEED / "pending" / segment.name).read_bytes()
    decoded = decode(data, segment.meta)
    assert decoded["error"].null_count == 3, decoded["error"].to_pylist()
    assert set(decoded["originator"].to_pylist()) == {OWN_ORIGINATOR}
    assert set(decoded["source_priority"].to_pylist()) == {15}
    assert SOURCE_PRIORITY["CELESTRAK"] < SOURCE_PRIORITY[OWN_ORIGINATOR] < SOURCE_PRIORITY["18 SPCS"]
    for name in ("epoch_time_ns", "mean_motion_rev_per_day", "mean_anomaly_deg", "bstar_per_earth_radius"):
        assert np.array_equal(decoded[name].to_numpy(), rows.sort_by("norad_id")[name].to_numpy()), name


def test_the_check_sees_a_set_that_is_no_better(windows: pa.Table, tracks: pa.Table, tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    rows = refined(windows, tracks, of_catalogue(), AS_OF_NS).to_pylist()
    rows[1]["position_sigma_m"] = rows[1]["published_sigma_m"]
    commit(lake, REFINED_ELEMENTS, rows)
    log = lake.log(REFINED_ELEMENTS)
    assert unsound_refinements(lake, log, log.commits()) == ["1 are no better than the published sets"]

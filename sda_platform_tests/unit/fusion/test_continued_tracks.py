"""A track that continues from the orbit it keeps has the result of one that repeats all its windows."""

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, KEPT_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.tables import TRACK_MEMORY_NS
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.space_weather import SpaceWeather
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.kept_orbits import KEPT_BEFORE_NS
from sda_platform_tests.support.scenes import START_NS
from sda_platform_tests.support.windows import WINDOW_NS, beacons, some_catalogue

NEVER = TRACK_SCHEMA.empty_table()
WINDOWS = 30
STILL = (
    "norad_id",
    "windows",
    "track_id",
    "state",
    "streak",
    "unexplained_windows",
    "manoeuvre_time_ns",
    "kept_time_ns",
)
NUMBERS = ("x_km", "y_km", "z_km", "vx_km_s", "vy_km_s", "vz_km_s", "position_sigma_m", "innovation", "drag_area_m2_kg")
STORM = Dynamics(
    SpaceWeather(START_NS // 86_400_000_000_000, np.full(2, 200.0), np.full(2, 180.0), np.full((2, 8), 80.0))
)


@pytest.fixture(scope="module")
def windows() -> pa.Table:
    """A quarter of an hour of four satellites that report where they are, in order of time."""
    fuse = window_fuser(some_catalogue(), WINDOW_NS)
    rows = pa.concat_tables([fuse(each) for each in beacons(objects=4, windows=WINDOWS)])
    return rows.sort_by([("epoch_time_ns", "ascending"), ("norad_id", "ascending")])


def until(windows: pa.Table, number: int) -> pa.Table:
    return windows.filter(pc.less(windows["epoch_time_ns"], START_NS + number * WINDOW_NS))


def followed(
    windows: pa.Table,
    previous: pa.Table = NEVER,
    changes: pa.Table | None = None,
    catalogue: Propagator | None = None,
    dynamics: Dynamics | None = None,
    as_of_ns: int | None = None,
) -> pa.Table:
    """The tracks of these windows a window later; all windows have changed where ``changes`` does not say it."""
    changed = windows.select(CHANGE_COLUMNS) if changes is None else changes
    now_ns = pc.max(windows["epoch_time_ns"]).as_py() + WINDOW_NS if as_of_ns is None else as_of_ns
    return live_tracks(windows, changed, previous, catalogue or some_catalogue(), now_ns, dynamics or Dynamics())


def in_runs(windows: pa.Table, size: int) -> pa.Table:
    """The tracks after runs that have ``size`` new windows of each object."""
    rows = NEVER
    for last in range(size, WINDOWS + size, size):
        known = until(windows, last)
        new = pc.greater_equal(known["epoch_time_ns"], START_NS + (last - size) * WINDOW_NS)
        rows = followed(known, rows, known.filter(new).select(CHANGE_COLUMNS))
    return rows


def assert_same(one: pa.Table, other: pa.Table) -> None:
    assert one.select(STILL).equals(other.select(STILL))
    for name in NUMBERS:
        assert one[name].to_pylist() == pytest.approx(other[name].to_pylist(), rel=1e-7, abs=1e-9), name


def misled(rows: pa.Table) -> pa.Table:
    """The rows with kept orbits that are 5 m away: whoever uses them has another result."""
    moved = [None if orbit is None else [orbit[0] + 0.005, *orbit[1:]] for orbit in rows["kept_orbit"].to_pylist()]
    place = rows.schema.get_field_index("kept_orbit")
    return rows.set_column(place, rows.schema.field(place), pa.array(moved, rows.schema.field(place).type))


def test_a_track_is_the_same_whatever_the_number_of_runs(windows: pa.Table) -> None:
    whole = followed(windows)
    assert not whole["manoeuvre_time_ns"].is_valid().to_numpy().any()
    for size in (1, 3, 7):
        assert_same(in_runs(windows, size), whole)


def test_the_filter_continues_from_the_kept_orbit(windows: pa.Table) -> None:
    early = followed(until(windows, WINDOWS - 2))
    newest_ns = START_NS + (WINDOWS - 2) * WINDOW_NS - WINDOW_NS // 2
    assert set(early["kept_time_ns"].to_pylist()) == {newest_ns - KEPT_BEFORE_NS}
    new = windows.filter(pc.greater(windows["epoch_time_ns"], newest_ns)).select(CHANGE_COLUMNS)
    with pytest.raises(AssertionError):
        assert_same(followed(windows, misled(early), new), followed(windows))


def test_the_filter_repeats_all_windows_after_a_change_before_the_kept_orbit(windows: pa.Table) -> None:
    early = misled(followed(until(windows, WINDOWS - 2)))
    assert_same(followed(windows, early, windows.slice(0, 4).select(CHANGE_COLUMNS)), followed(windows))


def test_the_filter_repeats_all_windows_with_other_elements_or_weather(windows: pa.Table) -> None:
    early = misled(followed(until(windows, WINDOWS - 2)))
    new = windows.slice(windows.num_rows - 4).select(CHANGE_COLUMNS)
    elements = some_catalogue().elements
    newer = Propagator(dataclasses.replace(elements, mean_anomaly_deg=elements.mean_anomaly_deg + 0.001))
    assert_same(followed(windows, early, new, newer), followed(windows, catalogue=newer))
    assert_same(followed(windows, early, new, dynamics=STORM), followed(windows, dynamics=STORM))


def test_the_filter_repeats_all_windows_when_the_memory_has_moved_on(windows: pa.Table) -> None:
    early = misled(followed(until(windows, WINDOWS - 2)))
    new = windows.slice(windows.num_rows - 4).select(CHANGE_COLUMNS)
    later_ns = START_NS + TRACK_MEMORY_NS + 2 * WINDOW_NS
    moved, whole = followed(windows, early, new, as_of_ns=later_ns), followed(windows, as_of_ns=later_ns)
    chosen = whole.filter(pc.less(whole["windows"], WINDOWS))["norad_id"].combine_chunks()
    assert len(chosen), "some objects have a shorter memory"
    assert_same(*(rows.filter(pc.is_in(rows["norad_id"], chosen)) for rows in (moved, whole)))


def test_a_manoeuvre_is_found_by_a_filter_that_continues_and_nothing_is_kept_after_it(windows: pa.Table) -> None:
    rows = windows.to_pylist()
    number, burn_ns = rows[0]["norad_id"], START_NS + (WINDOWS - 6) * WINDOW_NS
    for row in rows:
        since_s = (row["epoch_time_ns"] - burn_ns) / 1e9
        if row["norad_id"] == number and since_s > 0:
            row["vx_km_s"] += 0.02
            row["x_km"] += 0.02 * since_s
    burnt = pa.Table.from_pylist(rows, windows.schema)
    whole = followed(burnt)
    found = whole.filter(pc.equal(whole["norad_id"], number)).to_pylist()[0]
    assert found["manoeuvre_time_ns"] > burn_ns
    assert {found[name] for name in KEPT_COLUMNS} == {None}
    assert_same(in_runs(burnt, 1), whole)


def test_an_object_without_windows_keeps_nothing(windows: pa.Table) -> None:
    early = followed(windows)
    number = early["norad_id"][0].as_py()
    gone = pc.equal(windows["norad_id"], number)
    after = followed(windows.filter(pc.invert(gone)), early, windows.filter(gone).select(CHANGE_COLUMNS))
    (row,) = after.filter(pc.equal(after["norad_id"], number)).to_pylist()
    assert row["state"] == "lost"
    assert {row[name] for name in KEPT_COLUMNS} == {None}

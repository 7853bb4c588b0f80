"""Windows of directions from several telescopes keep the fits of two halves of them, for the filter of tracks."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.tables import STATE_COLUMNS, covariance_from_lower
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.progress import forget
from sda_platform_tests.support.scenes import START_NS, catalogue, link_reports, observe, stack, visible
from sda_platform_tests.support.windows import WINDOW_NS, as_rows

WINDOWS = 5
OFF_KM = np.array([0.0, 0.0, 6.0])


@cache
def telescopes() -> tuple[Propagator, list[tuple[str, str]]]:
    """Objects that two telescopes see, and whom the names of both."""
    seen = visible("optical", START_NS, margin_deg=10.0)
    sources: dict[int, list[str]] = {}
    for row, name in zip(seen.index.tolist(), seen.source_id.tolist(), strict=True):
        sources.setdefault(row, []).append(name)
    high = catalogue().elements.mean_motion_rev_per_day < 3.0
    both = {row: names for row, names in sources.items() if len(names) == 2 and high[row]}
    rows = sorted(both)[::40][:8]
    assert len(rows) == 8
    return catalogue().take(np.array(rows)), [(both[row][0], both[row][1]) for row in rows]


def directions(window: int, counts: tuple[int, int], off_km: float = 0.0) -> ObservationArrays:
    """So many observations of each object by its first telescope and by its second one."""
    propagator, names = telescopes()
    row = np.repeat(np.arange(len(names)), sum(counts))
    source = np.array([name for pair in names for name, count in zip(pair, counts, strict=True) for _ in range(count)])
    rng = np.random.default_rng([3, window])
    time_ns = START_NS + window * WINDOW_NS + rng.integers(0, WINDOW_NS, len(row))
    _, r, v = propagator.at(row, time_ns)
    return observe(source, time_ns, r + off_km * OFF_KM / 6.0, v, rng)


def beacons(window: int) -> ObservationArrays:
    propagator, names = telescopes()
    row = np.arange(len(names))
    time_ns = np.full(len(row), START_NS + window * WINDOW_NS + WINDOW_NS // 2)
    _, r, v = propagator.at(row, time_ns)
    sources = np.array([f"isl-{number}" for number in propagator.elements.norad_id.tolist()])
    return link_reports(sources, time_ns, r, v, np.random.default_rng([5, window]))


def fused(observations: ObservationArrays) -> pa.Table:
    forget()  # ids are numbers, so other observations may have the same ones
    rows = as_rows(observations)
    rows = rows.append_column("native_track_id", pa.nulls(rows.num_rows, pa.string()))
    return window_fuser(telescopes()[0], WINDOW_NS)(rows)


@pytest.mark.parametrize("counts", [(4, 2), (2, 4), (1, 1)])
def test_the_halves_are_the_fits_of_the_leading_telescope_and_of_the_others(counts: tuple[int, int]) -> None:
    observations = directions(0, counts)
    found = fused(observations)
    assert found.num_rows == 8 and not found["half_fits"].null_count
    names = telescopes()[1]
    first = [counts[0] > counts[1] or (counts[0] == counts[1] and pair[0] < pair[1]) for pair in names]
    is_first = np.repeat(first, sum(counts))
    of_first = np.tile(np.repeat([True, False], counts), len(names))
    terms = np.array(found["half_fits"].to_pylist()).reshape(-1, 2, 27)
    for half, chosen in enumerate((of_first == is_first, of_first != is_first)):
        alone = fused(observations.take(np.flatnonzero(chosen)))
        assert alone["norad_id"].equals(found["norad_id"]) and alone["half_fits"].null_count == 8
        states = np.column_stack([alone[name].to_numpy() for name in STATE_COLUMNS])
        covariances = covariance_from_lower(alone["covariance"].to_pylist())
        sigma = np.sqrt(np.einsum("gii->gi", covariances))
        assert (np.abs(terms[:, half, :6] - states) < 0.01 * sigma).all(), "but for the order of the observations"
        assert covariance_from_lower(terms[:, half, 6:]) == pytest.approx(covariances, rel=0.02, abs=1e-9)


def test_windows_with_reported_states_keep_none() -> None:
    assert fused(stack(directions(0, (2, 2)), beacons(0)))["half_fits"].null_count == 8


def test_a_track_that_two_telescopes_contradict_in_one_window_is_suspected() -> None:
    before = [fused(beacons(window)) for window in range(WINDOWS)]
    last = fused(directions(WINDOWS, (2, 1), off_km=6.0))
    windows = pa.concat_tables([*before, last])
    seen = last["norad_id"].to_pylist()
    assert len(seen) >= 7, "one is out of its gate"
    tracks = followed(windows)
    assert tracks.filter(tracks["manoeuvre_time_ns"].is_valid())["norad_id"].to_pylist() == sorted(seen)
    assert (
        pc.unique(tracks["manoeuvre_time_ns"].drop_null()).to_pylist() == pc.unique(last["epoch_time_ns"]).to_pylist()
    )

    column = windows.column_names.index("half_fits")
    without = followed(windows.set_column(column, "half_fits", pa.nulls(windows.num_rows, pa.list_(pa.float64()))))
    assert without["manoeuvre_time_ns"].null_count == 8, "as rows of an earlier version: a second window must confirm"
    assert (
        without["unexplained_windows"].to_pylist()
        == pc.is_in(without["norad_id"], pa.array(seen)).cast("int64").to_pylist()
    )


def followed(windows: pa.Table) -> pa.Table:
    now_ns = pc.max(windows["epoch_time_ns"]).as_py() + WINDOW_NS
    return live_tracks(windows, windows.select(CHANGE_COLUMNS), TRACK_SCHEMA.empty_table(), telescopes()[0], now_ns)

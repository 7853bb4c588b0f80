"""A window fused slice by slice: what it would be without slices, and the same bytes however it came together."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays, stacked
from sda_platform.orbits.tracking import progress
from sda_platform.orbits.tracking.association import associate
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.progress import forget, fuse_window
from sda_platform.orbits.tracking.slices import SLICE_NS, Reference, Slice, accumulate_slices
from sda_platform.orbits.tracking.window import FitWindow, FusedWindow
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    displaced,
    link_reports,
    observe,
    prior_draw,
    visible,
)

MID_NS = START_NS + 15 * SECOND_NS


@dataclasses.dataclass(frozen=True)
class Scene:
    """Observations in the order of time, the objects they are of, and a small catalogue that holds these."""

    observations: ObservationArrays
    tracks: TextArray
    truth: IntArray
    catalogue: Propagator

    def fused(self, rows: IntArray, **columns: np.ndarray) -> FusedWindow:
        taken = changed(self.observations, **columns).take(rows)
        if columns:
            forget()
        return fuse_window(taken, self.tracks[rows], rows, taken.sensor_time_ns, self.catalogue, MID_NS)

    def whole(self, **columns: np.ndarray) -> tuple[IntArray, StateFits]:
        """The objects, and their fits from all observations at once."""
        observations = changed(self.observations, **columns)
        found = associate(observations, self.catalogue, tracks=self.tracks)
        seen = np.flatnonzero(found.index >= 0)
        objects, group = np.unique(found.index[seen], return_inverse=True)
        middle_ns = np.full(len(objects), MID_NS)
        return found.index, fit_windows(observations.take(seen), group, self.catalogue, objects, middle_ns)

    @property
    def every(self) -> IntArray:
        return np.arange(len(self.tracks))


@cache
def scene(kind: str = "radar", objects: int = 30, readings: int = 10) -> Scene:
    rng = np.random.default_rng(5)
    every = visible(kind, MID_NS)
    seen = every.take(rng.choice(len(every.index), objects, replace=False))
    part = np.union1d(every.index, np.arange(0, len(catalogue()), 40))
    row = np.repeat(np.arange(objects), readings)
    time_ns = START_NS + rng.integers(0, 30 * SECOND_NS, len(row))
    distinct, which = np.unique(seen.index, return_inverse=True)
    deviation = prior_draw(distinct, np.full(len(distinct), MID_NS), rng)[which]
    r, v = displaced(seen.index[row], time_ns, deviation[row], seen.time_ns[row])
    beacons = row % 10 == 0
    numbers = catalogue().elements.norad_id[seen.index[row[beacons]]]
    names = np.array([f"isl-{number}" for number in numbers.tolist()])
    parts = [
        observe(seen.source_id[row], time_ns, r, v, rng),
        link_reports(names, time_ns[beacons], r[beacons], v[beacons], rng),
    ]
    order = np.argsort(np.concatenate([time_ns, time_ns[beacons]]), kind="stable")
    tracks = np.concatenate([np.where(row % 3 == 0, "", row.astype(np.str_)), np.full(beacons.sum(), "")])
    truth = np.searchsorted(part, seen.index[np.concatenate([row, row[beacons]])])
    return Scene(stacked(parts).take(order), tracks[order], truth[order], catalogue().take(part))


def as_bytes(fused: FusedWindow) -> list[bytes]:
    arrays = [getattr(fused.fits, field.name) for field in dataclasses.fields(fused.fits)]
    return [array.tobytes() for array in (fused.objects, fused.group, fused.refitted, *arrays)]


def sigmas_apart(left: StateFits, right: StateFits) -> FloatArray:
    apart = np.hstack([left.r_teme_km - right.r_teme_km, left.v_teme_km_s - right.v_teme_km_s])
    weighed = np.linalg.solve(right.covariance_teme, apart[:, :, None])[:, :, 0]
    squared: FloatArray = np.einsum("gi,gi->g", apart, weighed)
    return np.sqrt(squared)


@pytest.mark.parametrize("kind", ["radar", "optical"])
def test_slices_give_the_same_objects_and_states_as_all_observations_at_once(kind: str) -> None:
    taken = scene(kind)
    fused = taken.fused(taken.every)
    index, fits = taken.whole()
    np.testing.assert_array_equal(np.where(fused.group >= 0, fused.objects[fused.group], -1), index)
    assert np.mean(index == taken.truth) > 0.97
    assert fused.refitted.mean() < 0.1
    assert sigmas_apart(fused.fits, fits).max() < 0.1
    np.testing.assert_array_equal(fused.fits.degrees_of_freedom, fits.degrees_of_freedom)
    np.testing.assert_allclose(fused.fits.chi_square, fits.chi_square, rtol=0.01)


@pytest.mark.parametrize("seed", range(2))
def test_early_accumulation_and_late_observations_change_no_byte__DP3_G2(seed: int) -> None:
    taken, rng = scene(), np.random.default_rng(seed)
    forget()
    at_once = as_bytes(taken.fused(taken.every))
    forget()
    arrival = np.argsort(taken.observations.sensor_time_ns + rng.integers(0, 5 * SECOND_NS, len(taken.tracks)))
    for until in np.linspace(0, len(arrival), 4).astype(int)[:-1].tolist():
        assert as_bytes(taken.fused(np.sort(arrival[:until]))) != at_once
        if rng.random() < 0.3:
            forget()
    assert as_bytes(taken.fused(taken.every)) == at_once


def test_only_new_slices_and_those_with_late_observations_are_accumulated(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = []

    def noting(observations: ObservationArrays, *rest: Any) -> list[Slice]:
        weighed.append(sorted({*((observations.sensor_time_ns - START_NS) // SLICE_NS).tolist()}))
        return accumulate_slices(observations, *rest)

    monkeypatch.setattr(progress, "accumulate_slices", noting)
    taken = scene()
    slices = (taken.observations.sensor_time_ns - START_NS) // SLICE_NS
    late = np.flatnonzero(slices == slices[len(slices) // 3])[0]
    begun = np.flatnonzero(slices < slices[-1])
    forget()
    taken.fused(np.delete(begun, late))
    taken.fused(taken.every)
    taken.fused(taken.every)
    assert weighed[1:] == [[slices[late], slices[-1]]]


def test_an_interrupted_accumulation_counts_no_observation_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = scene()
    forget()
    at_once = as_bytes(taken.fused(taken.every))
    forget()
    taken.fused(taken.every[: len(taken.tracks) // 2])
    add, absorbed = FitWindow.add, []

    def failing(self: FitWindow, part: Slice) -> None:
        absorbed.append(part)
        if len(absorbed) == 3:
            raise MemoryError
        add(self, part)

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(FitWindow, "add", failing)
        taken.fused(taken.every)
    assert as_bytes(taken.fused(taken.every)) == at_once


def test_outliers_are_rejected_as_from_all_observations_at_once() -> None:
    taken = scene()
    rows = np.flatnonzero((taken.observations.source_kind == "radar") & (taken.tracks != ""))
    spoiled = rows[np.unique(taken.truth[rows], return_index=True)[1]]
    range_m = taken.observations.range_m.copy()
    range_m[spoiled] += 400.0
    fused, (_, fits) = taken.fused(taken.every, range_m=range_m), taken.whole(range_m=range_m)
    assert fused.refitted.mean() < 0.2 and not fused.fits.used[spoiled].any()
    np.testing.assert_array_equal(fused.fits.outliers_rejected, fits.outliers_rejected)
    np.testing.assert_array_equal(fused.fits.radar_count, fits.radar_count)
    assert sigmas_apart(fused.fits, fits).max() < 0.1
    np.testing.assert_allclose(fused.fits.chi_square, fits.chi_square, rtol=0.01)


@pytest.mark.parametrize(("readings", "looked_at"), [(30, True), (150, False)])
def test_sound_observations_are_rejected_with_an_outlier_only_where_negligible(readings: int, looked_at: bool) -> None:
    taken = scene(objects=4, readings=readings)
    tracked = np.flatnonzero(taken.tracks != "")
    together = taken.observations.sensor_time_ns[tracked] // SLICE_NS * len(taken.catalogue) + taken.truth[tracked]
    _, first, count = np.unique(together, return_index=True, return_counts=True)
    spoiled = tracked[first[count > 1][0]]
    range_m = taken.observations.range_m.copy()
    range_m[spoiled] += 400.0
    fused, (_, fits) = taken.fused(taken.every, range_m=range_m), taken.whole(range_m=range_m)
    whose = np.searchsorted(fused.objects, taken.truth[spoiled])
    assert fused.refitted[whose] == looked_at and fits.outliers_rejected[whose] == 1
    assert (fused.fits.outliers_rejected[whose] == 1) == looked_at and not fused.fits.used[spoiled]
    assert sigmas_apart(fused.fits, fits)[whose] < (1e-9 if looked_at else 0.5)


def test_an_uncertain_clock_is_fitted_with_all_its_observations() -> None:
    taken = scene()
    quality = np.full(len(taken.tracks), "ntp_synced")
    fused, (_, fits) = taken.fused(taken.every, clock_quality=quality), taken.whole(clock_quality=quality)
    assert fused.refitted.all()
    np.testing.assert_array_equal(fused.fits.covariance_teme, fits.covariance_teme)


def test_nothing_seen_is_no_fit() -> None:
    fused = scene().fused(np.zeros(0, dtype=np.int64))
    assert not len(fused.objects) and not len(fused.group) and not len(fused.fits.used)


def test_states_between_knots_are_sgp4s_own() -> None:
    reference, index = Reference(catalogue(), MID_NS), np.arange(0, len(catalogue()), 50)
    for offset_s in (-25, -15, -4.3, 0, 11.1, 19.9):
        time_ns = np.full(len(index), MID_NS + int(offset_s * 1e9))
        (error, r, v), (expected, r_sgp4, v_sgp4) = reference.at(index, time_ns), catalogue().at(index, time_ns)
        sound = (error == 0) & (expected == 0)
        assert sound.mean() > 0.99
        np.testing.assert_allclose(r[sound], r_sgp4[sound], rtol=0, atol=1e-7)
        np.testing.assert_allclose(v[sound], v_sgp4[sound], rtol=0, atol=1e-9)

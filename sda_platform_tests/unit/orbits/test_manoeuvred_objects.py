"""Observations beyond the gate of a manoeuvred object are of it again, where several observers agree on its path."""

import dataclasses
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.stats import chi2

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.fuse import in_order, track_names
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.manoeuvre_evidence import MANOEUVRE_COVARIANCE
from sda_platform.orbits.tracking.manoeuvred_objects import with_manoeuvred
from sda_platform.orbits.tracking.observer_halves import fit_halves
from sda_platform.orbits.tracking.progress import forget, fuse_window
from sda_platform.orbits.tracking.window import FusedWindow
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.scenarios import Incidents, Manoeuvre, with_manoeuvre
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.third_party import (
    AROUND,
    ERROR_S,
    WINDOW_NS,
    around,
    catalogue_table,
    propagator_of,
)

FLEET, THIRD = 41774, 61063
MIDDLE_NS = parse_iso_ns("2024-11-01T06:00:54Z")
SECOND_NS, SEED = 1_000_000_000, 5
CONSTELLATION = dataclasses.replace(AROUND, rate_per_s=12)


@dataclasses.dataclass(frozen=True)
class Window:
    """Half a minute after eight of two dozen satellites burned; ``of`` (m,) is the object of each observation."""

    observations: ObservationArrays
    tracks: np.ndarray
    names: np.ndarray
    of: np.ndarray
    burned: list[int]
    catalogue: Propagator
    sky: Sky

    def take(self, rows: np.ndarray) -> "Window":
        columns = {name: getattr(self, name)[rows] for name in ("tracks", "names", "of")}
        return dataclasses.replace(self, observations=self.observations.take(rows), **columns)

    def within(self) -> FusedWindow:
        """The fits of objects within their gates."""
        times_ns = self.observations.sensor_time_ns
        return fuse_window(self.observations, self.tracks, self.names, times_ns, self.catalogue, MIDDLE_NS)

    def fused(self) -> FusedWindow:
        return with_manoeuvred(self.observations, self.within(), self.catalogue, MIDDLE_NS)

    def beyond(self) -> set[int]:
        """The objects that are found beyond their gates."""
        found = self.fused()
        return set(self.catalogue.elements.norad_id[found.objects[found.is_manoeuvred]].tolist())

    def outside(self) -> np.ndarray:
        """Which observations (m,) of satellites that burned are of no object within its gate."""
        return (self.within().group < 0) & np.isin(self.of, self.burned)


@cache
def window(*, burn_s: float = 115.0, dv_m_s: float = 30.0) -> Window:
    """The burns are across the orbits, so long before the window's middle."""
    table = catalogue_table()
    objects = around(table, [FLEET, THIRD], MIDDLE_NS, 24)
    burned, burn_ns = objects[2:18:2], MIDDLE_NS - round(burn_s * SECOND_NS)
    burns = [Manoeuvre(number, burn_ns, (0.0, 0.0, dv_m_s)) for number in burned]
    plan = ObservingPlan(catalogue_error_s=ERROR_S, constellation=CONSTELLATION)
    begin_ns = burn_ns - SECOND_NS
    segments = list(simulate(
        "constellation", start_time_ns=MIDDLE_NS - WINDOW_NS // 2, duration_s=WINDOW_NS / SECOND_NS, seed=SEED,
        objects=objects, truth_from_ns=begin_ns, plan=plan, incidents=Incidents(manoeuvres=tuple(burns)),
    ))  # fmt: skip
    rows = decode_segments([(each.data, each.meta) for each in segments])
    rows = in_order(rows.filter(rows["error_kind"].is_null()).drop_columns(["payload", "segment"]))
    truth = pa.concat_tables([each.truth for each in segments])
    of = dict(zip(truth["observation_id"].to_pylist(), truth["norad_id"].to_pylist(), strict=True))
    sky = Sky.of_catalogue(table, objects=objects, seed=SEED, catalogue_error_s=ERROR_S, start_time_ns=begin_ns)
    for burn in burns:
        sky = with_manoeuvre(sky, burn)
    names = np.asarray(rows["observation_id"].to_pylist())
    return Window(
        observations=ObservationArrays.from_columns(arrays(rows)),
        tracks=track_names(rows),
        names=names,
        of=np.array([of[name] for name in names.tolist()]),
        burned=burned,
        catalogue=propagator_of(table.filter(pc.is_in(table["norad_id"], pa.array(objects)))),
        sky=sky,
    )


def test_every_manoeuvred_object_that_is_seen_twice_outside_of_its_gate_is_found_and_no_other() -> None:
    seen = window()
    of_outside = seen.of[seen.outside()]
    twice = {number for number in seen.burned if np.count_nonzero(of_outside == number) > 1}
    assert len(twice) >= 6 and seen.beyond() == twice
    alone = seen.take(np.flatnonzero(seen.outside()))
    assert alone.beyond() == twice and not len(alone.within().objects), "also where nothing is within its gate"


def test_a_fit_beyond_the_gate_has_all_observations_of_the_object_and_is_as_accurate_as_it_claims() -> None:
    seen = window()
    within, found = seen.within(), seen.fused()
    objects = np.flatnonzero(found.is_manoeuvred)
    for place in objects.tolist():
        number = seen.catalogue.elements.norad_id[found.objects[place]]
        assert (found.group == place).tolist() == (seen.of == number).tolist()
        assert found.fits.used[found.group == place].all()
        (row,) = np.flatnonzero(seen.sky.norad_id == number)[-1:]
        _, r, v = seen.sky.states(np.array([row]), np.array([MIDDLE_NS]))
        off = np.hstack([found.fits.r_teme_km[place] - r[0], found.fits.v_teme_km_s[place] - v[0]])
        assert off @ np.linalg.solve(found.fits.covariance_teme[place], off) < chi2.isf(1e-4, 6), number
        of_set = found.fits.prior_covariance_teme[place] - MANOEUVRE_COVARIANCE
        assert np.linalg.eigvalsh(of_set).min() > 0.0, "the prior contains the error of the element set as well"
    others = ~found.is_manoeuvred
    same = np.isin(within.objects, found.objects[others])
    for field in dataclasses.fields(found.fits):
        if field.name != "used":
            kept, made = getattr(within.fits, field.name)[same], getattr(found.fits, field.name)[others]
            np.testing.assert_array_equal(kept, made, field.name)


def test_halves_of_a_window_beyond_the_gate_have_the_prior_of_its_fit() -> None:
    seen = window()
    found = seen.fused()
    objects, states, covariances = fit_halves(seen.observations, found, seen.catalogue, MIDDLE_NS)
    beyond = np.flatnonzero(found.is_manoeuvred[objects])
    assert len(beyond) >= 4
    for row in beyond.tolist():
        prior = found.fits.prior_covariance_teme[objects[row]]
        assert all(np.linalg.eigvalsh(prior - each).min() > -1e-9 for each in covariances[row])
        apart = states[row, 0] - states[row, 1]
        assert apart @ np.linalg.solve(covariances[row].sum(axis=0), apart) < chi2.isf(1e-4, 6)


def test_one_observer_shows_no_object_beyond_its_gate() -> None:
    """Its error, as a wrong clock or place, would be common to all that it sees."""
    seen = window()
    name = np.full_like(seen.observations.source_id, seen.observations.source_id[0])
    forget()
    alone = dataclasses.replace(seen, observations=dataclasses.replace(seen.observations, source_id=name))
    assert np.count_nonzero(alone.outside()) > 10 and not alone.beyond()


def test_one_observer_beyond_the_gate_is_not_enough_if_nothing_tests_it() -> None:
    """Two directions of one observer and one of another within the gate are six numbers: some path explains them."""
    seen = window(burn_s=30.0, dv_m_s=60.0)
    outside, sources, rows = seen.outside(), seen.observations.source_id.copy(), []
    for number in seen.burned:
        beyond, within = (np.flatnonzero(chosen & (seen.of == number))[:2] for chosen in (outside, ~outside))
        if len(beyond) == 2 and len(within) and np.ptp(seen.observations.sensor_time_ns[beyond]) >= SECOND_NS:
            sources[beyond] = sources[beyond[0]]
            rows += [*beyond, *within[sources[within] != sources[beyond[0]]][:1]]
    few = dataclasses.replace(seen, observations=dataclasses.replace(seen.observations, source_id=sources))
    few = few.take(np.array(sorted(rows)))
    forget()
    assert np.count_nonzero(few.outside()) >= 8 and not few.beyond()


def test_what_is_within_the_gate_and_of_another_object_shows_no_manoeuvre() -> None:
    """A sensor sees every object twice at one instant: the second time it is another object, which is not known."""
    seen = window(dv_m_s=0.0)
    count = len(seen.names)
    twice = seen.take(np.repeat(np.arange(count), 2))
    names = np.array([f"{name}-{number % 2}" for number, name in enumerate(twice.names.tolist())])
    twice = dataclasses.replace(twice, names=names, tracks=np.full(2 * count, "", dtype=np.str_))
    assert np.count_nonzero(twice.within().group < 0) >= count / 2 and not twice.beyond()


def test_observations_of_one_instant_show_no_object_beyond_its_gate() -> None:
    """Any other object that passes there is as near at one time."""
    seen = window()
    outside, times_ns = seen.outside(), seen.observations.sensor_time_ns
    rows = [
        row
        for number in seen.burned
        if (own := np.flatnonzero(outside & (seen.of == number))).size
        for row in own[times_ns[own] - times_ns[own[0]] < SECOND_NS].tolist()
    ]
    short = seen.take(np.array(sorted(rows)))
    assert np.count_nonzero(short.outside()) > len(set(short.of.tolist())) and not short.beyond()


def test_an_object_that_no_manoeuvre_explains_is_not_taken_for_the_one_near_it() -> None:
    """A burn of 400 m/s five seconds before stands for an object that passes the other one."""
    seen = window(burn_s=5.0, dv_m_s=400.0)
    found, outside = seen.fused(), seen.outside()
    assert not found.is_manoeuvred.any()
    assert (found.group[outside] < 0).all() and np.count_nonzero(outside) > 10


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_without_manoeuvres_nothing_is_beyond_its_gate(share: float) -> None:
    """Neither with the whole catalogue, nor where many objects are not in it."""
    seen = window(dv_m_s=0.0)
    rng = np.random.default_rng(SEED)
    known = np.flatnonzero(rng.random(len(seen.catalogue)) > share)
    assert not seen.beyond()
    assert not dataclasses.replace(seen, catalogue=seen.catalogue.take(known)).beyond()

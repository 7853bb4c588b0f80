"""Screening volumes: what is inside, which regime an orbit is of, and who enters a volume."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.encounter import relative_states
from sda_platform.orbits.screening.search import Events, screen
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import REGIMES, Volume, by_volume, regimes
from sda_platform_tests.support.scenes import catalogue

HOUR_NS = 3_600_000_000_000
BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))
BOX = Volume("box", 0.5, 28.0, 29.0)
ELLIPSOID = Volume("ellipsoid", 0.5, 28.0, 29.0)


def test_a_box_is_within_a_larger_sphere_than_an_ellipsoid() -> None:
    assert BOX.circumscribed_km == pytest.approx(np.linalg.norm([0.5, 28, 29]))
    assert ELLIPSOID.circumscribed_km == 29.0
    assert Volume.sphere(5.0).circumscribed_km == 5.0


def test_the_time_inside_is_that_of_the_chord() -> None:
    places = np.array([[0.3, 0, 0], [0.0, 30.0, 0], [0.6, 0, 0], [0.0, 14.0, -14.5]])
    rates = np.array([[0, 7.0, -7.0], [0, -2.0, 0], [0, 5.0, 5.0], [0.1, 0, 0]])
    assert BOX.time_inside_s(places, rates) == pytest.approx([8.0, 28.0, 0.0, 10.0])
    found = ELLIPSOID.time_inside_s(places, rates)
    assert found == pytest.approx([2 * 0.8 / np.hypot(7 / 28, 7 / 29), 28.0, 0.0, 10 * np.sqrt(0.5)])
    assert Volume.sphere(5.0).time_inside_s(np.array([[3.0, 0, 0]]), np.array([[0, 2.0, 0]])) == pytest.approx([4.0])


@pytest.mark.parametrize("axes", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, float("nan"), 1.0), (1.0, 1.0, np.inf)])
def test_half_axes_are_positive_numbers(axes: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="half-axes must be positive"):
        Volume("box", *axes)


@pytest.mark.parametrize(
    ("norad_id", "regime"),
    [
        (25544, "LEO1"),  # the space station
        (33591, "LEO3"),  # NOAA 19
        (22195, "MEO"),  # LAGEOS 2
        (32711, "MEO"),  # a navigation satellite
        (41866, "GEO"),  # GOES 16
    ],
)
def test_known_satellites_are_in_their_regime(norad_id: int, regime: str) -> None:
    (row,) = np.flatnonzero(catalogue().elements.norad_id == norad_id)
    assert regimes(catalogue().elements)[row] == regime


def test_every_orbit_of_the_catalogue_is_of_one_regime_and_every_regime_occurs() -> None:
    assert set(regimes(catalogue().elements).tolist()) == set(REGIMES)
    volumes = dict.fromkeys(REGIMES, BOX)
    rows = [row for _, part in by_volume(catalogue().elements, volumes) for row in part]
    assert sorted(rows) == list(range(len(catalogue())))


def inside(volume: Volume, place: np.ndarray, wider_km: float = 0.0) -> np.ndarray:
    """By the equation of the shape itself, with every half-axis wider by so much."""
    scaled = np.abs(place) / (np.array(volume.half_axes_km) + wider_km)
    size = scaled.max(axis=-1) if volume.shape == "box" else np.linalg.norm(scaled, axis=-1)
    return np.asarray(size <= 1)


@given(
    st.sampled_from(["box", "ellipsoid"]),
    st.tuples(*[st.floats(0.1, 400)] * 3),
    st.tuples(*[st.floats(-900, 900)] * 3),
    st.tuples(*[st.floats(-1, 1)] * 3),
)
def test_planes_have_the_volume_on_one_side(
    shape: Any, axes: tuple[float, float, float], place: tuple[float, float, float], within: tuple[float, float, float]
) -> None:
    volume, at = Volume(shape, *axes), np.array([place])
    beyond_km, normals = volume.planes(at)
    assert (beyond_km.max() <= 0) == inside(volume, at)[0]
    # Any place of the volume, seen from the plane.
    of_volume = np.array(within) / (1 if shape == "box" else max(1.0, float(np.linalg.norm(within)))) * np.array(axes)
    for distance_km, normal in zip(beyond_km[0], normals[0], strict=True):
        if distance_km > 0:
            assert normal @ (at[0] - of_volume) >= distance_km - 1e-6


def sampled(volume: Volume, mine: int, other: int, tca_ns: int, step_s: float, wider_km: float = 0.0) -> bool:
    """Brute force: whether a sample of the approach, up to the greatest distances next to it, is inside the volume."""
    for direction in (1, -1):
        time_s, last_km = 0.0, 0.0
        while True:
            times_ns = tca_ns + direction * np.rint((time_s + np.arange(400) * step_s) * 1e9).astype(np.int64)
            states = [catalogue().at(np.full(400, n), times_ns)[1:] for n in (mine, other)]
            place = relative_states(*states[0], *states[1]).position_rtn_km
            distance_km = np.linalg.norm(place, axis=-1)
            receding = np.logical_and.accumulate(np.diff(distance_km, prepend=last_km) >= 0)
            receding &= distance_km <= volume.circumscribed_km + wider_km
            if inside(volume, place[receding], wider_km).any():
                return True
            if not receding.all():
                break
            time_s, last_km = time_s + 400 * step_s, float(distance_km[-1])
    return False


@pytest.mark.parametrize(
    ("regime", "volume", "count", "hours", "step_s"),
    [
        ("LEO2", Volume("box", 1.0, 28.0, 29.0), 30, 2, 0.05),
        ("LEO2", Volume("ellipsoid", 4.0, 40.0, 20.0), 30, 2, 0.05),
        ("GEO", Volume("box", 12.0, 364.0, 30.0), 25, 6, 60.0),
        ("HEO", Volume("ellipsoid", 15.0, 60.0, 90.0), 150, 2, 0.05),
    ],
)
def test_the_approaches_in_a_volume_are_those_that_brute_force_sees_enter_it(
    regime: str, volume: Volume, count: int, hours: int, step_s: float
) -> None:
    rng = np.random.default_rng(2)
    of_regime = np.flatnonzero(regimes(catalogue().elements) == regime)
    mine = rng.choice(of_regime, count, replace=False)
    theirs = rng.choice(len(catalogue()), 3000, replace=False) if regime == "HEO" else of_regime[::3]
    end_ns = BEGIN_NS + hours * HOUR_NS
    sphere = screen(catalogue(), mine, theirs, BEGIN_NS, end_ns, volume.circumscribed_km).events
    kept = screen_volume(catalogue(), mine, theirs, BEGIN_NS, end_ns, volume).events
    identity = set(zip(kept.lo.tolist(), kept.hi.tolist(), kept.tca_time_ns.tolist(), strict=True))
    nearest_outside = 0
    for k in range(len(sphere)):
        lo, hi, tca_ns = int(sphere.lo[k]), int(sphere.hi[k]), int(sphere.tca_time_ns[k])
        sides = [pair for pair in ((lo, hi), (hi, lo)) if pair[0] in mine]
        if (lo, hi, tca_ns) in identity:
            # Between two samples a pair moves so far, and it may touch what they miss.
            wider_km = step_s * float(sphere.relative_speed_km_s[k]) + 0.1
            assert any(sampled(volume, *side, tca_ns, step_s, wider_km) for side in sides)
            at_tca = [[catalogue().at([n], tca_ns)[1:] for n in side] for side in sides]
            places = [relative_states(*first, *second).position_rtn_km for first, second in at_tca]
            nearest_outside += not any(inside(volume, place)[0] for place in places)
        else:
            assert not any(sampled(volume, *side, tca_ns, step_s) for side in sides)
    assert len(sphere) > len(kept) > 1
    assert nearest_outside or regime != "LEO2", "some enter the volume although they are nearest outside of it"


def test_a_sphere_with_sigmas_keeps_what_errors_of_the_sets_may_make_near() -> None:
    """Four days after the sets: by every approach within reach, and the miss in sigmas by another formula."""
    rows = np.flatnonzero((catalogue().elements.mean_motion_rev_per_day > 14) & (np.arange(len(catalogue())) % 9 == 0))
    propagator, primaries = catalogue().take(rows), np.arange(0, len(rows), 5)
    span = BEGIN_NS + 96 * HOUR_NS, BEGIN_NS + 98 * HOUR_NS
    found = screen_volume(propagator, primaries, np.arange(len(rows)), *span, Volume.sphere(5.0, 2.0, 60.0))
    near, every = (screen(propagator, primaries, np.arange(len(rows)), *span, km) for km in (5.0, 60.0))
    off_sigmas = sigmas_of(propagator, every.events)
    expected = (every.events.miss_distance_km <= 5.0) | (off_sigmas <= 2.0)
    expected &= (every.events.relative_speed_km_s >= 0.01) | (every.events.miss_distance_km <= 5.0)
    assert found.events.tca_time_ns.tolist() == every.events.take(expected).tca_time_ns.tolist()
    assert found.events.lo.tolist() == every.events.take(expected).lo.tolist()
    assert len(near.events) < len(found.events) < len(every.events) / 3
    assert found.colocated.time_ns.tolist() == near.colocated.time_ns.tolist()


def sigmas_of(propagator: Propagator, events: Events) -> np.ndarray:
    """The least of |L^-1 (d + s w)| over all s: the miss with free timing, L L' the sum of the covariances."""
    states, total = [], np.zeros((len(events), 3, 3))
    for rows in (events.lo, events.hi):
        _, r, v = propagator.at(rows, events.tca_time_ns)
        in_rtn = element_covariance_rtn(propagator, rows, events.tca_time_ns, r, v)
        basis = rtn_basis(r, v)
        total += basis.swapaxes(1, 2) @ in_rtn[:, :3, :3] @ basis
        states.append((r, v))
    place, motion = (states[1][part] - states[0][part] for part in (0, 1))
    factor = np.linalg.cholesky(total)
    a, b = (np.linalg.solve(factor, each[..., None])[..., 0] for each in (place, motion))
    along = np.einsum("ni,ni->n", a, b) / np.einsum("ni,ni->n", b, b)
    return np.asarray(np.linalg.norm(a - along[:, None] * b, axis=1))


def test_sigmas_belong_to_a_sphere() -> None:
    with pytest.raises(ValueError, match="sigmas belong to a sphere"):
        Volume("box", 1.0, 2.0, 3.0, sigmas=2.0, reach_km=50.0)

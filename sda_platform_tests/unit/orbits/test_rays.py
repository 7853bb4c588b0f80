"""The gate of observers in orbit finds what a look at every pair of ray and object finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.tracking.rays import rays_near

_OBSERVERS_KM = 6_930.0


def _directions(draw: np.random.Generator, count: int) -> FloatArray:
    drawn = draw.normal(size=(count, 3))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1)[:, None])


def _every_pair(*arguments: FloatArray) -> IntArray:
    site, direction, elapsed_s, slack, angle, place, speed, radius = arguments
    line = place + elapsed_s[:, None, None] * speed - site[:, None]
    ahead = np.einsum("rna,ra->rn", line, direction)
    square = np.einsum("rna,rna->rn", line, line)
    reach = slack[:, None] + radius
    wide = reach + angle[:, None] * np.sqrt(square)
    is_near = (ahead >= -reach) & (square > reach**2) & (square - ahead**2 <= wide**2)
    return np.argwhere(is_near)


@given(
    seed=st.integers(0, 2**32 - 1),
    rays=st.integers(1, 40),
    objects=st.integers(0, 400),
    widest_km=st.sampled_from([1.0, 50.0, 2_000.0]),
    unknown=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_the_gate_of_observers_in_orbit_finds_every_pair_within_reach(
    seed: int, rays: int, objects: int, widest_km: float, unknown: float
) -> None:
    draw = np.random.default_rng(seed)
    place = _directions(draw, objects) * draw.uniform(6_700.0, 42_000.0, (objects, 1))
    place[draw.random(objects) < unknown] = np.nan
    arguments = (
        _directions(draw, rays) * _OBSERVERS_KM,
        _directions(draw, rays),
        draw.uniform(-30.0, 30.0, rays),
        draw.uniform(0.0, 10.0, rays),
        draw.uniform(0.0, 0.02, rays),
        place,
        _directions(draw, objects) * 7.5,
        draw.uniform(0.0, widest_km, objects),
    )
    assert rays_near(*arguments).tolist() == _every_pair(*arguments).tolist()


@pytest.mark.parametrize("objects", [0, 1, 33])
def test_an_observer_does_not_find_itself(objects: int) -> None:
    site = np.array([[_OBSERVERS_KM, 0.0, 0.0]])
    others = np.tile([0.0, 42_000.0, 0.0], (objects, 1))
    place = np.vstack([site, others])
    speed, radius = np.zeros_like(place), np.full(len(place), 5.0)
    direction, one = np.array([[1.0, 0.0, 0.0]]), np.ones(1)
    assert rays_near(site, direction, one, one, 0.001 * one, place, speed, radius).tolist() == []

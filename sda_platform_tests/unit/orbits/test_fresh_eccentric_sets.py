"""Fresh sets of eccentric orbits near the Earth, where these cross low orbits (truth: satkit)."""

import numpy as np
import pytest

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import HOUR_NS, SEEN_NS, published_set, random_start
from sda_platform_tests.support.skyfield_frames import teme_of_gcrf

OBJECTS, NEAR_KM = 3, 12_000.0


@pytest.mark.skipif(not satkit_truth.AVAILABLE, reason=satkit_truth.WHY_NOT)
def test_the_plane_of_a_set_is_as_uncertain_as_sgp4_makes_it() -> None:
    rng = np.random.default_rng(7)
    squares: list[float] = []
    before_ns = SEEN_NS - np.arange(36 * 4, -1, -1) * (HOUR_NS // 4)
    for _ in range(OBJECTS):
        states = satkit_truth.propagated(random_start("eccentric", rng), int(before_ns[0]), before_ns)
        truth = teme_of_gcrf(states, before_ns)
        published = published_set(truth, before_ns)
        assert published is not None
        near = np.flatnonzero(np.linalg.norm(truth[:, :3], axis=1) < NEAR_KM)
        rows, epochs_ns = np.zeros(len(near), np.int64), np.full(len(near), SEEN_NS)
        _, r, v = published.at(rows, before_ns[near])
        covariance = rtn_to_teme(element_covariance_rtn(published, rows, epochs_ns, r, v), r, v)
        normal = np.cross(r, v)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        off = np.einsum("ni,ni->n", truth[near, :3] - r, normal)
        squares.append(float(np.mean(off**2 / np.einsum("ni,nij,nj->n", normal, covariance[:, :3, :3], normal))))
    assert 0.2 < np.mean(squares) < 3.0, squares

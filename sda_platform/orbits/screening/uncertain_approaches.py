"""Approaches that may be near: the miss in units of the errors of both element sets.

Errors of old sets lie along the track, tens of kilometres after some days. A sphere that holds them holds thousands of
passes that no such error makes near. The miss across the relative velocity, in sigmas of the combined covariance,
separates them.
"""

from __future__ import annotations

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.encounter import encounter_plane


def miss_in_sigmas(propagator: Propagator, lo: IntArray, hi: IntArray, tca_time_ns: IntArray) -> FloatArray:
    """Mahalanobis distance (n,) of the miss in the encounter plane, by the model of element-set errors.

    ``lo``, ``hi`` (n,): rows of the propagator, whose error scales count. NaN where SGP4 refuses, or without motion.
    """
    (r1, v1, covariance_1), (r2, v2, covariance_2) = (_side(propagator, rows, tca_time_ns) for rows in (lo, hi))
    return encounter_plane(r2 - r1, v2 - v1, covariance_1 + covariance_2).mahalanobis_distance


def _side(propagator: Propagator, rows: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    _, r, v = propagator.at(rows, time_ns)
    covariance = rtn_to_teme(element_covariance_rtn(propagator, rows, time_ns, r, v), r, v)
    return r, v, np.asarray(covariance[:, :3, :3])

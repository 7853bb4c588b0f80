"""Equinoctial coordinates of orbits, and the SGP4 elements that pass through given states.

Equinoctial elements have no singularity at round or equatorial orbits: mean motion (rad/s), e sin(w + W), e cos(w + W),
tan(i/2) sin W, tan(i/2) cos W, mean longitude M + w + W (rad). Only an inclination of 180 degrees is out of reach.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import ElementSets, FloatArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

_DAY_S = 86_400.0
_ROUNDS = 25
_SAME = 1e-13


def mean_elements(
    r_teme_km: npt.ArrayLike,
    v_teme_km_s: npt.ArrayLike,
    epoch_time_ns: npt.ArrayLike,
    bstar_per_earth_radius: npt.ArrayLike = 0.0,
) -> ElementSets:
    """SGP4 elements, numbered from 1, that give the states (n, 3), (n, 3) at their epochs (n,) or scalar.

    Fixed-point iteration on osculating elements; exact to a millimetre except within 0.1 degrees of the equator in deep
    space, where SGP4 itself jumps by up to 30 km. Rows that are not closed orbits, or that SGP4 refuses, become NaN.
    """
    wanted = equinoctial(r_teme_km, v_teme_km_s)
    mean = wanted.copy()
    rows = np.arange(len(mean))
    for _ in range(_ROUNDS):
        _, r, v = Propagator(from_equinoctial(mean, epoch_time_ns, bstar_per_earth_radius)).at(
            rows, np.broadcast_to(epoch_time_ns, rows.shape)
        )
        step = wanted - equinoctial(r, v)
        step[:, 5] = (step[:, 5] + np.pi) % (2 * np.pi) - np.pi
        mean += step
        if not np.any(np.abs(step) > _SAME * np.maximum(np.abs(mean), 1.0)):
            break
    return from_equinoctial(mean, epoch_time_ns, bstar_per_earth_radius)


def equinoctial(r_km: npt.ArrayLike, v_km_s: npt.ArrayLike) -> FloatArray:
    """Osculating equinoctial elements (n, 6) of inertial states (n, 3), (n, 3); NaN where the orbit is not closed.

    Source: Broucke & Cefola 1972, On the equinoctial orbit elements; Vallado (4th ed.), section 2.4.3.
    """
    r, v = np.atleast_2d(np.asarray(r_km, dtype=np.float64)), np.atleast_2d(np.asarray(v_km_s, dtype=np.float64))
    with np.errstate(all="ignore"):
        distance = np.linalg.norm(r, axis=1)
        momentum = np.cross(r, v)
        axis_km = 1.0 / (2.0 / distance - np.einsum("ni,ni->n", v, v) / MU_EARTH_KM3_S2)
        axis_km = np.where(axis_km > 0, axis_km, np.nan)
        eccentric = np.cross(v, momentum) / MU_EARTH_KM3_S2 - r / distance[:, None]
        upright = np.linalg.norm(momentum, axis=1) + momentum[:, 2]
        p, q = momentum[:, 0] / upright, -momentum[:, 1] / upright
        f, g = _plane(p, q)
        h, k = np.einsum("ni,ni->n", eccentric, g), np.einsum("ni,ni->n", eccentric, f)
        x, y = np.einsum("ni,ni->n", r, f), np.einsum("ni,ni->n", r, g)
        perigee, eccentricity = np.arctan2(h, k), np.hypot(h, k)
        half = (np.arctan2(y, x) - perigee) / 2
        anomaly = 2 * np.arctan2(np.sqrt(1 - eccentricity) * np.sin(half), np.sqrt(1 + eccentricity) * np.cos(half))
        longitude = perigee + anomaly - eccentricity * np.sin(anomaly)
        elements = np.stack([np.sqrt(MU_EARTH_KM3_S2 / axis_km**3), h, k, p, q, longitude], axis=1)
    return np.where(np.isfinite(axis_km)[:, None], elements, np.nan)


def from_equinoctial(
    elements: FloatArray, epoch_time_ns: npt.ArrayLike, bstar_per_earth_radius: npt.ArrayLike = 0.0
) -> ElementSets:
    """Element sets, numbered from 1, whose SGP4 mean elements are the equinoctial (n, 6)."""
    motion, h, k, p, q, longitude = elements.T
    node, periapsis = np.arctan2(p, q), np.arctan2(h, k)
    count = len(elements)
    return ElementSets.from_columns(
        {
            "norad_id": np.arange(1, count + 1),
            "epoch_time_ns": np.broadcast_to(epoch_time_ns, (count,)),
            "mean_motion_rev_per_day": motion * _DAY_S / (2 * np.pi),
            "eccentricity": np.hypot(h, k),
            "inclination_deg": np.degrees(2 * np.arctan(np.hypot(p, q))),
            "raan_deg": np.degrees(node) % 360,
            "arg_of_pericenter_deg": np.degrees(periapsis - node) % 360,
            "mean_anomaly_deg": np.degrees(longitude - periapsis) % 360,
            "bstar_per_earth_radius": np.broadcast_to(bstar_per_earth_radius, (count,)),
        }
    )


def to_equinoctial(elements: ElementSets) -> FloatArray:
    """Equinoctial form (n, 6) of mean elements as published."""
    node = np.radians(elements.raan_deg)
    periapsis = node + np.radians(elements.arg_of_pericenter_deg)
    tilt = np.tan(np.radians(elements.inclination_deg) / 2)
    return np.stack(
        [
            elements.mean_motion_rev_per_day * (2 * np.pi) / _DAY_S,
            elements.eccentricity * np.sin(periapsis),
            elements.eccentricity * np.cos(periapsis),
            tilt * np.sin(node),
            tilt * np.cos(node),
            (periapsis + np.radians(elements.mean_anomaly_deg)) % (2 * np.pi),
        ],
        axis=1,
    )


def _plane(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The two equinoctial axes in the orbit's plane, (n, 3) each."""
    size = (1 + p**2 + q**2)[:, None]
    f = np.stack([1 - p**2 + q**2, 2 * p * q, -2 * p], axis=1) / size
    g = np.stack([2 * p * q, 1 + p**2 - q**2, 2 * q], axis=1) / size
    return f, g

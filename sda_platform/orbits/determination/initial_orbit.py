"""Initial orbits from three observations: positions (Gibbs, Herrick-Gibbs) or directions (Gauss).

Two-body motion. The result is a start for a differential correction (see ``differential_correction``), not an
estimate. Observations that determine no orbit are rejected with the reason.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2, two_body_state, two_body_stm

_EARTH_RADIUS_KM = 6378.137
_LIGHT_KM_S = 299_792.458
_FARTHEST_KM = 500_000.0
# Below this angle between neighbours the cross products of Gibbs are mostly noise; above it Herrick's series is
# too short.
_SMALL_ANGLE_RAD = float(np.radians(3.0))
_OUT_OF_PLANE_RAD = float(np.radians(5.0))
_SHORTEST_ARC_RAD = 1e-5
# Sine of the smallest angle between three directions and a common plane that determines the range.
_FLAT = 1e-8
_NEWTON_STEPS = 30
_SAME_KM = 1e-7


class NoOrbit(ValueError):
    """The observations determine no orbit; the message gives the reason."""


def orbit_from_positions(r_km: npt.ArrayLike, time_s: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """State (3,), (3,) km and km/s at the middle of three positions (3, 3) km at times (3,) s.

    Raises:
        NoOrbit: the positions are out of order in time, too close together, or not in one plane with the Earth's
            centre. Or they are on no closed orbit above the ground.
    """
    r, t = np.asarray(r_km, dtype=np.float64), np.asarray(time_s, dtype=np.float64)
    _require_time_order(t)
    unit = r / np.linalg.norm(r, axis=1, keepdims=True)
    angles = _angle(unit[0], unit[1]), _angle(unit[1], unit[2])
    if min(angles) < _SHORTEST_ARC_RAD:
        raise NoOrbit(f"the arc is too short: {np.degrees(min(angles)):.1g} degrees between two positions")
    normal = np.cross(unit[1], unit[2])
    tilt = np.arcsin(np.clip(unit[0] @ normal / np.linalg.norm(normal), -1, 1))
    if min(angles) >= _SMALL_ANGLE_RAD and abs(tilt) > _OUT_OF_PLANE_RAD:
        raise NoOrbit(f"the positions are {np.degrees(abs(tilt)):.1f} degrees out of one plane with the Earth's centre")
    velocity = gibbs(r) if min(angles) >= _SMALL_ANGLE_RAD else herrick_gibbs(r, t)
    return _closed(r[1], velocity)


def gibbs(r_km: FloatArray) -> FloatArray:
    """Velocity (3,) km/s at the second of three coplanar positions (3, 3) km, in order along the orbit.

    Source: Gibbs 1889; Vallado, Fundamentals of Astrodynamics (4th ed.), algorithm 54.
    """
    first, second, third = r_km
    one, two, three = np.linalg.norm(r_km, axis=1)
    d = np.cross(first, second) + np.cross(second, third) + np.cross(third, first)
    n = one * np.cross(second, third) + two * np.cross(third, first) + three * np.cross(first, second)
    s = (two - three) * first + (three - one) * second + (one - two) * third
    if n @ d <= 0 or not np.any(d):
        raise NoOrbit("the positions lie on one line or on no conic about the Earth")
    scale = np.sqrt(MU_EARTH_KM3_S2 / (np.linalg.norm(n) * np.linalg.norm(d)))
    return np.asarray(scale * (np.cross(d, second) / two + s))


def herrick_gibbs(r_km: FloatArray, time_s: FloatArray) -> FloatArray:
    """Velocity (3,) km/s at the second of three close positions (3, 3) km at times (3,) s, by Taylor series.

    Source: Herrick 1971; Vallado, Fundamentals of Astrodynamics (4th ed.), algorithm 55.
    """
    t21, t32, t31 = time_s[1] - time_s[0], time_s[2] - time_s[1], time_s[2] - time_s[0]
    bend = MU_EARTH_KM3_S2 / (12 * np.linalg.norm(r_km, axis=1) ** 3)
    return np.asarray(
        -t32 * (1 / (t21 * t31) + bend[0]) * r_km[0]
        + (t32 - t21) * (1 / (t21 * t32) + bend[1]) * r_km[1]
        + t21 * (1 / (t32 * t31) + bend[2]) * r_km[2]
    )


def orbit_from_directions(
    site_km: npt.ArrayLike, direction: npt.ArrayLike, time_s: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """State (3,), (3,) km and km/s at the middle of three lines of sight, of directions (3, 3) from sites (3, 3) km.

    Gauss's polynomial gives the start; Newton's method on the three directions, with exact two-body motion and light
    time, refines it. Of several roots the one with the smallest distance is returned.

    Raises:
        NoOrbit: times out of order, directions in one plane or nearly parallel, no root above the ground, or no
            closed orbit through the directions.
    """
    site, t = np.asarray(site_km, dtype=np.float64), np.asarray(time_s, dtype=np.float64)
    unit = np.asarray(direction, dtype=np.float64)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    _require_time_order(t)
    flat = unit[0] @ np.cross(unit[1], unit[2])
    if abs(flat) < _FLAT:
        raise NoOrbit("the three directions lie in one plane, so that the distance is undetermined")
    found = []
    for start in _gauss(site, unit, t, flat):
        try:
            found.append(_refined(start, site, unit, t))
        except NoOrbit:
            continue
    if not found:
        raise NoOrbit("no closed orbit above the ground passes through the three directions")
    # Exact roots differ only in their prior probability: low orbits are the most common.
    return min(found, key=lambda state: float(np.linalg.norm(state[0])))


def _gauss(site: FloatArray, unit: FloatArray, t: FloatArray, flat: float) -> list[tuple[FloatArray, FloatArray]]:
    """Initial guesses of the middle state, one per acceptable root of Gauss's polynomial.

    Source: Curtis, Orbital Mechanics for Engineering Students (3rd ed.), algorithm 5.5.
    """
    mu = MU_EARTH_KM3_S2
    tau1, tau3 = t[0] - t[1], t[2] - t[1]
    tau = tau3 - tau1
    p = np.array(
        [
            np.cross(unit[1], unit[2]),
            np.cross(unit[0], unit[2]),
            np.cross(unit[0], unit[1]),
        ]
    )
    d = site @ p.T
    a = (-d[0, 1] * tau3 / tau + d[1, 1] + d[2, 1] * tau1 / tau) / flat
    b = (d[0, 1] * (tau3**2 - tau**2) * tau3 / tau + d[2, 1] * (tau**2 - tau1**2) * tau1 / tau) / (6 * flat)
    e = site[1] @ unit[1]
    square = site[1] @ site[1]
    roots = np.roots([1, 0, -(a**2 + 2 * a * e + square), 0, 0, -2 * mu * b * (a + e), 0, 0, -((mu * b) ** 2)])
    real = roots[np.abs(roots.imag) < 1e-6 * np.abs(roots.real)].real
    guesses = []
    for root in np.sort(real[(real > _EARTH_RADIUS_KM) & (real < _FARTHEST_KM)]):
        cube = mu / root**3
        near1 = (
            6 * (d[2, 0] * tau1 / tau3 + d[1, 0] * tau / tau3) * root**3
            + mu * d[2, 0] * (tau**2 - tau1**2) * (tau1 / tau3)
        ) / (6 * root**3 + mu * (tau**2 - tau3**2)) - d[0, 0]
        near3 = (
            6 * (d[0, 2] * tau3 / tau1 - d[1, 2] * tau / tau1) * root**3
            + mu * d[0, 2] * (tau**2 - tau3**2) * (tau3 / tau1)
        ) / (6 * root**3 + mu * (tau**2 - tau1**2)) - d[2, 2]
        distance = np.array([near1 / flat, a + mu * b / root**3, near3 / flat])
        if (distance <= 0).any():
            continue
        r = site + distance[:, None] * unit
        f1, f3 = 1 - cube * tau1**2 / 2, 1 - cube * tau3**2 / 2
        g1, g3 = tau1 - cube * tau1**3 / 6, tau3 - cube * tau3**3 / 6
        guesses.append((r[1], (-f3 * r[0] + f1 * r[2]) / (f1 * g3 - f3 * g1)))
    return guesses


def _refined(
    start: tuple[FloatArray, FloatArray], site: FloatArray, unit: FloatArray, t: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the two-body state that reproduces the three measured directions, from a state near it. Raises NoOrbit."""
    across = np.linalg.svd(unit[:, None, :])[2][:, 1:]
    r, v = start
    for _ in range(_NEWTON_STEPS):
        _closed(r, v)
        elapsed_s = t - t[1]
        for _ in range(2):
            seen, moving = two_body_state(np.tile(r, (3, 1)), np.tile(v, (3, 1)), elapsed_s)
            elapsed_s = t - t[1] - np.linalg.norm(seen - site, axis=1) / _LIGHT_KM_S
        line = seen - site
        distance = np.linalg.norm(line, axis=1)
        if not np.isfinite(moving).all() or (np.einsum("ki,ki->k", line, unit) <= 0).any():
            break
        residual = np.einsum("kij,kj->ki", across, line) / distance[:, None]
        partials = across @ two_body_stm(np.tile(r, (3, 1)), np.tile(v, (3, 1)), elapsed_s)[:, :3]
        step = np.linalg.lstsq((partials / distance[:, None, None]).reshape(6, 6), -residual.ravel(), rcond=None)[0]
        step *= min(1.0, 0.3 * np.linalg.norm(r) / max(float(np.linalg.norm(step[:3])), 1e-12))
        r, v = r + step[:3], v + step[3:]
        if np.linalg.norm(step[:3]) < _SAME_KM * max(float(distance[1]), 1.0):
            return _closed(r, v)
    raise NoOrbit("no two-body orbit near the first guess meets the directions")


def _require_time_order(t: FloatArray) -> None:
    if not (t[0] < t[1] < t[2]):
        raise NoOrbit("the looks are not in order of time, or two are of one instant")


def _closed(r: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the state itself. Raises NoOrbit unless its orbit is closed and stays above the ground."""
    distance = float(np.linalg.norm(r))
    axis = 1 / (2 / distance - float(v @ v) / MU_EARTH_KM3_S2)
    if not np.isfinite(axis) or axis <= 0:
        raise NoOrbit("the orbit is not closed")
    momentum = np.cross(r, v)
    perigee = axis * (1 - np.sqrt(max(0.0, 1 - float(momentum @ momentum) / (MU_EARTH_KM3_S2 * axis))))
    if perigee < _EARTH_RADIUS_KM:
        raise NoOrbit(f"the orbit's perigee lies {_EARTH_RADIUS_KM - perigee:.0f} km under the ground")
    return r, v


def _angle(one: FloatArray, other: FloatArray) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(one, other)), one @ other))

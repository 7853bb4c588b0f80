"""Force model for numerical integration: Earth's gravity, Moon, Sun, radiation pressure, drag, empirical
acceleration.

The frame is the true equator and equinox of one date, taken as inertial, with the Earth rotating about its pole. The
gravity field is EGM96 (Lemoine et al. 1998, NASA/TP-1998-206861) up to degree 20 (``gravity_field.csv``, normalised).
"""

from __future__ import annotations

import csv
import dataclasses
import math
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.integrate import solve_ivp

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.frames import (
    ASTRONOMICAL_UNIT_KM,
    EARTH_ROTATION_RAD_S,
    gmst82_rad,
    sun_teme_km,
    sunlit_fraction,
)

GM_KM3_S2, RADIUS_KM = 398600.4415, 6378.1363
_GM_SUN_KM3_S2, _GM_MOON_KM3_S2 = 132712440018.0, 4902.800066
_SUNLIGHT_N_M2 = 4.56e-6
_J2000_NS, _CENTURY_NS = 946_728_000_000_000_000, 36525 * 86_400 * 10**9
_TOLERANCE = 1e-11
_NO_AIR_ABOVE_KM = 1000.0
# Moon and Sun are tabulated: over half an hour a cubic interpolates them to a few metres.
_GRID_S = 1800.0


@dataclasses.dataclass(frozen=True)
class Forces:
    """The modelled forces; ``own_…`` are empirical accelerations of the satellite."""

    degree: int = 20
    """Degree of the Earth's field, 0 to 20; 0 is a point mass."""
    order: int = 20
    third_bodies: bool = True
    reflective_area_m2_kg: float = 0.0
    """Area over mass times radiation coefficient."""
    drag_area_m2_kg: float = 0.0
    """Area over mass times drag coefficient."""
    own_km_s2: tuple[float, float, float] = (0.0, 0.0, 0.0)
    own_rate_km_s3: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Constant in the inertial frame at the epoch, and its rate."""


def integrate(state: npt.ArrayLike, epoch_ns: int, time_ns: IntArray, forces: Forces) -> FloatArray:
    """States (m, 6), km and km/s, at times (m,) in any order, from one (6,) at ``epoch_ns``.

    Dormand-Prince of order 8 with a relative tolerance of 1e-11 (centimetres in a day).
    """
    elapsed_s = (time_ns - epoch_ns) / 1e9
    states = np.empty((len(elapsed_s), 6))
    start = np.asarray(state, dtype=np.float64)
    reach = min(float(elapsed_s.min()), 0.0), max(float(elapsed_s.max()), 0.0)
    grid_s = np.arange(reach[0] - 2 * _GRID_S, reach[1] + 3 * _GRID_S, _GRID_S)
    bodies = _bodies(epoch_ns, grid_s)
    cosine, sine = _field(forces.degree, forces.order)
    sidereal = float(gmst82_rad(epoch_ns))
    own = np.array([forces.own_km_s2, forces.own_rate_km_s3])
    light = forces.reflective_area_m2_kg * _SUNLIGHT_N_M2 / 1000.0

    def motion(t_s: float, y: FloatArray) -> FloatArray:
        acceleration = _field_acceleration(y[:3], sidereal + EARTH_ROTATION_RAD_S * t_s, cosine, sine, forces.degree)
        if forces.third_bodies or light:
            moon, sun = _interpolated(bodies, grid_s[0], t_s)
            if forces.third_bodies:
                acceleration += _third_body(y[:3], moon, _GM_MOON_KM3_S2) + _third_body(y[:3], sun, _GM_SUN_KM3_S2)
            if light:
                away = y[:3] - sun
                distance = math.sqrt(away @ away)
                shine = light * (ASTRONOMICAL_UNIT_KM / distance) ** 2 * float(sunlit_fraction(y[:3], sun))
                acceleration += shine * away / distance
        if forces.drag_area_m2_kg:
            acceleration += _drag(y, forces.drag_area_m2_kg)
        return np.concatenate([y[3:], acceleration + own[0] + own[1] * t_s])

    for side in (elapsed_s >= 0, elapsed_s < 0):
        if not side.any():
            continue
        times, back = np.unique(elapsed_s[side], return_inverse=True)
        span = (0.0, float(times[-1] if times[-1] > 0 else times[0]))
        order = times if span[1] >= 0 else times[::-1]
        solved = solve_ivp(motion, span, start, "DOP853", order, rtol=_TOLERANCE, atol=1e-9) if span[1] else None
        rows = solved.y.T if solved is not None else start[None]
        states[side] = (rows if span[1] >= 0 else rows[::-1])[back]
    return states


def moon_km(time_ns: npt.ArrayLike) -> FloatArray:
    """Low-precision Moon (..., 3) km in the mean equator and equinox of date, good to some arcminutes and 500 km.

    Source: Montenbruck & Gill, Satellite Orbits (2000), section 3.3.2.
    """
    centuries = (np.asarray(time_ns, dtype=np.int64) - _J2000_NS) / _CENTURY_NS
    mean, m, sun, f, d = (
        np.radians(start + rate * centuries)
        for start, rate in (
            (218.31617, 481267.88088),
            (134.96292, 477198.86753),
            (357.52543, 35999.04944),
            (93.27283, 483202.01873),
            (297.85027, 445267.11135),
        )
    )
    arcsec = float(np.radians(1 / 3600))
    # Anomalies of Moon and Sun, distance from the node, elongation: amplitudes in arcseconds.
    shift = 22640 * np.sin(m) + 769 * np.sin(2 * m) - 4586 * np.sin(m - 2 * d) + 2370 * np.sin(2 * d)
    shift += -668 * np.sin(sun) - 412 * np.sin(2 * f) - 212 * np.sin(2 * m - 2 * d) - 206 * np.sin(m + sun - 2 * d)
    shift += 192 * np.sin(m + 2 * d) - 165 * np.sin(sun - 2 * d) + 148 * np.sin(m - sun) - 125 * np.sin(d)
    shift += -110 * np.sin(m + sun) - 55 * np.sin(2 * f - 2 * d)
    longitude = mean + shift * arcsec
    beta = 18520 * np.sin(f + (shift + 412 * np.sin(2 * f) + 541 * np.sin(sun)) * arcsec)
    beta += -526 * np.sin(f - 2 * d) + 44 * np.sin(m + f - 2 * d) - 31 * np.sin(-m + f - 2 * d)
    beta += (
        -25 * np.sin(-2 * m + f) - 23 * np.sin(sun + f - 2 * d) + 21 * np.sin(-m + f) + 11 * np.sin(-sun + f - 2 * d)
    )
    latitude = beta * arcsec
    distance = 385000 - 20905 * np.cos(m) - 3699 * np.cos(2 * d - m) - 2956 * np.cos(2 * d) - 570 * np.cos(2 * m)
    distance += 246 * np.cos(2 * m - 2 * d) - 205 * np.cos(sun - 2 * d) - 171 * np.cos(m + 2 * d)
    distance += -152 * np.cos(m + sun - 2 * d)
    obliquity = np.radians(23.439291 - 0.0130042 * centuries)
    x, y = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)
    z = np.sin(latitude)
    direction = [x, y * np.cos(obliquity) - z * np.sin(obliquity), y * np.sin(obliquity) + z * np.cos(obliquity)]
    return np.asarray(np.stack(direction, axis=-1) * np.asarray(distance)[..., None])


@cache
def _field(degree: int, order: int) -> tuple[FloatArray, FloatArray]:
    """Unnormalised coefficients (21, 21), zero above the given degree and order."""
    cosine, sine = np.zeros((21, 21)), np.zeros((21, 21))
    cosine[0, 0] = 1.0
    text = (
        resources.files("sda_platform.orbits.determination").joinpath("gravity_field.csv").read_text(encoding="utf-8")
    )
    for row in csv.DictReader(text.splitlines()):
        n, m = int(row["degree"]), int(row["order"])
        if n <= degree and m <= order:
            double = 1 if m == 0 else 2
            norm = math.sqrt(double * (2 * n + 1) * math.factorial(n - m) / math.factorial(n + m))
            cosine[n, m], sine[n, m] = norm * float(row["cosine"]), norm * float(row["sine"])
    return cosine, sine


@njit(cache=True)
def _field_acceleration(r: Any, angle: float, cosine: Any, sine: Any, degree: int) -> Any:
    """Acceleration (3,) km/s2 of the field rotated by ``angle``. Montenbruck & Gill (2000), section 3.2.4-3.2.5."""
    c, s = math.cos(angle), math.sin(angle)
    x, y, z = c * r[0] + s * r[1], c * r[1] - s * r[0], r[2]
    square = x * x + y * y + z * z
    rho = RADIUS_KM * RADIUS_KM / square
    x0, y0, z0 = RADIUS_KM * x / square, RADIUS_KM * y / square, RADIUS_KM * z / square
    top = degree + 2
    v, w = np.zeros((top, top)), np.zeros((top, top))
    v[0, 0] = RADIUS_KM / math.sqrt(square)
    for m in range(top):
        if m > 0:
            v[m, m] = (2 * m - 1) * (x0 * v[m - 1, m - 1] - y0 * w[m - 1, m - 1])
            w[m, m] = (2 * m - 1) * (x0 * w[m - 1, m - 1] + y0 * v[m - 1, m - 1])
        for n in range(m + 1, top):
            low_v, low_w = (v[n - 2, m], w[n - 2, m]) if n > m + 1 else (0.0, 0.0)
            v[n, m] = ((2 * n - 1) * z0 * v[n - 1, m] - (n + m - 1) * rho * low_v) / (n - m)
            w[n, m] = ((2 * n - 1) * z0 * w[n - 1, m] - (n + m - 1) * rho * low_w) / (n - m)
    ax, ay, az = 0.0, 0.0, 0.0
    for n in range(degree + 1):
        ax -= cosine[n, 0] * v[n + 1, 1]
        ay -= cosine[n, 0] * w[n + 1, 1]
        az -= (n + 1) * cosine[n, 0] * v[n + 1, 0]
        for m in range(1, n + 1):
            p, q = cosine[n, m], sine[n, m]
            factor = 0.5 * (n - m + 1) * (n - m + 2)
            ax += 0.5 * (-p * v[n + 1, m + 1] - q * w[n + 1, m + 1])
            ax += factor * (p * v[n + 1, m - 1] + q * w[n + 1, m - 1])
            ay += 0.5 * (-p * w[n + 1, m + 1] + q * v[n + 1, m + 1])
            ay += factor * (-p * w[n + 1, m - 1] + q * v[n + 1, m - 1])
            az += (n - m + 1) * (-p * v[n + 1, m] - q * w[n + 1, m])
    scale = GM_KM3_S2 / (RADIUS_KM * RADIUS_KM)
    return np.array([scale * (c * ax - s * ay), scale * (s * ax + c * ay), scale * az])


def _bodies(epoch_ns: int, grid_s: FloatArray) -> FloatArray:
    """Moon and Sun (2, k, 3) at the grid's times."""
    time_ns = epoch_ns + (grid_s * 1e9).astype(np.int64)
    return np.stack([moon_km(time_ns), sun_teme_km(time_ns)])


def _interpolated(bodies: FloatArray, first_s: float, t_s: float) -> FloatArray:
    """Moon and Sun (2, 3) by a cubic through the four grid points around ``t_s``."""
    place = (t_s - first_s) / _GRID_S
    low = int(place) - 1
    u = place - low - 1
    back, ahead = u + 1, u - 2
    weights = np.array(
        [-u * (u - 1) * ahead / 6, back * (u - 1) * ahead / 2, -back * u * ahead / 2, back * u * (u - 1) / 6]
    )
    return np.asarray(weights @ bodies[:, low : low + 4])


def _third_body(r: FloatArray, body: FloatArray, gm_km3_s2: float) -> FloatArray:
    line = body - r
    return np.asarray(gm_km3_s2 * (line / (line @ line) ** 1.5 - body / (body @ body) ** 1.5))


def _drag(state: FloatArray, area_m2_kg: float) -> FloatArray:
    """Deceleration (3,) km/s2 in air that rotates with the Earth and decreases exponentially about 200 km.

    Density and scale height of the 1976 standard atmosphere there: 2.79e-10 kg/m3, 37.1 km (Vallado, table 8-4).
    """
    height = math.sqrt(state[:3] @ state[:3]) - RADIUS_KM
    if height > _NO_AIR_ABOVE_KM:
        return np.zeros(3)
    wind = state[3:] - EARTH_ROTATION_RAD_S * np.array([-state[1], state[0], 0.0])
    density = 2.789e-10 * math.exp(-(height - 200.0) / 37.105)
    return np.asarray(-0.5 * 1e3 * density * area_m2_kg * math.sqrt(wind @ wind) * wind)

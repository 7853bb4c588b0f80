"""Earth's gravity: EGM96 to degree 36, compiled.

Source: Lemoine et al. 1998, NASA/TP-1998-206861 (``gravity_field.csv``, fully normalised, tide-free); recursion of
Cunningham: Montenbruck & Gill, Satellite Orbits (2000), sections 3.2.4-3.2.5.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from sda_platform.arrays import FloatArray

GM_KM3_S2, RADIUS_KM = 398600.4415, 6378.1363
MAX_DEGREE = 36
J2 = 1.0826266835531513e-3
# A degree counts up to the distance at which Kaula's rule gives it this acceleration.
_LEAST_KM_S2 = 3e-15


class Field(NamedTuple):
    """Unnormalised coefficients by degree and order, (37, 39) each, and factors that depend on both."""

    cosine: FloatArray
    sine: FloatArray
    upper_cosine: FloatArray
    """The same times (n - m + 1) (n - m + 2)."""
    upper_sine: FloatArray
    polar_cosine: FloatArray
    """The same times (n - m + 1)."""
    polar_sine: FloatArray
    first: FloatArray
    """(39, 39) of the recursion: (2n - 1) / (n - m)."""
    second: FloatArray
    """(39, 39) (n + m - 1) / (n - m)."""
    reach_km: FloatArray
    """(37,) distance beyond which a degree is left out."""
    degree: int


@cache
def field(degree: int = MAX_DEGREE, order: int = MAX_DEGREE) -> Field:
    """Return the field up to a degree and an order, at most 36; degree 0 is a point mass."""
    size = MAX_DEGREE + 3
    cosine, sine = np.zeros((MAX_DEGREE + 1, size)), np.zeros((MAX_DEGREE + 1, size))
    cosine[0, 0] = 1.0
    text = resources.files("sda_platform.orbits.dynamics").joinpath("gravity_field.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        n, m = int(row["degree"]), int(row["order"])
        if n <= degree and m <= order:
            double = 1 if m == 0 else 2
            norm = math.sqrt(double * (2 * n + 1) * math.factorial(n - m) / math.factorial(n + m))
            cosine[n, m], sine[n, m] = norm * float(row["cosine"]), norm * float(row["sine"])
    above = np.arange(MAX_DEGREE + 1)[:, None] - np.arange(size) + 1.0
    upper = above * (above + 1)
    first, second = np.zeros((size, size)), np.zeros((size, size))
    for m in range(size):
        for n in range(m + 1, size):
            first[n, m], second[n, m] = (2 * n - 1) / (n - m), (n + m - 1) / (n - m)
    scaled = (upper * cosine, upper * sine, above * cosine, above * sine)
    return Field(cosine, sine, *scaled, first, second, _reaches_km(), degree)


def _reaches_km() -> FloatArray:
    reach = np.full(MAX_DEGREE + 1, np.inf)
    for n in range(3, MAX_DEGREE + 1):
        at_surface = (n + 1) * GM_KM3_S2 / RADIUS_KM**2 * 1e-5 * math.sqrt(2 * n + 1) / n**2
        reach[n] = RADIUS_KM * (at_surface / _LEAST_KM_S2) ** (1 / (n + 2))
    return reach


@njit(cache=True, nogil=True, error_model="numpy")
def field_acceleration(x: float, y: float, z: float, field: Any, v: Any, w: Any) -> tuple[float, float, float]:
    """Acceleration, km/s2, at an Earth-fixed position, km. ``v``, ``w`` are work space (>= 38, >= 39).

    Inner loops run over the order and carry nothing from one to the next, so that the compiler can vectorise them.
    """
    square = x * x + y * y + z * z
    distance = math.sqrt(square)
    degree = field.degree
    while degree > 2 and distance > field.reach_km[degree]:
        degree -= 1
    rho = RADIUS_KM * RADIUS_KM / square
    x0, y0, z0 = RADIUS_KM * x / square, RADIUS_KM * y / square, RADIUS_KM * z / square
    v[0, 0], w[0, 0] = RADIUS_KM / distance, 0.0
    sums = np.zeros((3, degree + 1))
    for n in range(1, degree + 2):
        a, b = field.first[n], field.second[n]
        near_v, near_w, here_v, here_w = v[n - 1], w[n - 1], v[n], w[n]
        far_v, far_w = v[max(n - 2, 0)], w[max(n - 2, 0)]
        for m in range(n - 1):
            here_v[m] = a[m] * z0 * near_v[m] - b[m] * rho * far_v[m]
            here_w[m] = a[m] * z0 * near_w[m] - b[m] * rho * far_w[m]
        here_v[n - 1], here_w[n - 1] = (2 * n - 1) * z0 * near_v[n - 1], (2 * n - 1) * z0 * near_w[n - 1]
        here_v[n] = (2 * n - 1) * (x0 * near_v[n - 1] - y0 * near_w[n - 1])
        here_w[n] = (2 * n - 1) * (x0 * near_w[n - 1] + y0 * near_v[n - 1])
        c, s = field.cosine[n - 1], field.sine[n - 1]
        uc, us = field.upper_cosine[n - 1], field.upper_sine[n - 1]
        pc, ps = field.polar_cosine[n - 1], field.polar_sine[n - 1]
        sums[0, 0] -= c[0] * here_v[1]
        sums[1, 0] -= c[0] * here_w[1]
        sums[2, 0] -= pc[0] * here_v[0]
        ax, ay, az = sums[0], sums[1], sums[2]
        for m in range(1, n):
            ax[m] += uc[m] * here_v[m - 1] + us[m] * here_w[m - 1] - c[m] * here_v[m + 1] - s[m] * here_w[m + 1]
            ay[m] += us[m] * here_v[m - 1] - uc[m] * here_w[m - 1] - c[m] * here_w[m + 1] + s[m] * here_v[m + 1]
            az[m] -= pc[m] * here_v[m] + ps[m] * here_w[m]
    scale = GM_KM3_S2 / (RADIUS_KM * RADIUS_KM)
    px, py, pz = sums[0, 0], sums[1, 0], sums[2, 0]
    for m in range(1, degree + 1):
        px += 0.5 * sums[0, m]
        py += 0.5 * sums[1, m]
        pz += sums[2, m]
    return scale * px, scale * py, scale * pz

"""Density of the upper atmosphere by height, solar activity, geomagnetic activity, local time and season; compiled.

Temperature and its variations: Jacchia 1971 (SAO Special Report 332). Composition above 120 km in diffusive
equilibrium in closed form: Walker 1965 (J. Atmos. Sci. 22, 462), with Jacchia's (1965) conditions at 120 km.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from sda_platform.arrays import FloatArray
from sda_platform.units import DAY_NS

BOTTOM_KM, TOP_KM = 120.0, 1500.0
"""Below, the density of the bottom counts with a constant scale height; above, there is no drag."""
_DENSE_KM = 6.0
_EARTH_KM, _GRAVITY_M_S2, _BOLTZMANN, _ATOMIC_KG = 6356.77, 9.447, 1.380649e-23, 1.66053907e-27
_BOTTOM_K = 355.0
_MJD_1970, _MJD_JACCHIA, _TROPICAL_YEAR_DAYS = 40587.0, 36204.0, 365.2422


def night_temperature_k(f107: npt.ArrayLike, f107_mean: npt.ArrayLike) -> FloatArray:
    """Least exospheric temperature of the night from the solar flux of the day before and its 81-day mean."""
    daily, mean = np.asarray(f107, dtype=np.float64), np.asarray(f107_mean, dtype=np.float64)
    return np.asarray(379.0 + 3.24 * mean + 1.3 * (daily - mean))


def geomagnetic_temperature_k(ap: npt.ArrayLike) -> FloatArray:
    """Rise of the exospheric temperature by the planetary amplitude ``ap``."""
    kp = np.interp(np.asarray(ap, dtype=np.float64), _AP, _KP)
    return np.asarray(28.0 * kp + 0.03 * np.exp(kp))


def season(time_ns: npt.ArrayLike) -> FloatArray:
    """Factor g(t) of the semiannual variation."""
    days = np.asarray(time_ns, dtype=np.int64) / DAY_NS + (_MJD_1970 - _MJD_JACCHIA)
    phase = days / _TROPICAL_YEAR_DAYS
    wave = 0.5 + 0.5 * np.sin(2 * np.pi * phase + 6.035)
    tau = phase + 0.09544 * (wave**1.650 - 0.5)
    return np.asarray(
        0.02835 + 0.3817 * (1 + 0.4671 * np.sin(2 * np.pi * tau + 4.1370)) * np.sin(4 * np.pi * tau + 4.2590)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def exospheric_temperature_k(night_k: float, storm_k: float, latitude: float, hour_angle: float, solar: float) -> float:
    """Exospheric temperature where the Sun's hour angle and declination (``solar``) are these, rad."""
    eta, theta = 0.5 * abs(latitude - solar), 0.5 * abs(latitude + solar)
    tau = hour_angle - 0.6457718 + 0.1047198 * math.sin(hour_angle + 0.7504916)
    tau = tau - 2 * math.pi * math.floor(tau / (2 * math.pi) + 0.5)
    least = math.sin(theta) ** 2.2
    most = math.cos(eta) ** 2.2
    daily: float = night_k * (1 + 0.3 * (least + (most - least) * math.cos(0.5 * tau) ** 3))
    return daily + storm_k


@njit(cache=True, nogil=True, error_model="numpy")
def density_kg_m3(height_km: float, exospheric_k: float, season: float) -> float:
    """Density at a height above the ellipsoid; ``season`` is g(t)."""
    if height_km > TOP_KM:
        return 0.0
    z = max(height_km, BOTTOM_KM)
    above = exospheric_k - 800.0
    x = above / (750.0 + 1.722e-4 * above * above)
    sigma = 0.0291 * math.exp(-0.5 * x * x) + 1 / (_EARTH_KM + BOTTOM_KM)
    zeta = (z - BOTTOM_KM) * (_EARTH_KM + BOTTOM_KM) / (_EARTH_KM + z)
    decay = math.exp(-sigma * zeta)
    share = 1 - _BOTTOM_K / exospheric_k
    ratio = math.log((1 - share) / (1 - share * decay))
    per_mass = _ATOMIC_KG * _GRAVITY_M_S2 * 1e3 / (sigma * _BOLTZMANN * exospheric_k)
    total: float = 0.0
    for n in range(4):
        gamma = _MASS[n] * per_mass
        total += _MASS[n] * _NUMBER_M3[n] * math.exp((1 + _DIFFUSION[n] + gamma) * ratio - sigma * gamma * zeta)
    semiannual = (5.876e-7 * z**2.331 + 0.06328) * math.exp(-2.868e-3 * z) * season
    low = math.exp((BOTTOM_KM - height_km) / _DENSE_KM) if height_km < BOTTOM_KM else 1.0
    density: float = total * _ATOMIC_KG * 10**semiannual * low
    return density


# Nitrogen, oxygen, atomic oxygen, helium: mass, number per m3 at 120 km, thermal diffusion.
_MASS = np.array([28.0134, 31.9988, 15.9994, 4.0026])
_NUMBER_M3 = np.array([4.0e17, 7.5e16, 7.6e16, 3.4e13])
_DIFFUSION = np.array([0.0, 0.0, 0.0, -0.38])
# Amplitudes of Kp 0, 1/3, 2/3, 1 ...: the definition of ap (Bartels).
_KP = np.arange(28) / 3
_AP: Any = np.array(
    [0, 2, 3, 4, 5, 6, 7, 9, 12, 15, 18, 22, 27, 32, 39, 48, 56, 67, 80, 94, 111, 132, 154, 179, 207, 236, 300, 400.0]
)

"""Delay of a laser's range in the troposphere, by the weather at the station.

Source: IERS Conventions (2010), section 9.1.1: zenith delay of Mendes & Pavlis (2004, Geophysical Research Letters 31,
L14602), mapping function FCULa of Mendes et al. (2002, Geophysical Research Letters 29, 1414).
"""

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray

_CARBON_DIOXIDE = 1 + 0.534e-6 * (375 - 450)
# Of the continued fraction's three terms: constant, by degrees Celsius, by cosine of latitude, by metres of height.
_MAPPING = np.array(
    [
        [12100.8e-7, 1729.5e-9, 319.1e-7, -1847.8e-11],
        [30496.5e-7, 234.6e-8, -103.5e-6, -185.6e-10],
        [6877.7e-5, 197.2e-7, -345.8e-5, 106.0e-9],
    ]
)


def vapour_pressure_hpa(temperature_k: npt.ArrayLike, humidity_percent: npt.ArrayLike) -> FloatArray:
    """Partial pressure of water (...), hPa. Source: Tetens 1930."""
    celsius = np.asarray(temperature_k) - 273.15
    return np.asarray(np.asarray(humidity_percent) / 100 * 6.1078 * 10 ** (7.5 * celsius / (237.3 + celsius)))


def zenith_delay_m(
    latitude_rad: npt.ArrayLike,
    height_m: npt.ArrayLike,
    pressure_hpa: npt.ArrayLike,
    vapour_hpa: npt.ArrayLike,
    wavelength_um: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray]:
    """Hydrostatic and wet delay (...), m, of one way up."""
    wave = 1 / np.asarray(wavelength_um) ** 2
    gravity = 1 - 0.00266 * np.cos(2 * np.asarray(latitude_rad)) - 0.28e-6 * np.asarray(height_m)
    dry = 19990.975 * (238.0185 + wave) / (238.0185 - wave) ** 2 + 579.55174 * (57.362 + wave) / (57.362 - wave) ** 2
    dry = 0.01 * dry * _CARBON_DIOXIDE
    wet = 0.003101 * (295.235 + 3 * 2.6422 * wave - 5 * 0.032380 * wave**2 + 7 * 0.004028 * wave**3)
    hydrostatic = 0.002416579 * dry / gravity * np.asarray(pressure_hpa)
    return hydrostatic, 1e-4 * (5.316 * wet - 3.759 * dry) * np.asarray(vapour_hpa) / gravity


def mapping(
    latitude_rad: npt.ArrayLike, height_m: npt.ArrayLike, temperature_k: npt.ArrayLike, elevation_rad: npt.ArrayLike
) -> FloatArray:
    """Delay at an elevation (...) per delay at the zenith."""
    celsius, cosine = np.asarray(temperature_k) - 273.15, np.cos(latitude_rad)
    a, b, c = (term[0] + term[1] * celsius + term[2] * cosine + term[3] * np.asarray(height_m) for term in _MAPPING)
    sine = np.sin(elevation_rad)
    return np.asarray((1 + a / (1 + b / (1 + c))) / (sine + a / (sine + b / (sine + c))))

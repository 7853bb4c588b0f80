"""Effect of the troposphere on observations: longer ranges, higher elevations. Mean sea-level air, thinner with
height.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray

_ZENITH_DELAY_KM = 2.4e-3
_SCALE_HEIGHT_M = 8000.0


def delay_km(elevation_rad: npt.ArrayLike, altitude_m: npt.ArrayLike) -> FloatArray:
    """Excess of a measured range (...), km, from sites at ``altitude_m``; good to 5 % above 10 degrees."""
    sine = np.sin(np.asarray(elevation_rad, dtype=np.float64))
    return np.asarray(_thinned(altitude_m) * _ZENITH_DELAY_KM * 2.0 / (sine + np.sqrt(sine**2 + 0.004)))


def refraction_rad(elevation_rad: npt.ArrayLike, altitude_m: npt.ArrayLike) -> FloatArray:
    """Excess of a measured elevation (...), rad, as a function of that elevation; below -1 degree, as at -1 degree.

    Source: Bennett 1982, Journal of Navigation 35, for 1010 hPa and 10 degrees Celsius.
    """
    degrees = np.maximum(np.degrees(np.asarray(elevation_rad, dtype=np.float64)), -1.0)
    arcminutes = 1.0 / np.tan(np.radians(degrees + 7.31 / (degrees + 4.4)))
    return np.asarray(_thinned(altitude_m) * np.radians(arcminutes / 60.0))


def _thinned(altitude_m: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.exp(-np.asarray(altitude_m, dtype=np.float64) / _SCALE_HEIGHT_M))

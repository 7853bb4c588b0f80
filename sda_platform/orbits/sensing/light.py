"""Light time: what a sensor receives now left the object, and the radar's pulse the site, a little earlier.

A reading is stamped when its signal arrives. Over the delay (3 ms from 1,000 km, 0.12 s from geostationary) objects
move 25 m to 370 m, more than most sensors' noise. Angles are those of the incoming ray, without aberration or
refraction. Stars and object share a telescope's diurnal aberration, but not the annual one: places reduced against
stars carry up to 20.5 arcseconds of it, which is not corrected. A radar's own is about 0.3 arcseconds at most.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

LIGHT_KM_S = 299_792.458


def seen_state(
    r_km: npt.ArrayLike, v_km_s: npt.ArrayLike, site_km: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The states (n, 3), (n, 3) a signal shows that arrives at sites (n, 3) now, and its delay (n,) in seconds.

    ``r_km``, ``v_km_s`` are the states now; the way back is taken with the acceleration of a point mass, which over
    0.2 s is exact to a millimetre.
    """
    r, v = np.asarray(r_km, dtype=np.float64), np.asarray(v_km_s, dtype=np.float64)
    site = np.asarray(site_km, dtype=np.float64)
    pull = -MU_EARTH_KM3_S2 * r / np.linalg.norm(r, axis=-1, keepdims=True) ** 3
    seen = r
    for _ in range(3):
        delay_s = np.linalg.norm(seen - site, axis=-1) / LIGHT_KM_S
        back = delay_s[..., None]
        seen = r - v * back + 0.5 * pull * back**2
    return seen, v - pull * back, delay_s


def echo_range_km(seen_km: npt.ArrayLike, site_km: npt.ArrayLike, site_km_s: npt.ArrayLike) -> FloatArray:
    """Half the way (n,) of a pulse out and back, from where the site was when it sent to where it is, over (n, 3)."""
    line = np.asarray(seen_km, dtype=np.float64) - np.asarray(site_km, dtype=np.float64)
    down = np.linalg.norm(line, axis=-1)
    up = np.linalg.norm(line + 2 * (down / LIGHT_KM_S)[..., None] * np.asarray(site_km_s), axis=-1)
    return np.asarray((down + up) / 2)

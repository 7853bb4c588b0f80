"""Light time: the object's state when the received light left it, and the site's when a radar pulse left.

An observation is stamped when its signal arrives. Over the delay (3 ms from 1,000 km, 0.12 s from geostationary)
objects move 25 m to 370 m, more than most sensors' noise. Angles are those of the incoming ray, without aberration or
refraction, for which `angle_corrections` corrects reported ones. A radar's own aberration, 0.3 arcseconds at most, is
left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.two_body import MU_EARTH_KM3_S2

LIGHT_KM_S = 299_792.458


def seen_state(
    r_km: npt.ArrayLike, v_km_s: npt.ArrayLike, site_km: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Apparent states (n, 3), (n, 3) at sites (n, 3) of a signal that arrives now, and its delay (n,) in seconds.

    ``r_km``, ``v_km_s`` are the states now. The backward step uses the acceleration of a point mass, which over 0.2 s
    is exact to a millimetre.
    """
    r, v = np.asarray(r_km, dtype=np.float64), np.asarray(v_km_s, dtype=np.float64)
    site = np.asarray(site_km, dtype=np.float64)
    gravity = -MU_EARTH_KM3_S2 * r / np.linalg.norm(r, axis=-1, keepdims=True) ** 3
    seen = r
    for _ in range(3):
        delay_s = np.linalg.norm(seen - site, axis=-1) / LIGHT_KM_S
        delay = delay_s[..., None]
        seen = r - v * delay + 0.5 * gravity * delay**2
    return seen, v - gravity * delay, delay_s


def echo_range_km(seen_km: npt.ArrayLike, site_km: npt.ArrayLike, site_km_s: npt.ArrayLike) -> FloatArray:
    """Half the length (n,) of a pulse's path, km: from the site at transmission, to the object, to the site at
    reception.
    """
    line = np.asarray(seen_km, dtype=np.float64) - np.asarray(site_km, dtype=np.float64)
    down = np.linalg.norm(line, axis=-1)
    up = np.linalg.norm(line + 2 * (down / LIGHT_KM_S)[..., None] * np.asarray(site_km_s), axis=-1)
    return np.asarray((down + up) / 2)

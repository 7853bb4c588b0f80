"""Trajectories that operators state, sampled."""

from functools import cache

import numpy as np

from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform_tests.support.object_shell import BEGIN_NS
from sda_platform_tests.support.object_shell import shell as whole_shell

NS = 10**9
END_NS = BEGIN_NS + 6 * 3600 * NS
WITHIN_REACH_KM = 60.0


@cache
def shell() -> Catalogue:
    """A hundred objects of low orbits, and some that cross them."""
    known = whole_shell()
    rows = np.arange(0, len(known), 3)
    return Catalogue(known.propagator.take(rows), ("",) * len(rows))


def sampled(norad_id: int, stated: OperatorEphemerides, step_s: int = 4) -> list[tuple[int, float, float]]:
    """The fast approaches of an object within the sphere by samples: other, seconds after the begin, miss."""
    objects, times = shell(), np.arange(BEGIN_NS, END_NS + 1, step_s * NS)
    _, r, v = objects.propagator.grid(times)
    for number, each in zip(stated.norad_id.tolist(), stated.ephemerides, strict=True):
        row = int(np.flatnonzero(objects.norad_id == number)[0])
        state = each.at(times)[0]
        inside = np.isfinite(state[:, 0])
        r[row, inside], v[row, inside] = state[inside, :3], state[inside, 3:]
    own = int(np.flatnonzero(objects.norad_id == norad_id)[0])
    dr, dv = r - r[own], v - v[own]
    near = np.einsum("nti,nti->nt", dr, dv) / np.maximum(np.einsum("nti,nti->nt", dv, dv), 1e-12)
    # Straight paths between samples: the minimum is between two of them where r·v changes its sign.
    rows, at = np.nonzero((near[:, :-1] < 0) & (near[:, 1:] >= 0))
    places = dr[rows, at] - dv[rows, at] * near[rows, at][:, None]
    miss, speed = np.linalg.norm(places, axis=1), np.linalg.norm(dv[rows, at], axis=1)
    kept = (miss <= WITHIN_REACH_KM) & (speed > SLOWEST_EVENT_KM_S) & (rows != own)
    return sorted(
        (int(objects.norad_id[row]), step_s * t - float(near[row, t]), float(km))
        for row, t, km in zip(rows[kept].tolist(), at[kept].tolist(), miss[kept].tolist(), strict=True)
    )

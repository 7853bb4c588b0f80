"""Burns along the track that would take one encounter below a Pc: how small, for how early. A first look.

The displacement at TCA is linear in the burn, by two-body motion, and the covariance stays. `sda whatif` screens a burn
against all objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from sda_platform.conjunction.assessed_passes import assessed_pass
from sda_platform.orbits.risk.gaussian_parts import probability_2d
from sda_platform.orbits.two_body import orbital_period_s, two_body_state, two_body_stm
from sda_platform.units import SECOND_NS

_REVOLUTIONS: Final = (0.5, 1.5, 2.5, 4.5, 8.5, 16.5)
"""Half revolutions before TCA: there a burn along the track displaces a circular orbit most across the track."""
_SIZES_M_S: Final = np.geomspace(1e-3, 1.0, 181)
_M_PER_KM: Final = 1000.0


@dataclass(frozen=True)
class BurnOption:
    """The smallest burn at ``time_ns``, positive along the velocity, and miss and 2D Pc of this encounter after it."""

    norad_id: int
    time_ns: int
    revolutions: float
    dv_m_s: float
    miss_km: float
    probability: float


def burn_options(last: Mapping[str, Any], goal: float, now_ns: int, own: Sequence[int]) -> list[BurnOption]:
    """Return the smallest burns that bring the 2D Pc of an assessment to ``goal``, of at most 1 m/s.

    One for each of the objects ``own`` (1 or 2) and each lead that begins after ``now_ns``, where there is one.
    """
    known = assessed_pass(last)
    states = {n: np.asarray(last[f"state_{n}"], dtype=np.float64) for n in (1, 2)}
    found = []
    for n in own:
        r, v = states[n][None, :3], states[n][None, 3:]
        period_s = float(orbital_period_s(r, v)[0])
        for revolutions in _REVOLUTIONS:
            lead_s = revolutions * period_s
            time_ns = last["tca_time_ns"] - round(lead_s * SECOND_NS)
            if time_ns <= now_ns:
                break
            r0, v0 = two_body_state(r, v, -lead_s)
            along = v0[0] / np.linalg.norm(v0[0])
            moved = two_body_stm(r0, v0, lead_s)[0, :, 3:] @ along * (1.0 if n == 2 else -1.0)  # secondary - primary
            sizes = np.concatenate([_SIZES_M_S, -_SIZES_M_S])
            change = sizes[:, None] / _M_PER_KM * moved
            passes = known.take(np.zeros(len(sizes), np.int64))
            moved_passes = replace(passes, r2_km=passes.r2_km + change[:, :3], v2_km_s=passes.v2_km_s + change[:, 3:])
            probability = probability_2d(moved_passes)
            meets = np.flatnonzero(probability <= goal)
            if len(meets):
                best = int(meets[np.abs(sizes[meets]).argmin()])
                miss_km = float(np.linalg.norm(moved_passes.dr_km[best]))
                pc = float(probability[best])
                found.append(BurnOption(last[f"norad_id_{n}"], time_ns, revolutions, float(sizes[best]), miss_km, pc))
    return found

"""How far drag and the pull of Sun and Moon can take the mean elements of SGP4 from their epoch.

Source: Hoots & Roehrich, Spacetrack Report 3 (1980); Vallado et al., Revisiting Spacetrack Report 3 (2006). WGS72.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import sgp4.model
from sgp4.api import WGS72, Satrec

from sda_platform.arrays import FloatArray
from sda_platform.orbits.elements import (
    SGP4_DAY_ZERO_JD,
    WGS72_J2,
    WGS72_MU_KM3_S2,
    WGS72_RADIUS_KM,
    ElementSets,
    semi_major_axis_km,
)

_KE = 60.0 / np.sqrt(WGS72_RADIUS_KM**3 / WGS72_MU_KM3_S2)
_DEEP_FROM_MIN = 225.0
# What Sun and Moon do to an eccentricity: rate per minute and amplitude, each times e over the mean motion (rad/min).
_SECULAR_PULL, _PERIODIC_PULL = 3.4e-9, 1.5e-4
# A slower orbit is so near to the Moon's that these bounds do not hold (rad/min; half a revolution a day).
_SLOWEST = 2.2e-3


@dataclasses.dataclass(frozen=True, eq=False)
class SecularDrag:
    """Terms of n sets; times are minutes since each epoch, distances Earth radii.

    Attributes:
        axis, eccentricity: (n,) mean semi-major axis (Brouwer) and eccentricity at the epoch.
        axis_terms: (n, 4) coefficients of t to t**4 in the root of the relative semi-major axis, as magnitudes.
        eccentricity_rate, eccentricity_swing: (n,) bounds of the change of the eccentricity.
    """

    axis: FloatArray
    eccentricity: FloatArray
    axis_terms: FloatArray
    eccentricity_rate: FloatArray
    eccentricity_swing: FloatArray

    def take(self, rows: npt.NDArray[np.int64]) -> SecularDrag:
        """Keep only these sets."""
        return SecularDrag(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))

    def sharpen(self, rows: npt.NDArray[np.int64], satrecs: Sequence[Satrec]) -> None:
        """Replace the bounds of the eccentricity of ``rows`` (m,), where Sun and Moon pull, by SGP4's own terms.

        Orbits that are too slow for bounds of either kind keep an infinite one.
        """
        for row, satrec in zip(rows.tolist(), satrecs, strict=True):
            if satrec.method == "d" and np.isfinite(self.eccentricity_rate[row]):
                self.eccentricity_rate[row], self.eccentricity_swing[row] = _pull(satrec)

    def is_harmless(self, minutes: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell whether each orbit surely stays near that of its epoch, above the ground, for ``minutes``, (n,).

        ``minutes`` (n,) is a distance in time: the answer holds before the epoch and after it. NaN terms give False.
        """
        with np.errstate(all="ignore"):
            root = np.einsum("nk,nk->n", self.axis_terms, np.power.outer(minutes, [1, 2, 3, 4]))
            swing = self.eccentricity_rate * minutes + self.eccentricity_swing
            perigee = self.axis * (1 - root) ** 2 * (1 - self.eccentricity - swing)
            is_near = (root < 0.01) & (swing < 0.05 * (1 - self.eccentricity)) & (swing < self.eccentricity + 0.0008)
            return np.asarray(is_near & (perigee > 1.006))


def secular_drag(elements: ElementSets) -> SecularDrag:
    """Return the terms of each set as SGP4 has them."""
    with np.errstate(all="ignore"):
        return _terms(elements)


def _terms(elements: ElementSets) -> SecularDrag:
    e, bstar = elements.eccentricity, elements.bstar_per_earth_radius
    axis = semi_major_axis_km(elements) / WGS72_RADIUS_KM
    motion = _KE / axis**1.5
    cosine, sine = np.cos(np.radians(elements.inclination_deg)), np.sin(np.radians(elements.inclination_deg))
    con41, roundness = 3 * cosine**2 - 1, 1 - e**2
    perigee = axis * (1 - e)
    perigee_km = (perigee - 1) * WGS72_RADIUS_KM
    s_km = np.where(perigee_km < 98, 20.0, np.where(perigee_km < 156, perigee_km - 78, 78.0))
    s = s_km / WGS72_RADIUS_KM + 1
    q = ((120 - s_km) / WGS72_RADIUS_KM) ** 4
    tsi = 1 / (axis - s)
    eta = axis * e * tsi
    eta2, e_eta, psi2 = eta**2, e * eta, np.abs(1 - eta**2)
    coefficient = q * tsi**4 / psi2**3.5
    c1 = bstar * coefficient * motion * (
        axis * (1 + 1.5 * eta2 + e_eta * (4 + eta2))
        + 0.375 * WGS72_J2 * tsi / psi2 * con41 * (8 + 3 * eta2 * (8 + eta2))
    )  # fmt: skip
    c4 = 2 * motion * coefficient * axis * roundness * (
        eta * (2 + 0.5 * eta2) + e * (0.5 + 2 * eta2)
        - WGS72_J2 * tsi / (axis * psi2) * (
            -3 * con41 * (1 - 2 * e_eta + eta2 * (1.5 - 0.5 * e_eta))
            + 0.75 * sine**2 * (2 * eta2 - e_eta * (1 + eta2)) * np.cos(2 * np.radians(elements.arg_of_pericenter_deg))
        )
    )  # fmt: skip
    c5 = 2 * coefficient * axis * roundness * (1 + 2.75 * (eta2 + e_eta) + e_eta * eta2)
    is_deep = 2 * np.pi / motion >= _DEEP_FROM_MIN
    is_simple = is_deep | (perigee < 220 / WGS72_RADIUS_KM + 1)
    d2 = 4 * axis * tsi * c1**2
    third = d2 * tsi * c1 / 3
    higher = [d2, (17 * axis + s) * third, 0.5 * third * axis * tsi * (221 * axis + 31 * s) * c1]
    terms = np.abs(np.stack([c1, *(np.where(is_simple, 0.0, each) for each in higher)], axis=1))
    pull = np.where(is_deep, e / motion, 0.0)
    return SecularDrag(
        axis,
        e,
        terms,
        np.where(motion < _SLOWEST, np.inf, np.abs(bstar * c4) + _SECULAR_PULL * pull),
        np.where(is_simple, 0.0, 2 * np.abs(bstar * c5)) + _PERIODIC_PULL * pull,
    )


def _pull(satrec: Satrec) -> tuple[float, float]:
    """Return the most that the eccentricity of a deep-space set changes a minute, and by the periodic terms."""
    # Only the library's Python form shows its terms. It initialises the same set in some 40 us.
    terms = sgp4.model.Satrec()
    terms.sgp4init(
        WGS72, "i", 0, satrec.jdsatepoch - SGP4_DAY_ZERO_JD + satrec.jdsatepochF, satrec.bstar, 0.0, 0.0, satrec.ecco,
        satrec.argpo, satrec.inclo, satrec.mo, satrec.no_kozai, satrec.nodeo,
    )  # fmt: skip
    rate = abs(terms.dedt) + abs(satrec.bstar * terms.cc4)
    # Each periodic term is that of a sine and a cosine of twice an angle, a quarter of its coefficient high.
    return rate, (np.hypot(terms.se2, terms.se3) + np.hypot(terms.ee2, terms.e3)) / 4

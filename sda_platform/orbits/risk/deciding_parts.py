"""Which Gaussians of a pass with long tails decide its probability of collision, and whether that is diluted."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.risk.gaussian_parts import Parts, straight_probability
from sda_platform.orbits.risk.probability import ShortEncounterRisk
from sda_platform.orbits.risk.validity import EXTENDED, LOW_SPEED, Encounters, concerns

# A part of a pass counts if it adds this much of the 2D probability; where that may be far too low, if it is as likely.
_COUNTING_SHARE, _COUNTING_WEIGHT = 0.01, 0.4
# Of all variances: by how much less one sees whether a probability is diluted.
_NARROWER = 0.98


def deciding(parts: Parts, straight: FloatArray, count: int) -> tuple[npt.NDArray[np.bool_], list[list[str]]]:
    """Return which parts (m,) decide the probability of their pass, and the concerns of each, which are looked into.

    By its 2D probability, or, where that misleads, by its weight beside that of the likeliest part.
    """
    share = parts.weight * np.nan_to_num(straight)
    decides = (share >= _COUNTING_SHARE * np.bincount(parts.owner, share, minlength=count)[parts.owner]) & (share > 0)
    largest = np.zeros(count)
    np.maximum.at(largest, parts.owner, parts.weight)
    beside = parts.weight / largest[parts.owner]
    rows = np.flatnonzero(decides | (beside >= _COUNTING_WEIGHT))
    concerned = concerns(parts.passes.take(rows))
    misleads, reasons = np.isnan(straight), [list[str]() for _ in straight]
    misleads[rows] |= concerned[LOW_SPEED] | concerned[EXTENDED]
    for name, of in concerned.items():
        for row in rows[of].tolist():
            reasons[row].append(name)
    return decides | (misleads & (beside >= _COUNTING_WEIGHT)) | (beside == 1.0), reasons


def are_diluted(passes: Encounters, parts: Parts, plane: ShortEncounterRisk) -> npt.NDArray[np.bool_]:
    """Return which passes (n,) would have a larger 2D probability if all errors were smaller."""
    diluted = plane.maximum_sigma_scale < 1
    if len(parts.owner) > len(passes.radius_km):
        narrow = dataclasses.replace(
            parts.passes,
            covariance_1=_NARROWER * parts.passes.covariance_1,
            covariance_2=_NARROWER * parts.passes.covariance_2,
        )
        nearer = parts.summed(straight_probability(narrow)[0], len(diluted))
        is_split = np.bincount(parts.owner, minlength=len(diluted)) > 1
        diluted = np.where(is_split, nearer > plane.probability, diluted)
    return np.asarray(diluted)

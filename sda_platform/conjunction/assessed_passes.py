"""The passes that assessments describe, from their stored rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbits.element_errors import element_tails
from sda_platform.orbits.long_tails import GAUSSIAN
from sda_platform.orbits.risk.validity import Encounters


def assessed_pass(assessment: Mapping[str, Any]) -> Encounters:
    """Return the one pass of an assessment with its stored states; a term that is null is unknown."""
    states = [np.array([assessment[f"state_{n}"]], dtype=np.float64) for n in (1, 2)]
    covariances = [covariance_from_lower(np.array(assessment[f"covariance_{n}"], dtype=np.float64)) for n in (1, 2)]
    (one, other), radius_km = states, np.array([assessment["hard_body_radius_m"] / 1000])
    sides = one[:, :3], one[:, 3:], covariances[0], other[:, :3], other[:, 3:], covariances[1]
    # Assessments of earlier versions took all errors as Gaussian, and have no such column.
    degrees = [np.array([assessment.get(f"degrees_of_freedom_{n}") or GAUSSIAN]) for n in (1, 2)]
    tails = element_tails(degrees[0], *sides[:2]), element_tails(degrees[1], *sides[3:5])
    return Encounters(*sides, radius_km, tails=tails)

"""The passes that assessments describe, from their stored rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbits.element_errors import element_tails
from sda_platform.orbits.long_tails import GAUSSIAN, Tails
from sda_platform.orbits.risk.validity import Encounters


def assessed_pass(assessment: Mapping[str, Any]) -> Encounters:
    """Return the one pass of an assessment with its stored states; a term that is null is unknown."""
    return assessed_passes([assessment])


def assessed_passes(assessments: Sequence[Mapping[str, Any]]) -> Encounters:
    """Return the passes of assessments as `assessed_pass`."""
    first, second = (_side(assessments, number) for number in (1, 2))
    radius_km = np.array([each["hard_body_radius_m"] / 1000 for each in assessments])
    return Encounters(*first[0], *second[0], radius_km, tails=(first[1], second[1]))


def _side(
    assessments: Sequence[Mapping[str, Any]], number: int
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], Tails]:
    states = np.array([each[f"state_{number}"] for each in assessments], dtype=np.float64)
    lower = np.array([each[f"covariance_{number}"] for each in assessments], dtype=np.float64)
    r, v = states[:, :3], states[:, 3:]
    # Assessments of earlier versions took all errors as Gaussian, and have no such column.
    degrees = np.array([each.get(f"degrees_of_freedom_{number}") or GAUSSIAN for each in assessments])
    return (r, v, covariance_from_lower(lower)), element_tails(degrees, r, v)

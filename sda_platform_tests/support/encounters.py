"""Assessments of one encounter as rows of their table."""

from typing import Any

import numpy as np

from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform_tests.support.delta_tables import row
from sda_platform_tests.support.segments import after

TCA_NS = after(20 * 3600)
SIGMAS_KM = (0.1, 0.4, 0.2, 1e-4, 1e-4, 1e-4)
LOWER = np.diag(np.square(SIGMAS_KM))[np.tril_indices(6)].tolist()


def assessed(hours: float, **facts: Any) -> dict[str, Any]:
    """An assessment so many hours after the start: two circular orbits that cross at right angles, 0.3 km apart."""
    known = {
        "event_id": "an-event",
        "sequence": int(hours),
        "op": "insert",
        "as_of_ns": after(hours * 3600),
        "norad_id_1": 25544,
        "norad_id_2": 5,
        "object_name_1": "ISS <ZARYA>",
        "object_name_2": "VANGUARD 1",
        "tca_time_ns": TCA_NS,
        "miss_distance_km": 0.3,
        "relative_speed_km_s": 10.67,
        "collision_probability": 10.0 ** -(6 - hours / 4),
        "maximum_probability": 1e-3,
        "mahalanobis_distance": 1.2,
        "hard_body_radius_m": 10.0,
        "radius_1_m": 5.0,
        "radius_2_m": 5.0,
        "radius_source_1": "fleet file",
        "radius_source_2": "default by type",
        "risk": "yellow",
        "state_source_1": "fused_track",
        "state_1": [7000.0, 0.0, 0.0, 0.0, 7.546, 0.0],
        "state_2": [7000.3, 0.0, 0.0, 0.0, 0.0, 7.546],
        "covariance_1": LOWER,
        "covariance_2": LOWER,
    }
    return row(CONJUNCTION_ASSESSMENTS, **{**known, **facts})

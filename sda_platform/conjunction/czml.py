"""Both orbits of a conjunction as CZML, the format of Cesium, for an hour about TCA.

Source: the CZML Guide (AnalyticalGraphics/czml-writer). Positions are in metres, in CZML's inertial frame.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sda_platform.clock import iso
from sda_platform.orbits.two_body import orbital_period_s, two_body_state
from sda_platform.units import SECOND_NS

_COLOURS = {1: [30, 136, 229, 255], 2: [229, 57, 53, 255]}
_SAMPLES = 181


def czml(assessment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the packets of one row of ``conjunction_assessments``: a clock, and a path of each object.

    States are TEME at TCA. Two-body motion propagates them for a revolution of the slower object, half before TCA and
    half after, at most twelve hours each. CZML's inertial frame is that of ICRF; TEME of date differs from it by
    precession and nutation, 0.35 degrees in 2025, for both objects alike.
    """
    tca_ns = assessment["tca_time_ns"]
    states = {n: np.asarray(assessment[f"state_{n}"], dtype=np.float64) for n in (1, 2)}
    periods = [float(orbital_period_s(state[None, :3], state[None, 3:])[0]) for state in states.values()]
    half_s = min(float(np.nanmax([*periods, 3600.0])) / 2, 43_200.0)
    # Most of the samples lie near TCA, where the pair is looked at closely.
    offsets_s = half_s * np.sign(grid := np.linspace(-1, 1, _SAMPLES)) * np.abs(grid) ** 3
    span = "/".join(iso(tca_ns + round(s * SECOND_NS)) for s in (-half_s, half_s))
    clock = {"interval": span, "currentTime": iso(tca_ns), "multiplier": 10}
    packets: list[dict[str, Any]] = [{"id": "document", "name": "conjunction", "version": "1.0", "clock": clock}]
    for number, state in states.items():
        rows = np.tile(state, (_SAMPLES, 1))
        r_km, _ = two_body_state(rows[:, :3], rows[:, 3:], offsets_s)
        samples = np.column_stack([offsets_s, 1000 * r_km]).round(3)
        packets.append(
            {
                "id": str(assessment[f"norad_id_{number}"]),
                "name": assessment[f"object_name_{number}"] or str(assessment[f"norad_id_{number}"]),
                "availability": span,
                "position": {
                    "epoch": iso(tca_ns),
                    "referenceFrame": "INERTIAL",
                    "interpolationAlgorithm": "LAGRANGE",
                    "interpolationDegree": 5,
                    "cartesian": samples.ravel().tolist(),
                },
                "path": {"width": 2, "material": {"solidColor": {"color": {"rgba": _COLOURS[number]}}}},
                "point": {"pixelSize": 8, "color": {"rgba": _COLOURS[number]}},
                "label": {"text": assessment[f"object_name_{number}"] or str(assessment[f"norad_id_{number}"])},
            }
        )
    return packets

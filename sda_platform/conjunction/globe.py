"""The view of a conjunction in space: both orbits, the Earth with its coasts and the Sun, and both covariances at TCA.

Coasts: Natural Earth, public domain (see SOURCES.md), tenths of a degree: longitude, latitude, longitude and so on.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from sda_platform.conjunction.czml import czml
from sda_platform.conjunction.encounter_figures import encounter_geometry
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined
from sda_platform.orbits.frames import gmst82_rad, sun_teme_km

ORBIT_VIEW: Final = Path(__file__).with_name("orbit_view.js")
"""The script that draws `orbit_viewer`."""
_COASTS: Final = Path(__file__).with_name("coastlines.json")
_SIGMAS: Final = 3


def orbit_viewer(assessment: Mapping[str, Any]) -> Html:
    """Make the view, and the data that the script of ORBIT_VIEW draws."""
    buttons = {"play": "play", "whole": "whole orbits", "pair": "encounter"}
    slider = {"type": "range", "min": -1000, "max": 1000, "value": 0, "aria_label": "time about TCA"}
    label = "Both orbits about TCA over the Earth, with its coasts, its night side and the direction of the Sun"
    return joined(
        element("canvas", id="orbits", width=960, height=560, role="img", aria_label=label),
        element(
            "p",
            *(element("button", text, id=name, type="button") for name, text in buttons.items()),
            element("input", id="time", **slider),
        ),
        element("p", id="when"),
        element("p", f"Drag to turn, scroll or + and − to zoom. Ellipsoids at TCA: {_SIGMAS} sigmas."),
        _data("czml", json.dumps(czml(assessment))),
        _data("surroundings", json.dumps(surroundings(assessment))),
        _data("coasts", _COASTS.read_text(encoding="utf-8")),
    )


def surroundings(assessment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is about the pair at TCA, in TEME as its states.

    ``earth_angle_rad``: the prime meridian; ``sun``: its direction; ``ellipsoids``: of each object three semi-axes, m.
    """
    tca_ns = assessment["tca_time_ns"]
    sun = sun_teme_km(tca_ns)
    _, _, covariances = encounter_geometry(assessment)
    ellipsoids = []
    for covariance in covariances:
        variances, axes = np.linalg.eigh(covariance)
        ellipsoids.append((1000 * _SIGMAS * np.sqrt(np.maximum(variances, 0.0)) * axes).T.round(3).tolist())
    return {
        "earth_angle_rad": round(float(gmst82_rad(tca_ns)), 9),
        "sun": (sun / np.linalg.norm(sun)).round(6).tolist(),
        "ellipsoids": ellipsoids,
    }


def _data(name: str, text: str) -> Html:
    # A "<" inside a script element could end it.
    return element("script", Html(text.replace("<", "\\u003c")), type="application/json", id=name)

"""Eight real conjunctions of NASA CARA as messages, with covariances that a test may change."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.cdm import Cdm, CdmObject
from sda_platform.formats.cdm_writing import encode_cdm

_FILE = Path(__file__).parents[1] / "data" / "probability" / "cara_conjunctions.json"
CONJUNCTIONS: dict[str, dict[str, Any]] = {each["message_id"][15:24]: each for each in json.loads(_FILE.read_text())}
"""By the catalogue number of the secondary."""
FloatArray = npt.NDArray[np.float64]
Change = Callable[[FloatArray, int], FloatArray]


def position_only(covariance: FloatArray, _number: int) -> FloatArray:
    """Every term with a velocity is zero, as in messages that give a position covariance only."""
    changed = np.zeros((6, 6))
    changed[:3, :3] = covariance[:3, :3]
    return changed


def unchanged(covariance: FloatArray, _number: int) -> FloatArray:
    return covariance


def conjunction(secondary: str, change: Change = unchanged) -> bytes:
    """The message in KVN; ``change`` maps the RTN covariance (6, 6) of object 1 or 2, km and km/s."""
    told = CONJUNCTIONS[secondary]
    sides = []
    for number, each in enumerate(told["objects"], 1):
        covariance = np.zeros((6, 6))
        covariance[np.tril_indices(6)] = np.array(each["covariance_rtn_lower_m"]) * 1e-6
        covariance += np.tril(covariance, -1).T
        fields = {"OBJECT": f"OBJECT{number}", "OBJECT_DESIGNATOR": str(number)}
        state = np.array(each["position_km"]), np.array(each["velocity_km_s"])
        sides.append(CdmObject(fields, "EME2000", *state, change(covariance, number)))
    fields = {"TCA": told["tca"], "MISS_DISTANCE": str(told["miss_distance_m"]), "ORIGINATOR": "CARA"}
    radius = f"HBR = {told['hard_body_radius_m']} [m]"
    message = Cdm(fields, parse_iso_ns(told["tca"]), told["miss_distance_m"], (sides[0], sides[1]), comments=(radius,))
    return encode_cdm(message, "kvn")

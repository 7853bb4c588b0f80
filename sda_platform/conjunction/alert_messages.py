"""A conjunction data message from an assessment: the states and covariances that were assessed, as they were."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from sda_platform.conjunction.data_origins import DataOrigin, Key
from sda_platform.conjunction.stated_objects import StatedObjects
from sda_platform.formats.cdm import EARTH_FIXED_FRAME, Cdm, CdmObject
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.markings import of_event
from sda_platform.formats.stated_tails import tails_comment
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.frames import teme_to_itrf, velocity_teme_to_itrf
from sda_platform.units import SECOND_NS

# The standard names only the 2D integral; for the other methods a comment is added.
_KINDS = {"payload": "PAYLOAD", "rocket body": "ROCKET BODY", "debris": "DEBRIS", "unknown": "UNKNOWN"}
_MILLISECOND_NS = SECOND_NS // 1000


def assessment_message(
    assessment: Mapping[str, Any],
    created_ns: int,
    acknowledgements: Sequence[Mapping[str, Any]] = (),
    objects: StatedObjects = MappingProxyType({}),
    origins: Mapping[Key, DataOrigin] = MappingProxyType({}),
) -> Cdm:
    """Return the message of one row of ``conjunction_assessments``, created at ``created_ns``; with who acknowledged
    it.

    ``objects``: what else is known of its objects (`stated_objects`). ``origins``: whose data their states are, which
    is a comment of each object. Its marking is a comment, too. States are in ITRF: the standard has no TEME.
    """
    tca_ns = assessment["tca_time_ns"]
    metres = {
        "MISS_DISTANCE": assessment["miss_distance_km"],
        "RELATIVE_SPEED": assessment["relative_speed_km_s"],
        "RELATIVE_POSITION_R": assessment["radial_miss_km"],
        "RELATIVE_POSITION_T": assessment["in_track_miss_km"],
        "RELATIVE_POSITION_N": assessment["cross_track_miss_km"],
        "RELATIVE_VELOCITY_R": assessment["relative_velocity_radial_km_s"],
        "RELATIVE_VELOCITY_T": assessment["relative_velocity_in_track_km_s"],
        "RELATIVE_VELOCITY_N": assessment["relative_velocity_cross_track_km_s"],
    }
    fields = {
        "CREATION_DATE": _instant(created_ns),
        "ORIGINATOR": OWN_ORIGINATOR,
        "MESSAGE_ID": f"{assessment['event_id']}-{assessment['sequence']}",
        "TCA": format_epoch(tca_ns),
        **{keyword: f"{1000 * value:.6f}" for keyword, value in metres.items()},
        "COLLISION_PROBABILITY": f"{assessment['collision_probability']:.9e}",
        "COLLISION_PROBABILITY_METHOD": assessment["probability_method"],
    }
    comments = [*of_event(assessment).comments(), f"HBR = {assessment['hard_body_radius_m']:g} [m]"]
    if assessment["radius_source_1"]:
        parts = [f"{assessment[f'radius_{n}_m']:g} m ({assessment[f'radius_source_{n}']})" for n in (1, 2)]
        comments.append(f"RADII OF OBJECT1 AND OBJECT2: {', '.join(parts)}")
    if assessment["is_screening_only"]:
        comments.append("SCREENING ONLY: a covariance is a model of element sets by regime and age")
    if assessment["risk_flags"]:
        comments.append(f"FLAGS: {assessment['risk_flags']}")
    for each in acknowledgements:
        remark = f": {' '.join(each['comment'].split())}" if each["comment"] else ""
        comments.append(f"ACKNOWLEDGED BY {each['acknowledged_by']}{remark}")
    return Cdm(
        fields,
        tca_ns,
        1000 * assessment["miss_distance_km"],
        (_object(assessment, 1, objects, origins), _object(assessment, 2, objects, origins)),
        assessment["hard_body_radius_m"],
        tuple(comments),
    )


def _object(
    assessment: Mapping[str, Any], number: int, objects: StatedObjects, origins: Mapping[Key, DataOrigin]
) -> CdmObject:
    state = np.asarray(assessment[f"state_{number}"], dtype=np.float64)
    r, v, tca_ns = state[None, :3], state[None, 3:], assessment["tca_time_ns"]
    covariance = covariance_from_lower([assessment[f"covariance_{number}"]])
    norad_id, source = assessment[f"norad_id_{number}"], assessment[f"state_source_{number}"]
    origin = origins.get((assessment["event_id"], number))
    data = f", data of {origin.data}" if origin and origin.data else ""
    fields = {
        "OBJECT": f"OBJECT{number}",
        "OBJECT_DESIGNATOR": str(norad_id),
        "CATALOG_NAME": "SATCAT",
        "OBJECT_NAME": assessment[f"object_name_{number}"] or "UNKNOWN",
        "INTERNATIONAL_DESIGNATOR": "UNKNOWN",
        "OBJECT_TYPE": _KINDS[assessment[f"object_type_{number}"]],
        "EPHEMERIS_NAME": assessment.get(f"ephemeris_id_{number}") or "NONE",
        "COVARIANCE_METHOD": "DEFAULT" if source == "element_set" else "CALCULATED",
        "MANEUVERABLE": "N/A",
        **objects.get(norad_id, {}),
    }
    degrees = assessment.get(f"degrees_of_freedom_{number}")
    comment = f"state and covariance from {source.replace('_', ' ')}{data}"
    return CdmObject(
        fields,
        EARTH_FIXED_FRAME,
        teme_to_itrf(r, tca_ns)[0],
        velocity_teme_to_itrf(r, v, tca_ns)[0],
        teme_to_rtn(covariance, r, v)[0],
        comments=(comment, tails_comment(degrees)) if degrees else (comment,),
    )


def _instant(time_ns: int) -> str:
    """To the millisecond, as the standard's examples have it."""
    return format_epoch(time_ns // _MILLISECOND_NS * _MILLISECOND_NS)

"""Decode segments of conjunction data messages to rows: each message's content, and the risk from its states."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from sda_platform.conjunction.received_cdms import MessageRisk, message_risk
from sda_platform.conjunction.tables import MESSAGES_FEED, RECEIVED_CDMS
from sda_platform.formats.cdm import Cdm, instant_ns
from sda_platform.formats.cdm_json import CdmSummary
from sda_platform.formats.designators import NumbersOf, catalogue_number, no_objects, normal_designator
from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import finite
from sda_platform.formats.markings import stated_in
from sda_platform.fusion.tables import lower_triangles
from sda_platform.landing.record_rows import SegmentDecoder, record_decoder
from sda_platform.orbits.risk.levels import risk_level

# What content can cause; anything else (memory, system) is no fault of the message and may pass on a later attempt.
_OF_CONTENT = (ArithmeticError, LookupError, TypeError, ValueError)


def decoder(numbers_of: NumbersOf) -> SegmentDecoder:
    """Return the decoder of segments of messages; ``numbers_of`` finds objects that messages name by a designator."""
    return record_decoder(RECEIVED_CDMS, MESSAGES_FEED, partial(_facts, numbers_of=numbers_of))


def _facts(message: Cdm | CdmSummary, *, numbers_of: NumbersOf) -> dict[str, Any]:
    if isinstance(message, CdmSummary):
        return _stated_facts(message, numbers_of)
    try:
        return _assessed_message(message, numbers_of)
    except RecordError:
        raise
    except _OF_CONTENT as error:  # one message must not stop the others of its segment
        return {"error_kind": "bad_field", "error": f"cannot be assessed: {type(error).__name__}: {error}"[:500]}


def _assessed_message(message: Cdm, numbers_of: NumbersOf) -> dict[str, Any]:
    if message.miss_distance_m < 0:
        raise RecordError("out_of_range", f"MISS_DISTANCE is {message.miss_distance_m:g} m, must not be negative")
    risk = message_risk(message)
    facts = _encounter(message, risk.pc_in_message)
    return {
        **facts,
        "risk": risk.risk if risk.pc_in_message is None else facts["risk"],
        **_assessed(risk),
        **_of_object(message, 1, numbers_of),
        **_of_object(message, 2, numbers_of),
    }


def _stated_facts(message: CdmSummary, numbers_of: NumbersOf) -> dict[str, Any]:
    """A message without states: what it states, and nothing that would follow from states."""
    if message.miss_distance_m < 0:
        raise RecordError("out_of_range", f"MISS_DISTANCE is {message.miss_distance_m:g} m, must not be negative")
    text = message.fields.get("COLLISION_PROBABILITY")
    facts = _encounter(message, None if text is None else finite(text, "COLLISION_PROBABILITY"))
    for number, each in enumerate(message.objects, 1):
        facts |= _named(each, number, numbers_of)
    return facts


def _encounter(message: Cdm | CdmSummary, stated: float | None) -> dict[str, Any]:
    if stated is not None and not 0 <= stated <= 1:
        raise RecordError("out_of_range", f"COLLISION_PROBABILITY is {stated:g}, must be from 0 to 1")
    created = message.fields.get("CREATION_DATE")
    return {
        "originator": message.fields.get("ORIGINATOR"),
        "message_id": message.fields.get("MESSAGE_ID"),
        "created_time_ns": instant_ns(created, "CREATION_DATE") if created else None,
        "tca_time_ns": message.tca_time_ns,
        "miss_distance_km": message.miss_distance_m / 1000,
        "stated_probability": stated,
        "stated_method": message.fields.get("COLLISION_PROBABILITY_METHOD"),
        "risk": None if stated is None else str(risk_level(stated)),
        **(stated_in(message.comments).columns() if isinstance(message, Cdm) else {}),
    }


def _named(fields: Mapping[str, str], number: int, numbers_of: NumbersOf) -> dict[str, Any]:
    return {
        f"object_designator_{number}": fields.get("OBJECT_DESIGNATOR"),
        f"norad_id_{number}": _norad_id(fields, numbers_of),
        f"object_name_{number}": fields.get("OBJECT_NAME"),
    }


def _assessed(risk: MessageRisk) -> dict[str, Any]:
    return {
        "relative_speed_km_s": risk.relative_speed_km_s,
        "recomputed_probability": risk.pc,
        "probability_method": risk.method,
        "probability_2d": risk.pc_2d,
        "is_2d_valid": risk.valid_2d,
        "risk_flags": ",".join(risk.flags),
        "maximum_probability": risk.max_pc,
        "mahalanobis_distance": risk.mahalanobis_distance,
        "hard_body_radius_m": risk.hard_body_radius_m,
        "hard_body_radius_source": risk.hard_body_radius_source,
    }


def _of_object(message: Cdm, number: int, numbers_of: NumbersOf) -> dict[str, Any]:
    each = message.objects[number - 1]
    facts = {
        "reference_frame": each.frame,
        "state": np.concatenate([each.position_km, each.velocity_km_s]).tolist(),
        "covariance": lower_triangles(each.covariance_rtn[None])[0].tolist(),
    }
    return _named(each.fields, number, numbers_of) | {f"{name}_{number}": value for name, value in facts.items()}


def _norad_id(fields: Mapping[str, str], numbers_of: NumbersOf) -> int | None:
    """Return the number of an object: its designator, or the only object of the catalogue with its
    international one.
    """
    stated = fields.get("OBJECT_DESIGNATOR") or ""
    if number := catalogue_number(stated):
        return number
    names = (normal_designator(text) for text in (stated, fields.get("INTERNATIONAL_DESIGNATOR") or ""))
    found = next((numbers for name in names if name and (numbers := numbers_of(name))), ())
    return int(found[0]) if len(found) == 1 else None


decode = decoder(no_objects)
"""The decoder where no catalogue is at hand: objects that are designated otherwise have no number."""

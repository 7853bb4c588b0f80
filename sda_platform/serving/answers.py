"""The JSON of the endpoint's answers, as schemas of its OpenAPI document; a test compares real answers with them.

Rows of tables are described by the source of the catalogue, which knows their columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from sda_platform.formats.element_set import MARKINGS
from sda_platform.serving.index import Binding
from sda_platform.serving.puts import Refusal

Schema = Mapping[str, Any]
CONJUNCTION, ALERT, SCHEDULED_OBSERVATION = "Conjunction", "Alert", "ScheduledObservation"
"""Schemas of rows of tables."""
_REFERENCE: Final = "#/components/schemas/{model}"
_TEXT, _NUMBER, _WHOLE = ({"type": kind} for kind in ("string", "number", "integer"))
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_VECTOR: Final[Schema] = {"type": "array", "items": _NUMBER, "minItems": 3, "maxItems": 3}
_ELEMENTS: Final = {
    **dict.fromkeys(("OBJECT_NAME", "OBJECT_ID", "EPOCH", "CLASSIFICATION_TYPE", "ORIGINATOR", "DECAY_DATE"), _TEXT),
    **dict.fromkeys(MARKINGS, _TEXT),
    **dict.fromkeys(("NORAD_CAT_ID", "EPHEMERIS_TYPE", "ELEMENT_SET_NO", "REV_AT_EPOCH"), _WHOLE),
    **dict.fromkeys(
        ("MEAN_MOTION", "ECCENTRICITY", "INCLINATION", "RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY", "BSTAR",
         "MEAN_MOTION_DOT", "MEAN_MOTION_DDOT"), _NUMBER,
    ),
}  # fmt: skip
_STATE: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("norad_id", "time_ns", "elements_epoch_ns"), _WHOLE),
    "elements_age_days": _NUMBER,
    **dict.fromkeys(("frame", "error", "classification"), _TEXT),
    **dict.fromkeys(("data_mode", "owner", "source"), _TEXT_OR_NULL),
    **dict.fromkeys(("r_teme_km", "v_teme_km_s"), _VECTOR),
}
_TIMES: Final[Schema] = {"type": "array", "items": _WHOLE}
_ROWS_OF_NUMBERS: Final[Schema] = {"type": "array", "items": {"type": "array", "items": _NUMBER}}
_SOME_ROWS: Final[Schema] = {"type": "array", "items": {"type": ["array", "null"], "items": _NUMBER}}
_SEGMENT: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("origin", "name"), _TEXT),
    "error_scales": {"type": "array", "items": _NUMBER},
    "time_ns": _TIMES,
    "states": _ROWS_OF_NUMBERS,
    "covariances": {**_SOME_ROWS, "description": "Lower triangles, row by row; null: not known."},
}
_EPHEMERIS: Final[Mapping[str, Schema]] = {
    "norad_id": _WHOLE,
    **dict.fromkeys(("object_name", "classification", "data_mode"), _TEXT_OR_NULL),
    "frame": _TEXT,
}
_SUBMISSION: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("id", "received_utc"), _TEXT),
    "state": {"type": "string", "enum": ["received", "screened", "not_used"]},
    "screened_until_utc": {"type": ["string", "null"]},
    "withheld": {"type": "string"},
    "ephemerides": {"type": "array", "items": {"type": "object"}},
}
_OF_EVENTS: Final = ("cursor", "is_complete", "events")
_EVENTS: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"id": _TEXT, "feed": _TEXT, "row": {"type": "object"}},
        "required": ["id", "feed", "row"],
    },
}


@dataclass(frozen=True)
class Health:
    """What is served, what waits, and the engine's counters."""

    catalogue: Binding | None
    is_behind: bool
    lag_s: float
    followed_after_s: float | None
    pending_sets: int
    damage: str | None
    engine: dict[str, int] | None
    event_stream: dict[str, str | int | None] | None


@dataclass(frozen=True)
class TakenElements:
    """How many element sets were taken, and what is wrong with the others."""

    accepted: int
    refused: list[Refusal]


@dataclass(frozen=True)
class TakenEphemerides:
    """The id of a submission, where its state is, and whether its bytes are new."""

    id: str
    status: str
    is_new: bool


def schemas(rows: Mapping[str, Schema]) -> dict[str, Any]:
    """Make every schema by its name; ``rows`` are those of table rows."""
    described: list[type] = [Health, TakenElements, TakenEphemerides]
    _, found = TypeAdapter.json_schemas(
        [(each, "serialization", TypeAdapter(each)) for each in described], ref_template=_REFERENCE
    )
    return {
        **found["$defs"],
        "ElementSet": an_object(_ELEMENTS, ("NORAD_CAT_ID", "EPOCH")),
        "State": an_object(_STATE, ("norad_id", "time_ns", "frame")),
        "Ephemeris": an_object(
            {**_EPHEMERIS, "segments": {"type": "array", "items": an_object(_SEGMENT, tuple(_SEGMENT))}},
            ("norad_id", "frame", "segments"),
        ),
        "Submission": an_object({**_SUBMISSION, "conjunctions": many(CONJUNCTION)}, ("id", "state")),
        "Events": an_object({"cursor": _TEXT, "is_complete": {"type": "boolean"}, "events": _EVENTS}, _OF_EVENTS),
        "Error": an_object({"error": _TEXT}, ("error",)),
        **rows,
    }


def an_object(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> dict[str, Any]:
    """Make the schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def one(name: str) -> dict[str, Any]:
    """Refer to the schema with this name."""
    return {"$ref": _REFERENCE.format(model=name)}


def many(name: str) -> dict[str, Any]:
    """Make the schema of a list whose members have the schema with this name."""
    return {"type": "array", "items": one(name)}

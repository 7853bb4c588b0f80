"""Conjunction data messages as Space-Track gives them in JSON: its classes `cdm` (whole messages) and `cdm_public`.

Of `cdm` the keywords are those of CCSDS 508.0-B-1, those of an object behind ``SAT1_`` or ``SAT2_``, units in keys that
end in ``_UNIT``. `cdm_public` has the encounter alone, without states: a `CdmSummary`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.formats.cdm import Cdm, cdm_of_entries, instant_ns
from sda_platform.formats.cdm_keywords import UNITS
from sda_platform.formats.cdm_writing import flat_entries
from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import finite, json_object
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.records import RawRecord

BEGINS: Final = re.compile(rb'"(?:SAT_?1_\w+|CDM_ID)"\s*:')
_OF_OBJECT: Final = re.compile(r"SAT_?([12])_(\w+)")
_TYPES: Final = {"DEBRIS": "DEBRIS", "PAYLOAD": "PAYLOAD", "ROCKET BODY": "ROCKET BODY"}


@dataclass(frozen=True)
class CdmSummary:
    """An encounter without states: values as text by keyword of the standard, of the message and of both objects."""

    fields: Mapping[str, str]
    tca_time_ns: int
    miss_distance_m: float
    objects: tuple[Mapping[str, str], Mapping[str, str]]


def read_cdm_json(record: RawRecord) -> Cdm | CdmSummary:
    """Read one object of the array. Raises RecordError with the key and the reason."""
    values = {name.upper(): value for name, value in json_object(record.payload).items() if value not in (None, "")}
    if "SAT_1_ID" in values or "MIN_RNG" in values:
        return _summary(values)
    return cdm_of_entries([KeywordEntry("CCSDS_CDM_VERS", "JSON"), *_entries(values)])


def encode_cdm_json(messages: Sequence[Cdm | CdmSummary]) -> bytes:
    """An array of whole messages. Raises ValueError for a summary, which has no states."""
    rows = [dict(_flat(message)) for message in messages]
    return ("[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]\n").encode()


def _entries(values: Mapping[str, Any]) -> Iterator[KeywordEntry]:
    """Yield the message as a list of keywords: of the encounter, then of each object."""
    parts: tuple[dict[str, Any], dict[str, Any], dict[str, Any]] = ({}, {}, {})
    for name, value in values.items():
        found = _OF_OBJECT.fullmatch(name)
        parts[int(found[1]) if found else 0][found[2] if found else name] = value
    for number, part in enumerate(parts):
        if number:
            yield KeywordEntry("OBJECT", str(part.pop("OBJECT", f"OBJECT{number}")))
        for name, value in part.items():
            if name == "CCSDS_CDM_VERS" or name.endswith(("_UNIT", "_FRACTION")):
                continue
            text = _text(value)
            if name.startswith(COMMENT):
                what = name.removeprefix(COMMENT).strip("_")
                is_whole = not what or text.upper().startswith(what)  # the value has the name of the key, too
                yield KeywordEntry(COMMENT, text if is_whole else f"{what} = {text}")
            else:
                fraction = part.get(f"{name}_FRACTION")
                text = f"{text}.{fraction}" if fraction and "." not in text else text
                yield KeywordEntry(name, text, str(part.get(f"{name}_UNIT", "")), name)


def _summary(values: Mapping[str, Any]) -> CdmSummary:
    missing = next((name for name in ("TCA", "MIN_RNG", "SAT_1_ID", "SAT_2_ID") if name not in values), None)
    if missing:
        raise RecordError("missing_field", f"{missing} is missing")
    fields = {
        "MESSAGE_ID": values.get("CDM_ID"),
        "CREATION_DATE": values.get("CREATED"),
        "ORIGINATOR": values.get("ORIGINATOR", "CSpOC"),
        "TCA": values["TCA"],
        "MISS_DISTANCE": values["MIN_RNG"],
        "COLLISION_PROBABILITY": values.get("PC"),
        "COMMENT_EMERGENCY_REPORTABLE": values.get("EMERGENCY_REPORTABLE"),
    }
    objects = [
        {
            "OBJECT_DESIGNATOR": _text(values[f"SAT_{number}_ID"]),
            "OBJECT_NAME": f"{values.get(f'SAT_{number}_NAME', 'UNKNOWN')}",
            "OBJECT_TYPE": _TYPES.get(f"{values.get(f'SAT{number}_OBJECT_TYPE', '')}".upper(), "UNKNOWN"),
        }
        for number in (1, 2)
    ]
    return CdmSummary(
        {name: f"{value}" for name, value in fields.items() if value is not None},
        instant_ns(f"{values['TCA']}", "TCA"),
        finite(values["MIN_RNG"] if isinstance(values["MIN_RNG"], str | int | float) else "", "MIN_RNG"),
        (objects[0], objects[1]),
    )


def _text(value: Any) -> str:
    """A value as text; a whole number without a point, as a table with gaps writes it."""
    return f"{int(value) if isinstance(value, float) and value.is_integer() else value}".strip()


def _flat(message: Cdm | CdmSummary) -> Iterator[tuple[str, str]]:
    if isinstance(message, CdmSummary):
        raise ValueError("the message is a summary without states and covariances (cdm_public)")
    prefix, comments = "", 0
    for entry in flat_entries(message):
        if entry.keyword == "OBJECT":
            prefix = "SAT1_" if entry.value == "OBJECT1" else "SAT2_"
        name = f"{prefix}{entry.keyword}"
        if entry.keyword == COMMENT:
            comments += 1
            name = f"{prefix}{COMMENT}_{comments}"
        yield name, entry.value
        if UNITS.get(entry.keyword):
            yield f"{name}_UNIT", entry.unit

"""Acknowledgements of alerts as lines of JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, text_field
from sda_platform.formats.records import RawRecord

MOST_CHARACTERS = 4096


@dataclass(frozen=True)
class AlertAcknowledgement:
    """A person has seen revision ``revision`` of an alert; ``comment`` may be empty."""

    alert_id: str
    revision: int
    acknowledged_by: str
    comment: str
    acknowledged_time_ns: int


def read_acknowledgement(record: RawRecord) -> AlertAcknowledgement:
    """Return the acknowledgement on one line; raises RecordError."""
    fields = json_object(record.payload)
    comment = fields.get("comment", "")
    if not isinstance(comment, str):
        raise RecordError("bad_field", f"comment is {ascii(comment)[:80]}, must be text")
    if len(comment) > MOST_CHARACTERS:
        raise RecordError("bad_field", f"comment has {len(comment)} characters, at most {MOST_CHARACTERS} are allowed")
    return AlertAcknowledgement(
        alert_id=text_field(fields, "alert_id"),
        revision=integer_field(fields, "revision"),
        acknowledged_by=text_field(fields, "acknowledged_by"),
        comment=encodable(comment, "comment"),
        acknowledged_time_ns=integer_field(fields, "acknowledged_time_ns"),
    )


def encode_acknowledgements(acknowledgements: Iterable[AlertAcknowledgement]) -> bytes:
    """Acknowledgements as lines of JSON; equal ones give equal bytes."""
    return b"".join(json.dumps(asdict(each), sort_keys=True).encode() + b"\n" for each in acknowledgements)

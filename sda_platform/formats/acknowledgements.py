"""What people do about alerts, as lines of JSON: acknowledge, assign, comment."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, text_field
from sda_platform.formats.records import RawRecord

ACKNOWLEDGE, ASSIGN, COMMENT = ACTIONS = ("acknowledge", "assign", "comment")
MOST_CHARACTERS: Final = 4096


@dataclass(frozen=True)
class AlertAcknowledgement:
    """What a person did about revision ``revision`` of an alert, by ``action``; ``comment`` may be empty.

    An empty ``assigned_to`` ends an assignment.
    """

    alert_id: str
    revision: int
    acknowledged_by: str
    comment: str
    acknowledged_time_ns: int
    action: str = ACKNOWLEDGE
    assigned_to: str = ""


def read_acknowledgement(record: RawRecord) -> AlertAcknowledgement:
    """Return the action on one line; without a field ``action`` it is an acknowledgement. Raises RecordError."""
    fields = json_object(record.payload)
    action = fields.get("action", ACKNOWLEDGE)
    if action not in ACTIONS:
        raise RecordError("bad_field", f"action is {ascii(action)[:80]}, must be one of {', '.join(ACTIONS)}")
    comment = _text(fields, "comment")
    if action == COMMENT and not comment:
        raise RecordError("bad_field", "a comment is empty")
    return AlertAcknowledgement(
        alert_id=text_field(fields, "alert_id"),
        revision=integer_field(fields, "revision"),
        acknowledged_by=text_field(fields, "acknowledged_by"),
        comment=comment,
        acknowledged_time_ns=integer_field(fields, "acknowledged_time_ns"),
        action=action,
        assigned_to=_text(fields, "assigned_to"),
    )


def _text(fields: Mapping[str, object], name: str) -> str:
    """Return a text that may be absent or empty."""
    text = fields.get(name, "")
    if not isinstance(text, str):
        raise RecordError("bad_field", f"{name} is {ascii(text)[:80]}, must be text")
    if len(text) > MOST_CHARACTERS:
        raise RecordError("bad_field", f"{name} has {len(text)} characters, at most {MOST_CHARACTERS} are allowed")
    return encodable(text, name)


def encode_acknowledgements(acknowledgements: Iterable[AlertAcknowledgement]) -> bytes:
    """Acknowledgements as lines of JSON; equal ones give equal bytes."""
    return b"".join(json.dumps(asdict(each), sort_keys=True).encode() + b"\n" for each in acknowledgements)

"""Edits of catalogue objects as lines of JSON, as sites exchange them."""

import json
from collections.abc import Iterable
from dataclasses import asdict

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, text_field
from sda_platform.formats.records import RawRecord
from sda_platform.protocols.edits import BadEdit, Edit


def read_edit(record: RawRecord) -> Edit:
    """The edit on one line; raises RecordError."""
    fields = json_object(record.payload)
    value, vector = fields.get("value"), fields.get("vector")
    if not isinstance(value, str):
        raise RecordError("bad_field", f"value is {ascii(value)[:80]}, must be text")
    if not isinstance(vector, dict) or not all(type(count) is int for count in vector.values()):
        raise RecordError("bad_field", f"vector is {ascii(vector)[:80]}, must be an object of integers")
    try:
        return Edit(
            norad_id=integer_field(fields, "norad_id"),
            attribute=text_field(fields, "attribute"),
            value=encodable(value, "value"),
            origin=text_field(fields, "origin"),
            lamport=integer_field(fields, "lamport"),
            vector=vector,
            editor=encodable(str(fields.get("editor") or ""), "editor"),
            edited_time_ns=integer_field(fields, "edited_time_ns") if "edited_time_ns" in fields else 0,
        )
    except BadEdit as error:
        raise RecordError("bad_field", str(error)) from None


def encode_edits(edits: Iterable[Edit]) -> bytes:
    """Edits as lines of JSON; equal edits give equal bytes."""
    return b"".join(json.dumps(asdict(edit), sort_keys=True).encode() + b"\n" for edit in edits)

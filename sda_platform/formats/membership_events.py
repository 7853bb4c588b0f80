"""What agents of stations and collectors claim of each other, and who belongs to the fleet, as lines of JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, text_field
from sda_platform.formats.records import RawRecord

ALIVE, SUSPECTED, DEAD, LEFT = range(4)
STATUS_NAMES: Final = ("alive", "suspected", "failed", "left")
"""Of these numbers. Who leaves on purpose has not failed, whatever others saw of it afterwards."""
ADMITTED, REMOVED = "admitted", "removed"
REGISTRY_EVENTS: Final = (ADMITTED, REMOVED)
"""A person lists a member in the registry, or takes it out."""


@dataclass(frozen=True)
class MembershipEvent:
    """``observer`` claims a status of ``member``, or lists it in the registry.

    ``generation`` is that of the claim. ``number`` orders the events of an observer, also over its restarts.
    ``event_time_ns`` is Unix time UTC. ``address`` and ``role`` are what the member says of itself, or empty.
    """

    observer: str
    member: str
    event: str
    event_time_ns: int
    generation: int = 0
    number: int = 0
    address: str = ""
    role: str = ""


def read_membership_event(record: RawRecord) -> MembershipEvent:
    """Return the event on one line; raises RecordError."""
    fields = json_object(record.payload)
    event = text_field(fields, "event")
    if event not in (*STATUS_NAMES, *REGISTRY_EVENTS):
        raise RecordError("bad_field", f"event is {ascii(event)[:40]}, must be a status or admitted or removed")
    return MembershipEvent(
        observer=text_field(fields, "observer"),
        member=text_field(fields, "member"),
        event=event,
        event_time_ns=integer_field(fields, "event_time_ns"),
        generation=integer_field(fields, "generation") if "generation" in fields else 0,
        number=integer_field(fields, "number") if "number" in fields else 0,
        address=encodable(str(fields.get("address") or ""), "address"),
        role=encodable(str(fields.get("role") or ""), "role"),
    )


def encode_membership_events(events: Iterable[MembershipEvent]) -> bytes:
    """Events as lines of JSON; equal events give equal bytes."""
    return b"".join(json.dumps(asdict(event), sort_keys=True).encode() + b"\n" for event in events)

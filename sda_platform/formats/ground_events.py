"""What happens to ground commands and to the uplinks that send them, as lines of JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, number_field, text_field
from sda_platform.formats.records import RawRecord

ISSUED, CONFIRMED, ACCEPTED, REJECTED, DISPATCHED = "issued", "confirmed", "accepted", "rejected", "dispatched"
ACKNOWLEDGED, FAILED, EXPIRED, LOST = "acknowledged", "failed", "expired", "lost"
COMMAND_EVENTS: Final = (ISSUED, CONFIRMED, ACCEPTED, REJECTED, DISPATCHED, ACKNOWLEDGED, FAILED, EXPIRED, LOST)
"""Of a command: a person or program requests it, another one confirms it; the active uplink takes, refuses, sends it;
the station answers."""
LINK_EVENTS: Final = (
    "suspected", "cleared", "declared", "recovered", "promoted", "failed_back", "both_down", "deposed",
)  # fmt: skip
"""Of an uplink: see `ground.failover`; deposed: it learned that another one holds a newer token."""
HEARTBEATS: Final = "heartbeats"
"""An uplink recorded the gaps between another one's heartbeats: its ``detail`` is for `heartbeat_gaps`."""


@dataclass(frozen=True)
class GroundEvent:
    """One event; ``command_id``, ``kind``, ``issued_time_ns`` and ``expires_time_ns`` are those of a command, or empty.

    ``number`` orders the events of one uplink and token; times are Unix time UTC, ns.
    """

    station: str
    event: str
    event_time_ns: int
    uplink: str = ""
    token: int = 0
    number: int = 0
    command_id: str = ""
    kind: str = ""
    issued_time_ns: int = 0
    expires_time_ns: int = 0
    detail: str = ""
    azimuth_deg: float | None = None
    """Where a command points, from north by east; None: it has no direction."""
    elevation_deg: float | None = None
    person: str = ""
    """Who issues or confirms a command (`ground.commanders`); empty: not stated."""
    signature: str = ""
    """That of the person, hexadecimal; of an uplink's event its key and the signature (`ground.event_keys`)."""
    station_accepted_time_ns: int = 0
    """When the station accepted the command, by its own clock, as in ECSS-PUS service 1; 0: not stated."""
    station_started_time_ns: int = 0
    """When its execution began there."""
    station_finished_time_ns: int = 0
    """When it completed, failed or was refused there."""


_TEXTS: Final = ("uplink", "command_id", "kind", "detail", "person", "signature")
_DIRECTION: Final = ("azimuth_deg", "elevation_deg")
STATION_TIMES: Final = ("station_accepted_time_ns", "station_started_time_ns", "station_finished_time_ns")
_NUMBERS: Final = ("token", "number", "issued_time_ns", "expires_time_ns", *STATION_TIMES)


def read_ground_event(record: RawRecord) -> GroundEvent:
    """Return the event on one line; raises RecordError."""
    fields = json_object(record.payload)
    event = text_field(fields, "event")
    if event not in (*COMMAND_EVENTS, *LINK_EVENTS, HEARTBEATS):
        raise RecordError("bad_field", f"event is {ascii(event)[:40]}, must be one of those of a command or a link")
    if event in COMMAND_EVENTS and not fields.get("command_id"):
        raise RecordError("bad_field", f"command_id is missing in an event {event}")
    if event == HEARTBEATS:
        heartbeat_gaps(str(fields.get("detail") or ""))
    return GroundEvent(
        station=text_field(fields, "station"),
        event=event,
        event_time_ns=integer_field(fields, "event_time_ns"),
        **{name: encodable(str(fields.get(name) or ""), name) for name in _TEXTS},  # type: ignore[arg-type]
        **{name: integer_field(fields, name) if name in fields else 0 for name in _NUMBERS},  # type: ignore[arg-type]
        **{name: number_field(fields, name) for name in _DIRECTION if fields.get(name) is not None},  # type: ignore[arg-type]
    )


def heartbeat_gaps(detail: str) -> tuple[str, str, list[int]]:
    """Return the uplink that was heard, the class of the path, and the gaps in ms, of an event of heartbeats.

    Raises RecordError where ``detail`` has anything else.
    """
    fields = json_object(detail.encode())
    gaps_ms = fields.get("gaps_ms")
    if not isinstance(gaps_ms, list) or not all(type(each) is int and each >= 0 for each in gaps_ms):
        raise RecordError("bad_field", "gaps_ms must be a list of milliseconds")
    return text_field(fields, "heard"), text_field(fields, "path"), gaps_ms


def encode_ground_events(events: Iterable[GroundEvent]) -> bytes:
    """Events as lines of JSON; equal events give equal bytes."""
    return b"".join(json.dumps(asdict(event), sort_keys=True).encode() + b"\n" for event in events)

"""The log of a station's commands and uplinks: sealed segments in the landing zone, and the rows consumed from them.

An event counts when its segment is sealed. So a command is durable before it is sent, and the uplink that becomes
active reads every command from the same log.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow.dataset as ds

from sda_platform.audit_log import user
from sda_platform.formats.errors import RecordError
from sda_platform.formats.ground_events import CONFIRMED, EXPIRED, ISSUED, GroundEvent, encode_ground_events
from sda_platform.formats.reading import require_readable
from sda_platform.formats.segments import Sender
from sda_platform.ground.command_states import EVENT_COLUMNS, decode, states
from sda_platform.ground.commanders import UNSIGNED, CommandAuthority, CommandersError, issue_refusal
from sda_platform.ground.commands import PRIORITY, BadId, check_direction, check_id
from sda_platform.ground.tables import GROUND_EVENTS, GROUND_FEED
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.listing import is_local
from sda_platform.landing.record_rows import usable_rows
from sda_platform.landing.zone import LandingZone

FORMAT = "ground-events-jsonl"


# The latest at which an uplink reads a new command from an object store. Each look there costs requests.
_LONGEST_PAUSE_S = 1.0


class UnknownKind(ValueError):
    """No command is of this kind."""


class CommandLog:
    """Events of one ``station``."""

    def __init__(self, lake: Lake, landing_uri: str, station: str, authority: CommandAuthority = UNSIGNED) -> None:
        """``authority``: in whose name commands are issued and confirmed."""
        self.station, self._lake, self._authority = station, lake, authority
        self._zone = LandingZone(landing_uri, GROUND_FEED)
        self._read: set[str] = set()
        self._sequence = 0
        self._written = 0
        self._writer = uuid.uuid4().hex[:8]

    @property
    def longest_pause_s(self) -> float:
        """How long a reader may pause between looks; 0: a look at a local disk costs no request."""
        return 0.0 if is_local(self._zone.root) else _LONGEST_PAUSE_S

    def new_events(self) -> list[dict[str, Any]]:
        """Read the events sealed since the last call, including those of this process; each once.

        After an error the next call returns what this one would have.
        """
        # Pending ones first: a segment that is consumed meanwhile is found in the table, and known by its name.
        found, consumed = self._pending(), set[str]()
        head = self._lake.log(GROUND_EVENTS).head().sequence
        if head > self._sequence:
            is_new = (ds.field(COMMIT_SEQUENCE) > self._sequence) & (ds.field("station") == self.station)
            rows = self._lake.log(GROUND_EVENTS).rows([*EVENT_COLUMNS, "segment_name"], is_new).to_pylist()
            consumed = {row["segment_name"] for row in rows}
            for name in sorted(consumed - found.keys() - self._read):
                found[name] = [row for row in rows if row["segment_name"] == name]
            self._read |= found.keys()
            # Later looks read later commits: the name of a consumed segment is only needed while it is still pending.
            self._read -= consumed.difference(self._zone.pending_names())
        self._read |= found.keys() - consumed
        self._sequence = max(head, self._sequence)
        return [row for rows in found.values() for row in rows if row["station"] == self.station]

    def append(self, events: Sequence[GroundEvent]) -> None:
        """Make events durable; they are when this returns."""
        if not events:
            return
        data = encode_ground_events(events)
        self._written += 1
        name = f"{self.station}-{self._writer}-{self._written:08d}.ground"
        self._zone.seal_at(self._lake.clock.now_ns(), name, data, FORMAT, sender=Sender(user()))

    def issue(
        self,
        kind: str,
        *,
        expires_in_s: float,
        command_id: str | None = None,
        azimuth_deg: float | None = None,
        elevation_deg: float | None = None,
    ) -> GroundEvent:
        """Request a command; it is durable when this returns. Raises UnknownKind, BadDirection, BadId, CommandersError.

        A caller that repeats a request gives the ``command_id`` of the first one: it is executed at most once.
        """
        if kind not in PRIORITY:
            raise UnknownKind(f"{kind!r} is no kind of command; there are: {', '.join(PRIORITY)}")
        check_direction(kind, azimuth_deg, elevation_deg)
        if command_id is not None:
            check_id(command_id)
        now_ns = self._lake.clock.now_ns()
        event = GroundEvent(
            self.station,
            ISSUED,
            now_ns,
            command_id=command_id or str(uuid.uuid4()),
            kind=kind,
            issued_time_ns=now_ns,
            expires_time_ns=now_ns + round(expires_in_s * 1e9),
            azimuth_deg=azimuth_deg,
            elevation_deg=elevation_deg,
        )
        event = self._authority.issued(event)
        try:
            require_readable(encode_ground_events([event]), FORMAT, GROUND_FEED)
        except RecordError as error:
            raise BadId(str(error)) from None
        self.append([event])
        return event

    def confirm(self, command_id: str) -> GroundEvent:
        """Confirm an issued command in the name of another person; it is durable when this returns.

        Raises CommandersError, also for a command that is not known, or no longer waits.
        """
        found = [each for each in self.new_events() if each["command_id"] == command_id]
        requests = [each for each in found if each["event"] == ISSUED]
        if not requests:
            raise CommandersError(f"station {self.station} has no command {command_id[:80]!r}: sda ground list")
        (row,) = states([], found)
        now_ns = self._lake.clock.now_ns()
        # Others than commanders may have written an event with its id.
        valid = (each for each in requests if issue_refusal(each, self._authority.commanders) is None)
        issued = next((each for each in valid if each["expires_time_ns"] > now_ns), requests[0])
        is_open = row["state"] in (ISSUED, CONFIRMED)
        if not is_open or issued["expires_time_ns"] <= now_ns:
            state = EXPIRED if is_open else row["state"]
            raise CommandersError(f"command {command_id} waits for no confirmation: it is {state}")
        event = self._authority.confirmed(issued, now_ns)
        self.append([event])
        return event

    def _pending(self) -> dict[str, list[dict[str, Any]]]:
        """Events of this station's pending segments that were not read before, by segment, oldest seal first."""
        names = (name for name in self._zone.pending_names() if name.startswith(f"{self.station}-"))
        segments = (self._zone.describe(name) for name in names if name not in self._read)
        found = {}
        for segment in sorted((each for each in segments if each), key=lambda each: (each.sealed_time_ns, each.name)):
            loaded = self._zone.read(segment)
            # One that is consumed meanwhile has no bytes: the table has its rows.
            if loaded.defect is None and loaded.meta is not None:
                found[segment.name] = usable_rows(decode(loaded.data, loaded.meta))
        return found

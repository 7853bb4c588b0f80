"""The audit log of a home: who verified, replayed, reconciled or re-injected what, when, and how it ended.

`<home>/audit.jsonl` is only appended to, one JSON object a line, on disk before the command reports success.
"""

import getpass
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "audit.jsonl"


@dataclass(frozen=True)
class AuditEvent:
    """An operation on the lake. ``at_utc``: wall time of its end. ``by``: a user, or the run of a schedule."""

    at_utc: str
    by: str
    operation: str
    arguments: Mapping[str, Any]
    outcome: str


def record(
    home: Path, operation: str, arguments: Mapping[str, Any], outcome: str, *, by: str | None = None
) -> AuditEvent:
    """Append an event; a line that a power loss cut short is left behind, and the event begins a new one."""
    at_utc = datetime.now(UTC).isoformat(timespec="seconds")
    event = AuditEvent(at_utc, by or user(), operation, dict(arguments), outcome)
    home.mkdir(parents=True, exist_ok=True)
    with (home / FILE).open("ab+") as log:
        if log.tell():
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(b"\n")
        log.write(json.dumps(asdict(event), default=str).encode() + b"\n")
        log.flush()
        os.fsync(log.fileno())
    return event


def events(home: Path) -> list[AuditEvent]:
    """Every event of ``home``, oldest first; lines that are not whole are left out."""
    try:
        lines = (home / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(AuditEvent(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def user() -> str:
    """Return the user of this process; its number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number only
        return f"user {os.getuid()}"

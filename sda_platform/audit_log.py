"""The audit log of a home: who verified, replayed, reconciled or re-injected what, when, and how it ended.

`<home>/audit.jsonl` is only appended to, one JSON object a line, on disk before the command reports success.
"""

import getpass
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sda_platform import json_lines


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
    """Append an event, which is on disk on return."""
    at_utc = datetime.now(UTC).isoformat(timespec="seconds")
    event = AuditEvent(at_utc, by or user(), operation, dict(arguments), outcome)
    json_lines.append(home / json_lines.AUDIT_LOG, asdict(event))
    return event


def events(home: Path) -> list[AuditEvent]:
    """Every event of ``home``, oldest first; lines that are not whole are left out."""
    found = []
    for line in json_lines.read(home / json_lines.AUDIT_LOG):
        with suppress(TypeError):
            found.append(AuditEvent(**line))
    return found


def user() -> str:
    """Return the user of this process; its number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number only
        return f"user {os.getuid()}"

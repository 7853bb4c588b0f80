"""The record of the lake's last verification and repair, stored in the platform's home for the user.

No decision depends on this record, so its loss is harmless.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from upath import UPath

from sda_platform.lake import durable
from sda_platform.recovery.repair import RepairFinding

_FILE = "recovery.json"


def write(home: Path, findings: Sequence[RepairFinding], *, seconds: float) -> None:
    """Record ``findings``, which took ``seconds``."""
    record = {
        "schema_version": 1,
        "verified_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "tables": {finding.examination.table: _table_record(finding) for finding in findings},
    }
    durable.write(UPath(home / _FILE), (json.dumps(record, indent=1) + "\n").encode())


def read(home: Path) -> dict[str, Any]:
    """Return the record; empty where no verification was recorded, or not whole."""
    try:
        record = json.loads((home / _FILE).read_text())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def facts(home: Path, table: str) -> dict[str, Any]:
    """Metadata of a check of ``table`` about the last start: time and duration of the verification, and repairs."""
    record = read(home)
    of_table = record.get("tables", {}).get(table)
    if of_table is None:
        return {}
    at_start = {"verified_at_start_utc": record["verified_utc"], "start_outcome": of_table["outcome"]}
    return {**at_start, **({"recovered_by": of_table["repaired"]} if of_table["repaired"] else {})}


def _table_record(finding: RepairFinding) -> dict[str, Any]:
    seen = finding.examination
    return {
        "outcome": finding.outcome,
        "version": seen.version,
        "sequence": seen.sequence,
        "commits_read": seen.commits_read,
        "files_seen": seen.files_seen,
        "seconds": round(seen.seconds, 3),
        "problems": finding.problems,
        "repaired": list(finding.repaired),
        "refused": finding.refused,
    }

"""Where a running collector answers: a small file in the home, for `sda sources`, checks and the supervisor."""

import json
import os
from pathlib import Path

ADDRESS_FILE = "collector.json"


def publish(home: Path, control: str) -> None:
    """Say that the collector of ``home`` answers at ``control`` (host:port)."""
    partial = home / f".{ADDRESS_FILE}.{os.getpid()}.tmp"
    partial.write_text(json.dumps({"control": control, "pid": os.getpid()}))
    partial.replace(home / ADDRESS_FILE)


def withdraw(home: Path) -> None:
    """Say that no collector runs in ``home``."""
    (home / ADDRESS_FILE).unlink(missing_ok=True)


def published(home: Path) -> str | None:
    """Where the collector of ``home`` answers; None where none runs."""
    try:
        return str(json.loads((home / ADDRESS_FILE).read_text())["control"])
    except (OSError, KeyError, TypeError, ValueError):
        return None

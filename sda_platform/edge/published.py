"""Where a running collector answers: a small file in the home, for `sda sources`, checks and the supervisor."""

import json
import os
from pathlib import Path
from typing import Any

ADDRESS_FILE = "collector.json"


def publish(home: Path, control: str) -> None:
    """Write that the collector of ``home``, this process, answers at ``control`` (host:port)."""
    partial = home / f".{ADDRESS_FILE}.{os.getpid()}.tmp"
    partial.write_text(json.dumps({"control": control, "pid": os.getpid()}))
    partial.replace(home / ADDRESS_FILE)


def withdraw(home: Path) -> None:
    """Remove what this process published; the address of another collector of ``home`` stays."""
    if _content(home).get("pid") == os.getpid():
        (home / ADDRESS_FILE).unlink(missing_ok=True)


def published(home: Path) -> str | None:
    """Where the collector of ``home`` answers; None where none runs."""
    control = _content(home).get("control")
    return None if control is None else str(control)


def _content(home: Path) -> dict[str, Any]:
    """What the file holds; nothing where it is absent or damaged."""
    try:
        found = json.loads((home / ADDRESS_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

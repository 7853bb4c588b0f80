"""The backups below a directory: which of them are complete, when each was made, and what it holds.

Each is a directory that is named by its time. `backup.json` lists its files; the directory gets its name when that, and
all else, is on disk.
"""

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sda_platform.lake.errors import InvalidRequest

CONTENTS: Final = "backup.json"
FORMAT: Final = 1
UNFINISHED, REMOVED = ".unfinished", ".removed"
LOCK: Final = "backup.lock"
"""Is in each directory that backups are made into."""
LAKE, LANDING, HOME = "lake", "landing", "home"
"""The directories of a backup."""
_NAME: Final = "%Y%m%dT%H%M%S.%fZ"
_MOST_TIME_NS: Final = 2**63


def name_of(made_s: float) -> str:
    """Return the name of the backup that was made at ``made_s`` (Unix time)."""
    return datetime.fromtimestamp(made_s, UTC).strftime(_NAME)


def made_s(backup: Path) -> float | None:
    """Return when a backup was made (Unix time), by its name; None: it has another name."""
    try:
        return datetime.strptime(backup.name, _NAME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def complete_backups(target: Path) -> list[Path]:
    """Return the complete backups below ``target``, newest first. One that was given another name is none of them."""
    found = (each for each in target.iterdir() if made_s(each) is not None) if target.is_dir() else ()
    return sorted((each for each in found if (each / CONTENTS).exists()), reverse=True)


def newest_backup(target: Path) -> Path | None:
    """Return the newest complete backup below ``target``; None: there is none."""
    return next(iter(complete_backups(target)), None)


def remove_all_but(kept: int, target: Path) -> list[Path]:
    """Remove the complete backups below ``target`` but the newest ``kept``, and return them. May be repeated."""
    going = complete_backups(target)[kept:]
    for backup in going:
        shutil.rmtree(target / REMOVED, ignore_errors=True)
        backup.rename(target / REMOVED)  # a removal that is killed leaves no half of a backup under its name
    shutil.rmtree(target / REMOVED, ignore_errors=True)
    return going


def contents_of(backup: Path) -> dict[str, Any]:
    """Read what ``backup`` holds: facts, and of each of its ``files`` the size, SHA-256 and time of change (ns).

    Raises InvalidRequest where that cannot be used.
    """
    try:
        found: dict[str, Any] = json.loads((backup / CONTENTS).read_text())
        known = found["format"]
        for name, (size, sha256, mtime_ns) in found["files"].items():
            is_name = b"\0" not in os.fsencode(name)
            if not (is_name and size >= 0 and len(sha256) and abs(mtime_ns) < _MOST_TIME_NS):
                raise ValueError(f"{name!a} has no size, hash and time")
    except (AttributeError, ValueError, KeyError, RecursionError, TypeError) as error:
        raise InvalidRequest(f"{backup / CONTENTS} is damaged ({error!r}): use an earlier backup") from None
    if known != FORMAT:
        raise InvalidRequest(f"{backup / CONTENTS} is of format {known}, this version of the platform reads {FORMAT}")
    return found

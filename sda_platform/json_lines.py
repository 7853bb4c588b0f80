"""Files of JSON objects, one a line, that are only appended to and on disk before an append returns."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sda_platform.whole_files import replace_content

AUDIT_LOG: Final = "audit.jsonl"
PAST_FAULTS: Final = "faults.jsonl"
"""Such files of the home: of `audit_log`, and of the vitals' `past_faults`."""


def append(path: Path, *objects: Mapping[str, Any], most_bytes: int | None = None) -> None:
    """Append a line for each of ``objects``; a line that a power loss cut short is left behind.

    Where the file is larger than ``most_bytes``, the older half of its lines is removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if most_bytes and path.exists() and path.stat().st_size > most_bytes:
        lines = path.read_bytes().splitlines(keepends=True)
        replace_content(path, b"".join(lines[len(lines) // 2 :]))
    with path.open("ab+") as log:
        if log.tell():
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(b"\n")
        log.write(b"".join(json.dumps(each, default=str).encode() + b"\n" for each in objects))
        log.flush()
        os.fsync(log.fileno())


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every object of the file, oldest first; lines that are not whole, or are none, are left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found

"""The log of accesses: who read and wrote what at the endpoint, in files of JSON lines that are bounded together.

`access.jsonl` is written; a full one is renamed to `access-00000001.jsonl` and so on, and the oldest is removed. A line
is in the file before its answer begins, so that a request whose line cannot be written is not answered.
"""

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Lock
from typing import Final

DIRECTORY: Final = "access"
"""Below the home."""
MOST_BYTES: Final = 16 * 2**20
"""Of one file."""
MOST_FILES: Final = 16
_FILE: Final = "access.jsonl"
_FULL: Final = re.compile(r"access-([0-9]{8,18})\.jsonl")


@dataclass(frozen=True)
class Access:
    """One request. ``at_utc``: wall time of its answer. ``client``: empty where it is not known.

    ``target``: path and query. ``sent_bytes``: None for a stream.
    """

    at_utc: str
    client: str
    peer: str
    method: str
    target: str
    status: int
    sent_bytes: int | None
    seconds: float


class AccessLog:
    """Appends accesses to the files in ``directory``; any thread may."""

    def __init__(self, directory: Path, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._directory, self._most_bytes, self._most_files = directory, most_bytes, most_files
        self._lock = Lock()
        directory.mkdir(parents=True, exist_ok=True)
        self._open()

    def record(self, access: Access) -> None:
        """Append one access. Raises OSError; what was written in part is then cut off."""
        line = json.dumps(asdict(access)).encode() + b"\n"
        with self._lock:
            if self._size and self._size + len(line) > self._most_bytes:
                self._begin_another()
            try:
                if os.write(self._file, line) != len(line):
                    raise OSError(f"the log of accesses in {self._directory} has no room for a whole line")
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
            self._size += len(line)

    def sync(self) -> None:
        """Put what is recorded on disk."""
        with self._lock:
            file = os.dup(self._file)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def close(self) -> None:
        """Put what is recorded on disk, and end."""
        with self._lock:
            os.fsync(self._file)
            os.close(self._file)

    def _open(self) -> None:
        place = self._directory / _FILE
        self._file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
            self._size += os.write(self._file, b"\n")  # a power loss cut the last line short: it stands alone

    def _begin_another(self) -> None:
        full = _full_files(self._directory)
        number = _number(full[-1]) + 1 if full else 1
        os.fsync(self._file)
        os.close(self._file)
        (self._directory / _FILE).rename(self._directory / f"access-{number:08}.jsonl")
        for old in _full_files(self._directory)[: -(self._most_files - 1) or None]:
            old.unlink(missing_ok=True)
        self._open()


def accesses(directory: Path) -> Iterator[Access]:
    """Every access that is kept, oldest first; lines that are not whole are left out."""
    names = [field.name for field in fields(Access)]
    for place in [*_full_files(directory), directory / _FILE]:
        try:
            with place.open("rb") as lines:
                for line in lines:
                    try:
                        facts = json.loads(line)
                        yield Access(**{name: facts[name] for name in names})
                    except (ValueError, TypeError, KeyError):
                        continue
        except FileNotFoundError:  # none yet, or removed meanwhile
            continue


def newest(directory: Path, most: int, client: str = "", text: str = "", *, writes: bool = False) -> list[Access]:
    """The last ``most`` accesses, oldest first: of ``client``, whose target has ``text``, and that write."""
    found = (
        each
        for each in accesses(directory)
        if client in ("", each.client) and text in each.target and (each.method == "POST" or not writes)
    )
    return list(deque(found, maxlen=most))


def _full_files(directory: Path) -> list[Path]:
    return sorted((each for each in directory.glob("access-*.jsonl") if _FULL.fullmatch(each.name)), key=_number)


def _number(place: Path) -> int:
    found = _FULL.fullmatch(place.name)
    return int(found[1]) if found else 0

"""The high-water mark of a polled source: a small file that survives restarts."""

import json
from pathlib import Path

from upath import UPath

from sda_platform.edge.sources.source import SourceBlocked
from sda_platform.lake import durable


class MarkUnreadable(SourceBlocked):
    """The file is no mark; the text has the remedy."""


class DurableMark:
    """The newest event time up to which everything is durable, ns since the Unix epoch; 0 before the first."""

    def __init__(self, path: Path) -> None:
        self._path = UPath(path)
        self.time_ns = 0

    def load(self) -> None:
        """Read the file, if there is one. Raises MarkUnreadable."""
        if self._path.exists():
            try:
                self.time_ns = int(json.loads(self._path.read_bytes())["time_ns"])
            except (KeyError, TypeError, ValueError) as error:
                raise MarkUnreadable(f"{self._path}: is no mark: {error}; remove it to read everything again") from None

    def move(self, time_ns: int) -> None:
        """Put it at ``time_ns``, for good on return; never back."""
        if time_ns > self.time_ns:
            durable.write(self._path, json.dumps({"time_ns": time_ns}).encode())
            self.time_ns = time_ns

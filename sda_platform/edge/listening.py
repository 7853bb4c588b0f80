"""Times without a listener: a source had no socket, for a stop, a crash or a port in use.

What a sensor sent then is lost without another trace. Once a second it is noted which sources listen; a source that
listens again after more than `LONGEST_S` has an entry. Entries are on disk and survive the process.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from upath import UPath

from sda_platform.lake import durable

LONGEST_S: Final = 2.0
"""A longer time between two notes is an entry: notes come each second, or a little later under load."""
MOST_ENTRIES: Final = 1_000


@dataclass(frozen=True)
class NotListened:
    """A time without a listening socket of ``source``, wall time, Unix ns."""

    source: str
    from_ns: int
    until_ns: int

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.until_ns - self.from_ns) / 1e9


class ListeningLog:
    """The notes and entries in ``directory``; the newest `MOST_ENTRIES` are kept, and the sum of all by source."""

    def __init__(self, directory: Path) -> None:
        self._path = UPath(directory / "listening.json")
        self._last_ns: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.entries: list[NotListened] = []
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):  # what is damaged begins anew
            held = json.loads(self._path.read_bytes())
            entries = [NotListened(**each) for each in held["entries"]]
            self._last_ns, self.seconds, self.entries = held["last_ns"], held["seconds"], entries

    def note(self, sources: Iterable[str], now_ns: int, *, is_handed_over: bool = False) -> list[NotListened]:
        """These ``sources`` listen at ``now_ns``, wall time. Returns and keeps the new entries. Raises OSError.

        ``is_handed_over``: they listened since the last note, because their sockets went from process to process.
        """
        found = []
        for source in sources:
            last_ns = self._last_ns.get(source, now_ns)
            if not is_handed_over and now_ns - last_ns > LONGEST_S * 1e9:
                found.append(NotListened(source, last_ns, now_ns))
                self.seconds[source] = self.seconds.get(source, 0.0) + found[-1].seconds
            self._last_ns[source] = now_ns
        self.entries = [*self.entries, *found][-MOST_ENTRIES:]
        held = {"last_ns": self._last_ns, "seconds": self.seconds, "entries": [asdict(each) for each in self.entries]}
        durable.write(self._path, json.dumps(held).encode())
        return found

    def last_of(self, source: str) -> NotListened | None:
        """Return the newest entry of ``source``."""
        return next((each for each in reversed(self.entries) if each.source == source), None)

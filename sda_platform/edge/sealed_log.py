"""Which telemetry segments were sealed last: a collector that starts remembers their frames, so that none lands again.

A line per segment, written before the seal: whether it was sealed is decided by the landing zone, which still has the
bytes. A line that a power loss takes costs at most that frames of its segment land again.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from sda_platform.formats.cutting import split_records
from sda_platform.formats.registry import ZONES
from sda_platform.lake.errors import SegmentLost
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.zone import LandingZone
from sda_platform.whole_files import replace_content

_KEPT: Final = 4_096


class SealedLog:
    """The log of one zone at ``path``; it has at most 8,192 lines, of which the last 4,096 are read."""

    def __init__(self, path: Path, zone: LandingZone) -> None:
        self._path, self._zone = path, zone
        self._lock = threading.Lock()
        self._lines = 0

    def note(self, name: str, sha256: str) -> None:
        """A segment is about to be sealed. Where the log cannot be written the seal goes on."""
        with self._lock, suppress(OSError):
            if self._lines >= 2 * _KEPT:
                self._shorten()
            with self._path.open("a") as log:
                log.write(f"{sha256} {name}\n")
            self._lines += 1

    def payloads(self, most: int) -> Iterator[list[bytes]]:
        """Yield the records of the segments that were sealed last, ``most`` of them or a few more, oldest segment
        first.
        """
        found: list[list[bytes]] = []
        for line in reversed(self._shorten()):
            if sum(map(len, found)) >= most:
                break
            sha256, _, name = line.partition(" ")
            try:
                segment = self._zone.load_consumed(SegmentRef(self._zone.feed, name, sha256, 0, 0))
            except (SegmentLost, OSError):
                continue
            found.append([record.payload for record in split_records(segment.data, ZONES[self._zone.feed][0])])
        yield from reversed(found)

    def _shorten(self) -> list[str]:
        """Keep the last lines, and return them."""
        if not self._path.exists():
            return []
        lines = self._path.read_text(errors="replace").splitlines()[-_KEPT:]
        replace_content(self._path, "".join(f"{line}\n" for line in lines))
        self._lines = len(lines)
        return lines

"""A watched folder: partner files that are copied there are landed, then moved to ``landed/`` or ``refused/``.

A file is landed once it has not changed for ``settle_s`` seconds, because copying takes time. Names that begin with a
dot or end in .tmp or .part are left alone: rsync and others write so. Files come from below ``<folder>/<zone>/`` or,
if the name determines the format, from the folder itself. The reason for a refusal is in ``<name>.reason.txt`` next to
the refused file.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sda_platform.edge.sources.source import Services, Source, SourceFailed, SourceState
from sda_platform.formats.registry import ZONES
from sda_platform.landing.lander import LandedFile, Lander
from sda_platform.landing.partner_files import PartnerFileError

_PARTIAL: Final = (".tmp", ".part", ".partial", ".filepart", ".crdownload")
LANDED, REFUSED = "landed", "refused"


class FolderSource(Source):
    """Scans ``path`` every ``interval_s`` seconds; a scan works on a network file system too."""

    kind, zone = "folder", "any"
    is_stateful = True

    def __init__(
        self, name: str, services: Services, *, path: Path, interval_s: float = 1.0, settle_s: float = 2.0
    ) -> None:
        super().__init__(name, services)
        self._path, self._interval_s, self._settle_s = path, interval_s, settle_s
        self._lander = Lander(services.landing_root, services.clock)

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return str(self._path)

    async def run(self) -> None:
        """See `Source.run`. Raises SourceFailed where the folder cannot be used."""
        for place in (self._path, self._path / LANDED, self._path / REFUSED):
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SourceFailed(f"{place}: cannot be made: {error.strerror}") from None
        self.state = SourceState.RUNNING
        loop = asyncio.get_running_loop()
        while True:
            for path in await loop.run_in_executor(self.services.executor, lambda: list(self._settled(time.time()))):
                await self._land(path)
                if self.stopping.is_set():
                    return
            if await self.pause(self._interval_s):
                return

    def _settled(self, wall_s: float) -> Iterator[Path]:
        """The files that are complete according to their modification times."""
        folders = [self._path, *(self._path / zone for zone in ZONES if (self._path / zone).is_dir())]
        for folder in folders:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda each: each.name):
                    is_partial = entry.name.startswith(".") or entry.name.lower().endswith(_PARTIAL)
                    if is_partial or not entry.is_file(follow_symlinks=False):
                        continue
                    if wall_s - max(entry.stat().st_mtime, entry.stat().st_ctime) >= self._settle_s:
                        yield Path(entry.path)

    async def _land(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        try:
            landed = await loop.run_in_executor(self.services.executor, self._attempt, path)
        except PartnerFileError as refusal:
            self.errors["refused_file"] += 1
            self.log.warning("file refused", file=str(path), reason=str(refusal))
            _put_away(path, self._path / REFUSED, reason=str(refusal))
            return
        self.count_landed(landed.sealed_records)
        self.log.info("file landed", file=str(path), zone=landed.zone, records=landed.records)
        _put_away(path, self._path / LANDED)

    def _attempt(self, path: Path) -> LandedFile:
        zone = path.parent.name if path.parent != self._path else None
        return self._lander.land(path, feed=zone)


def _put_away(path: Path, place: Path, reason: str = "") -> None:
    """Move a file aside; an earlier one of its name is kept, and the later one numbered."""
    target, number = place / path.name, 1
    while target.exists():
        number += 1
        target = place / f"{path.name}.{number}"
    path.rename(target)
    if reason:
        target.with_name(f"{target.name}.reason.txt").write_text(reason + "\n")

"""A watched folder: partner files that are copied there are landed, then moved to ``landed/`` or ``refused/``.

Both lie outside the folder, where partners cannot write: what was landed, and why a file was refused, stays as it is.

A file is landed once it has not changed for ``settle_s`` seconds, because copying takes time. Names that begin with a
dot or end in .tmp or .part are left alone: rsync and others write so. Files come from below ``<folder>/<zone>/`` or,
if the name determines the format, from the folder itself. The reason for a refusal is in ``<name>.reason.txt`` next to
the refused file. What fails on our side, such as a full disk, refuses no file: it stays, and is tried again. Links,
devices and hard links stay, too, and are named in the log.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from sda_platform.edge.sources.drop_folder import LANDED, REFUSED, DropFolder, DroppedFile
from sda_platform.edge.sources.source import LONGEST_PAUSE_S, Services, Source
from sda_platform.edge.sources.upload import TEMPORARY
from sda_platform.formats.registry import PARTNER_ZONES
from sda_platform.landing.lander import PARTNER_SEGMENT_BYTES, LandedFile, Lander, ProgressUnreadable
from sda_platform.landing.partner_files import FileChanging, PartnerFileError
from sda_platform.resilience import OverQuota, pause_s


class _Later(NamedTuple):
    """When a file is tried again, by the loop's clock, and how often it was tried."""

    attempts: int
    at_s: float


_MOST_NAMED: Final = 10
"""Of the entries that are no files so many are logged in a scan: a partner may have made a million."""
_AT_ONCE: Final = _Later(0, 0.0)


class FolderSource(Source):
    """Scans ``path`` every ``interval_s`` seconds; a scan works on a network file system too."""

    kind, zone = "folder", "any"
    is_stateful = True

    def __init__(
        self,
        name: str,
        services: Services,
        *,
        path: Path,
        done: Path | None = None,
        interval_s: float = 1.0,
        settle_s: float = 2.0,
        zones: Sequence[str] = PARTNER_ZONES,
        rank: int | None = None,
    ) -> None:
        super().__init__(name, services, rank)
        self._path, self._done, self._interval_s, self._settle_s = path, done, interval_s, settle_s
        self._lander = Lander(
            services.landing_root,
            services.clock,
            bounds=services.bounds,
            segment_max_bytes=PARTNER_SEGMENT_BYTES,
            sender=self.sender(),
            mappings=services.mappings,
            zones=zones,
        )
        self._later: dict[Path, _Later] = {}  # bounded by the files in the folder
        self._foreign: set[str] = set()
        self._is_crowded = False

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return str(self._path)

    async def run(self) -> None:
        """See `Source.run`. Raises OSError where the folder cannot be used."""
        with DropFolder(self._path, self._done):
            self.works()
        while True:
            with DropFolder(self._path, self._done) as folder:
                if await self._scan(folder):
                    return
            if not self._later:
                self.works()
            if await self.pause(self._interval_s):
                return

    async def _scan(self, folder: DropFolder) -> bool:
        """Land what is complete; returns whether the source is to stop."""
        loop = asyncio.get_running_loop()
        found: Sequence[DroppedFile] = await loop.run_in_executor(
            self.services.executor, lambda: list(folder.settled(time.time(), self._settle_s))
        )
        self._report_entries(folder)
        waiting = {file.path for file in found}
        self._later = {path: later for path, later in self._later.items() if path in waiting}
        for file in found:
            try:
                self.require_quota()
            except OverQuota:
                break  # the files stay, and are landed by a later scan
            if self._later.get(file.path, _AT_ONCE).at_s <= loop.time():
                await self._land(folder, file)
            if self.stopping.is_set():
                return True
        return False

    def _report_entries(self, folder: DropFolder) -> None:
        """Log what is no file, once; of a crowded folder only that it is, because each scan sees others."""
        if folder.is_crowded != self._is_crowded:
            self._is_crowded = folder.is_crowded
            if folder.is_crowded:
                self.errors["crowded"] += 1
                self.log.warning("more entries than a scan looks at: files may wait until others were removed")
        if folder.is_crowded:
            return
        found = sorted(folder.foreign - self._foreign)
        if found:
            self.errors["not_a_file"] += len(found)
        for name in found[:_MOST_NAMED]:
            self.log.warning("entry left alone: a link, a hard link or no regular file", entry=name)
        self._foreign = set(folder.foreign)

    async def _land(self, folder: DropFolder, file: DroppedFile) -> None:
        """Land one file and put it away. What fails on our side leaves it where it is, for a later scan."""
        path = file.path
        if not folder.holds(file):
            return
        try:
            landed = await self._landed(folder, file)
            self.count_landed(landed.sealed_records, landed.bytes)
            self.log.info("file landed", file=str(path), zone=landed.zone, records=landed.records)
            folder.put_away(file, LANDED)
        except FileChanging:
            return
        except ProgressUnreadable as error:
            self._try_later(path, error)
        except PartnerFileError as refusal:
            self.count_refused()
            self.log.warning("file refused", file=str(path), reason=str(refusal))
            self._refuse(folder, file, str(refusal))
        except FileNotFoundError as error:
            if folder.holds(file):
                self._try_later(path, error)
        except OSError as error:
            self._try_later(path, error)
        except Exception as error:  # one file ends no other
            self.note_fault(error)
            self._try_later(path, error)
        else:
            self._later.pop(path, None)

    async def _landed(self, folder: DropFolder, file: DroppedFile) -> LandedFile:
        """Land the file as it is now. Raises PartnerFileError, with the path of the partner's file, and OSError."""
        with (
            TemporaryDirectory(prefix=TEMPORARY, dir=self.services.state_directory) as place,
            folder.opened(file, Path(place)) as readable,
        ):
            try:
                return await self.services.files.run(self._lander.land, readable, feed=file.zone or None)
            except PartnerFileError as error:
                raise type(error)(str(error).replace(f"{place}/", f"{file.path.parent}/")) from None

    def _refuse(self, folder: DropFolder, file: DroppedFile, reason: str) -> None:
        try:
            folder.put_away(file, REFUSED, reason)
        except OSError as error:
            self._try_later(file.path, error)

    def _try_later(self, path: Path, error: Exception) -> None:
        """Leave the file for a later scan; the pause of each file grows to a minute."""
        self.errors["not_stored"] += 1
        attempts = self._later.get(path, _AT_ONCE).attempts + 1
        pause = pause_s(
            min(attempts, 20), base_s=self._interval_s, cap_s=LONGEST_PAUSE_S, seed=f"{path}{time.time_ns()}"
        )
        self._later[path] = _Later(attempts, asyncio.get_running_loop().time() + pause)
        self.fails(f"{path}: not landed yet: {error}")
        self.log.warning("file not landed yet", file=str(path), in_s=round(pause, 1), reason=str(error))

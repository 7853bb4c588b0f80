"""A watched folder: partner files that are copied there are landed, then moved to ``landed/`` or ``refused/``.

A file is landed once it has not changed for ``settle_s`` seconds, because copying takes time. Names that begin with a
dot or end in .tmp or .part are left alone: rsync and others write so. Files come from below ``<folder>/<zone>/`` or,
if the name determines the format, from the folder itself. The reason for a refusal is in ``<name>.reason.txt`` next to
the refused file. What fails on our side, such as a full disk, refuses no file: it stays, and is tried again.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from sda_platform.clock import MissionClock
from sda_platform.edge.sources.source import LONGEST_PAUSE_S, Services, Source
from sda_platform.formats.registry import ZONES
from sda_platform.landing.lander import LandedFile, Lander, ProgressUnreadable
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import FileChanging, PartnerFileError
from sda_platform.resilience import pause_s

_PARTIAL: Final = (".tmp", ".part", ".partial", ".filepart", ".crdownload")
LANDED, REFUSED = "landed", "refused"


class _Later(NamedTuple):
    """When a file is tried again, by the loop's clock, and how often it was tried."""

    attempts: int
    at_s: float


_AT_ONCE: Final = _Later(0, 0.0)


class FolderSource(Source):
    """Scans ``path`` every ``interval_s`` seconds; a scan works on a network file system too."""

    kind, zone = "folder", "any"
    is_stateful = True

    def __init__(
        self, name: str, services: Services, *, path: Path, interval_s: float = 1.0, settle_s: float = 2.0
    ) -> None:
        super().__init__(name, services)
        self._path, self._interval_s, self._settle_s = path, interval_s, settle_s
        self._later: dict[Path, _Later] = {}  # bounded by the files in the folder

    @property
    def address(self) -> str:
        """See `Source.address`."""
        return str(self._path)

    async def run(self) -> None:
        """See `Source.run`. Raises OSError where the folder cannot be used."""
        for place in (self._path, self._path / LANDED, self._path / REFUSED):
            place.mkdir(parents=True, exist_ok=True)
        self.works()
        loop = asyncio.get_running_loop()
        while True:
            found = await loop.run_in_executor(self.services.executor, lambda: list(self._settled(time.time())))
            self._later = {path: self._later[path] for path in found if path in self._later}
            for path in found:
                if self._later.get(path, _AT_ONCE).at_s <= loop.time():
                    await self._land(path)
                if self.stopping.is_set():
                    return
            if not self._later:
                self.works()
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
                    with suppress(FileNotFoundError):  # its sender has taken it back
                        found = entry.stat(follow_symlinks=False)
                        if wall_s - max(found.st_mtime, found.st_ctime) >= self._settle_s:
                            yield Path(entry.path)

    async def _land(self, path: Path) -> None:
        """Land one file and put it away. What fails on our side leaves it where it is, for a later scan."""
        try:
            zone = path.parent.name if path.parent != self._path else None
            services = self.services
            landed = await services.files.run(
                _attempt, path, zone, services.landing_root, services.clock, services.bounds
            )
            self.count_landed(landed.sealed_records)
            self.log.info("file landed", file=str(path), zone=landed.zone, records=landed.records)
            _put_away(path, self._path / LANDED)
        except FileChanging:
            return
        except ProgressUnreadable as error:
            self._try_later(path, error)
        except PartnerFileError as refusal:
            self.errors["refused_file"] += 1
            self.log.warning("file refused", file=str(path), reason=str(refusal))
            self._refuse(path, str(refusal))
        except FileNotFoundError as error:
            if path.exists():
                self._try_later(path, error)
        except OSError as error:
            self._try_later(path, error)
        except Exception as error:  # one file ends no other
            self.note_fault(error)
            self._try_later(path, error)
        else:
            self._later.pop(path, None)

    def _refuse(self, path: Path, reason: str) -> None:
        try:
            _put_away(path, self._path / REFUSED, reason)
        except OSError as error:
            self._try_later(path, error)

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


def _attempt(path: Path, zone: str | None, landing_root: str, clock: MissionClock, bounds: PartnerBounds) -> LandedFile:
    return Lander(landing_root, clock, bounds=bounds).land(path, feed=zone)


def _put_away(path: Path, place: Path, reason: str = "") -> None:
    """Move a file aside; an earlier one of its name is kept, and the later one numbered."""
    target, number = place / path.name, 1
    while target.exists():
        number += 1
        target = place / f"{path.name}.{number}"
    path.rename(target)
    if reason:
        target.with_name(f"{target.name}.reason.txt").write_text(reason + "\n")

"""`sda backup` and `sda restore`: all that a platform holds on local disks, as of one consistent moment.

A backup is a directory of plain files below the target. What did not change since the previous backup is a hard link
to it, so each is whole and any may be removed. It gets its name only when all of it is on disk: a backup that was
killed leaves the earlier ones as they are. The platform may run meanwhile. The order makes that consistent:

1. SQLite files, by SQLite's own backup: a subscriber that is older than the lake is sent what it lacks.
2. The lake: of each table the log up to one consistent state of all tables, which a version lease holds.
3. The landing zones, what waits before what is consumed: no segment that moves meanwhile is missed. Those that the lake
   of the backup has not consumed return to `pending/` when it is restored.

A restore copies beside the places of the platform, checks every byte, and only then moves anything. Killed, it is
repeated.
"""

import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upath import UPath

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.code_version import code_version
from sda_platform.history.version_vector import newest_vector
from sda_platform.lake import durable
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.object_store import is_object_store
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.published import ADDRESS_FILES
from sda_platform.recovery.backups import (
    CONTENTS,
    FORMAT,
    HOME,
    LAKE,
    LANDING,
    LOCK,
    UNFINISHED,
    contents_of,
    name_of,
    newest_backup,
    remove_all_but,
)
from sda_platform.recovery.examination import Depth
from sda_platform.registry import TABLES_BY_NAME
from sda_platform.replay.shadow import is_shadow
from sda_platform.runtime import lake_lock, platform_home, verification
from sda_platform.runtime.file_copies import copied, copy_database, is_sqlite, sha256_of
from sda_platform.settings import Settings

_STAGED = ".restoring"
_VERDICTS, _PENDING, _LOG = "_verdicts", "pending", "_delta_log"
_OF_PROCESSES = {
    LAKE: frozenset({"_leases", lake_lock.LOCK_FILE, _STAGED}),
    LANDING: frozenset({lake_lock.LANDING_LOCK_FILE, _STAGED}),
    HOME: frozenset({"engine", "logs", "serving", *ADDRESS_FILES, *platform_home.INSTANCE_FILES, _STAGED}),
}
"""In each place what belongs to running processes, or is made anew by every start. It is neither taken nor restored:
a backup from somebody else could name addresses, to which tokens are sent, and classes, which are loaded.
"""
_VERSION_DIGITS = 20
_BESIDE_SQLITE = (".lock", "-wal", "-shm", "-journal")


@dataclass
class _Copies:
    """A new backup at ``place``; what the ``previous`` one has alike is linked to it."""

    place: Path
    previous: Path | None
    known: Mapping[str, list[Any]]
    files: dict[str, list[Any]] = field(default_factory=dict)
    new_bytes: int = 0

    def take_all(self, source: Path, name: str, is_wanted: Callable[[Path], bool] = lambda _path: True) -> None:
        """Take what is below ``source`` and wanted, as ``name``; files that go meanwhile are left out."""
        for directory, below, files in os.walk(source):
            below[:] = sorted(each for each in below if is_wanted(Path(directory, each)))
            for path in (Path(directory, each) for each in sorted(files)):
                if is_wanted(path):
                    with suppress(FileNotFoundError):
                        self.take(path, f"{name}/{path.relative_to(source)}")

    def take(self, path: Path, name: str) -> None:
        """Take one file. Raises FileNotFoundError where it is gone."""
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or name in self.files:
            return
        copy, known = self.place / name, self.known.get(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(f"{HOME}/") and is_sqlite(path):
            copy_database(path, copy)
            sha256 = sha256_of(copy)
            if known and known[1] == sha256:
                copy.unlink()
                self._link(name, copy)
        elif known and known[0] == found.st_size and known[2] == found.st_mtime_ns and self._link(name, copy):
            sha256 = known[1]
        else:
            sha256 = copied(path, copy)
            self.new_bytes += copy.stat().st_size
        self.files[name] = [copy.stat().st_size, sha256, found.st_mtime_ns]

    def _link(self, name: str, copy: Path) -> bool:
        if self.previous is None:
            return False
        try:
            os.link(self.previous / name, copy)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno in durable.WITHOUT_LINKS:
                return False
            raise
        return True


@dataclass(frozen=True)
class MadeBackup:
    """A backup at ``path``: its files and bytes, the bytes that no earlier one has, and how many older ones went."""

    path: Path
    files: int
    size_bytes: int
    new_bytes: int
    removed: int


def back_up(settings: Settings, target: Path, *, is_whole: bool = False, kept: int | None = None) -> MadeBackup:
    """Make a new backup below ``target``. Raises InvalidRequest, OSError.

    ``is_whole``: nothing is linked to an earlier backup. ``kept``: how many backups stay; None: all.
    """
    places = _places(settings)
    if any(target.resolve().is_relative_to(place.resolve()) for place in places.values()):
        raise InvalidRequest(f"{target} is in what is backed up: name a directory elsewhere, best on another disk")
    target.mkdir(parents=True, exist_ok=True)
    with (target / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidRequest(f"another backup into {target} is being made") from None
        previous, known = (None, {}) if is_whole else _previous(target)
        place = target / UNFINISHED
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        copies = _Copies(place, previous, known)
        versions = _copy(settings, places, copies)
        failpoints.hit("backup.copied")
        made_ns = time.time_ns()
        facts = {"format": FORMAT, "made_time_ns": made_ns, "made_by": code_version(), "versions": versions}
        durable.sync_below(place)
        durable.write(UPath(place / CONTENTS), json.dumps({**facts, "files": copies.files}).encode())
        failpoints.hit("backup.described")
        named = target / name_of(made_ns / 1e9)
        place.rename(named)
        durable.sync([UPath(target)])
        removed = remove_all_but(kept, target) if kept else []
    size_bytes = sum(each[0] for each in copies.files.values())
    return MadeBackup(named, len(copies.files), size_bytes, copies.new_bytes, len(removed))


def described(made: MadeBackup, settings: Settings) -> Iterator[str]:
    """Yield what was backed up, and what was not, for people."""
    size_mb, new_mb = made.size_bytes / 1e6, made.new_bytes / 1e6
    yield f"{made.path}: {made.files:,} files, {size_mb:,.1f} MB, of these {new_mb:,.1f} MB new"
    if made.removed:
        yield f"Older backups removed: {made.removed}"
    elsewhere = settings.subscriber.startswith(("postgresql:", "http:", "https:"))
    if elsewhere or os.environ.get(platform_home.POSTGRES_VARIABLE):
        yield "What lies in Postgres or at a webhook's receiver is not in it: back that up by its own means (pg_dump)"


def _previous(target: Path) -> tuple[Path | None, Mapping[str, list[Any]]]:
    """Return the newest backup below ``target`` and its files; nothing where there is none that can be used."""
    newest = newest_backup(target)
    try:
        return (newest, contents_of(newest)["files"]) if newest else (None, {})
    except InvalidRequest:
        return None, {}


def restore(settings: Settings, source: Path) -> Iterator[str]:
    """Put the backup ``source``, or the newest below it, in the empty places of ``settings``; yields what was done.

    The caller holds the locks of the platform. Raises InvalidRequest, before anything is in place, where a place is in
    use or a file of the backup is damaged; OSError.
    """
    places = _places(settings)
    backup = source if (source / CONTENTS).exists() else newest_backup(source)
    if backup is None:
        raise InvalidRequest(
            f"{source} has no complete backup; `sda lake restore` puts a copy of a lake alone in place"
        )
    ready = places[HOME] / _STAGED / "ready"
    if not ready.exists():
        _require_empty(places)
        for place in places.values():
            shutil.rmtree(place / _STAGED, ignore_errors=True)
        _stage(backup, contents_of(backup)["files"], places)
        failpoints.hit("restore_all.staged")
        durable.write(UPath(ready), str(backup.resolve()).encode())
    elif ready.read_text() != str(backup.resolve()):
        raise InvalidRequest(f"a restore of {ready.read_text()} was interrupted: repeat that one first")
    _move(places, ready)
    findings = verification.verify(settings, Depth.FOOTERS, repair=True)
    yield from verification.lines(findings)
    if damaged := [each.examination.table for each in findings if each.outcome == "damaged"]:
        raise InvalidRequest(f"the backup is in place, but {', '.join(damaged)} needs a decision; see above")
    for place in places.values():
        shutil.rmtree(place / _STAGED, ignore_errors=True)
    if brought := ", ".join(sorted(path.name for path in places[HOME].glob("*.toml"))):
        yield f"It brought {brought}, by which a start acts: read them first if the backup is not your own"
    yield f"The platform is that of {backup}; what it knew later comes again from what lands again"


def _move(places: Mapping[str, Path], ready: Path) -> None:
    """Give what is staged its place; what an interrupted restore has moved is not there any more."""
    for place in places.values():
        staged = place / _STAGED
        for each in sorted(staged.iterdir()) if staged.exists() else ():
            if each != ready:
                each.rename(place / each.name)
                failpoints.hit("restore_all.moved")
        if place.exists():
            durable.sync([UPath(place)])


def _places(settings: Settings) -> dict[str, Path]:
    for uri in (settings.lake_uri, settings.landing_uri):
        if is_object_store(uri):
            raise InvalidRequest(f"{uri} is in an object store: back it up with the store's own versions")
    home = settings.home.absolute()
    return {LAKE: Path(settings.lake_uri).absolute(), LANDING: Path(settings.landing_uri).absolute(), HOME: home}


def _copy(settings: Settings, places: Mapping[str, Path], copies: _Copies) -> dict[str, int]:
    """Take all places, in the order that makes them one state; returns the version of each table."""
    lake = Lake(str(places[LAKE]), MissionClock.load(settings.home), without_session)

    def is_own(path: Path, place: str) -> bool:
        is_another = path in places.values() or is_shadow(path.name, places[LAKE].name)
        return not is_another and not _is_of_processes(place, path.relative_to(places[place]).as_posix())

    copies.take_all(places[HOME], HOME, lambda path: is_own(path, HOME) and not path.name.endswith(_BESIDE_SQLITE))
    failpoints.hit("backup.home_copied")
    copies.take_all(places[LAKE] / _VERDICTS, f"{LAKE}/{_VERDICTS}")  # they may be older than the logs, not newer
    vector = newest_vector(lake, TABLES_BY_NAME)
    versions = {name: snapshot.version for name, snapshot in vector.snapshots.items()}

    def is_of_state(path: Path) -> bool:
        if path.parent.name != _LOG:
            return is_own(path, LAKE) and versions.get(path.name, 0) >= 0
        version = _version_in(path.name)
        return version is not None and version <= versions.get(path.parent.parent.name, version)

    with VersionLeases(lake.uri).held(vector.snapshots.values(), "backup"):
        failpoints.hit("backup.pinned")
        copies.take_all(places[LAKE], LAKE, is_of_state)
    failpoints.hit("backup.lake_copied")
    zones = sorted(each for each in places[LANDING].iterdir() if each.is_dir()) if places[LANDING].exists() else []
    for zone in zones:
        copies.take_all(zone / _PENDING, f"{LANDING}/{zone.name}/{_PENDING}")
    failpoints.hit("backup.pending_copied")
    waiting = {zone / _PENDING for zone in zones}
    copies.take_all(places[LANDING], LANDING, lambda path: is_own(path, LANDING) and path not in waiting)
    return versions


def _is_of_processes(place: str, path: str) -> bool:
    """Return whether ``path`` in a place, with slashes, is in _OF_PROCESSES, or below what is."""
    return path in _OF_PROCESSES[place] or path.partition("/")[0] in _OF_PROCESSES[place]


def _version_in(name: str) -> int | None:
    """Return the version that a file of a log is of; None for other files."""
    digits = name.removeprefix(".").partition(".")[0]
    return int(digits) if len(digits) == _VERSION_DIGITS and digits.isdecimal() else None


def _require_empty(places: Mapping[str, Path]) -> None:
    for name, place in places.items():
        for each in place.iterdir() if place.exists() else ():
            if each in places.values() or each.name in _OF_PROCESSES[name] or each.suffix == ".lock":
                continue
            raise InvalidRequest(
                f"{each} is there already: a backup is restored into an empty home. Move the home away, or name "
                f"another with --home; `sda lake restore BACKUP/{LAKE}` restores the lake alone"
            )


def _stage(backup: Path, files: Mapping[str, list[Any]], places: Mapping[str, Path]) -> None:
    """Copy the files of a backup beside their places, and compare each with what was taken."""
    for name, (size, sha256, mtime_ns) in files.items():
        root, _, rest = name.partition("/")
        parts = rest.split("/")
        if root not in places or {"", ".", ".."} & {*parts}:
            raise InvalidRequest(f"{backup / CONTENTS} names {name!a}, which is no place of what a platform keeps")
        if _is_of_processes(root, rest):  # as backups of earlier releases have it
            continue
        copy = places[root] / _STAGED / rest
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            found = copied(backup / name, copy, size)
        except FileNotFoundError:
            raise InvalidRequest(f"{backup / name} is missing: restore an earlier backup") from None
        if (found, copy.stat().st_size) != (sha256, size):
            raise InvalidRequest(f"{backup / name} is not as it was backed up: restore an earlier backup")
        os.utime(copy, ns=(mtime_ns, mtime_ns))
    for place in places.values():
        durable.sync_below(place / _STAGED)

"""`sda lake restore`: put a backup of the lake in the place of the lake, and make it fit what is there today.

A backup is a copy of the lake's directory. The landing zones and the subscriber stay as they are. The backup is copied
beside the lake and examined there, so a damaged one changes nothing. Then two renames swap them. A restore that was
killed is repeated. The next delivery begins a new epoch at the subscriber if it holds what the backup had not delivered
(`delivery.epochs`).
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from upath import UPath

from sda_platform import failpoints
from sda_platform.clock import MissionClock, iso
from sda_platform.lake import delta_log, durable
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.object_store import is_object_store
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.rebuilding import SET_ASIDE_TABLES
from sda_platform.recovery.repair import recover
from sda_platform.registry import TABLES
from sda_platform.runtime import verification
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.lake_lock import LOCK_FILE, take_lake_lock
from sda_platform.settings import Settings


class NotRestorable(PlatformError):
    """What was named is no backup of a lake that can be put in place."""


def restore(settings: Settings, backup: Path) -> Iterator[str]:
    """Restore the lake from ``backup``; what was done, in words. The caller holds the locks of the platform.

    Raises NotRestorable, before anything changes, where the backup is damaged or its tables do not fit together.
    """
    lake = _place(settings, backup)
    copy = lake.with_name(f"{lake.name}.restoring")
    shutil.rmtree(copy, ignore_errors=True)
    for path in backup.rglob("*"):  # of somebody else's backup a link may lead anywhere, and have no end
        if not (stat.S_ISREG(mode := path.lstat().st_mode) or stat.S_ISDIR(mode)):
            raise NotRestorable(f"{path} is a link or a device: copy the lake with what links lead to (cp -rL)")
    shutil.copytree(backup, copy, ignore=shutil.ignore_patterns(LOCK_FILE, SET_ASIDE_TABLES))
    _require_sound(settings, copy)
    durable.sync_below(copy)
    failpoints.hit("restore.copied")
    lost = dict(_lost_commits(settings, lake, copy))
    before = next(
        path for n in range(10**6) if not (path := lake.with_name(f"{lake.name}.before-restore.{n}")).exists()
    )
    if lake.exists():
        lake.rename(before)
        failpoints.hit("restore.set_aside")
    copy.rename(lake)
    durable.sync([UPath(lake.parent)])
    failpoints.hit("restore.swapped")
    with take_lake_lock(str(lake), settings.home.absolute()) or nullcontext():
        findings = verification.verify(settings, Depth.PRESENCE, repair=True)
    yield from verification.lines(findings)
    if damaged := [each.examination.table for each in findings if each.outcome == "damaged"]:
        raise NotRestorable(f"the lake was restored, but {', '.join(damaged)} needs a decision; see above")
    listed = ", ".join(f"{name} {commits}" for name, commits in lost.items()) or "none"
    yield (
        f"The lake is that of {_as_of(settings)}; commits that it lost: {listed}. They are made anew from what was "
        f"landed, and the next delivery corrects the subscriber. The lake until now is in {before}"
    )


def _place(settings: Settings, backup: Path) -> Path:
    if is_object_store(settings.lake_uri):
        raise NotRestorable("a lake in an object store is restored with the store's own versions")
    lake = Path(settings.lake_uri).absolute()
    if not any(delta_log.log_directory(str(path)).exists() for path in backup.iterdir()):
        raise NotRestorable(f"{backup} is no backup of a lake: none of its directories has a Delta log")
    if backup.absolute() == lake or lake in backup.absolute().parents:
        raise NotRestorable(f"{backup} is in the lake itself: name a copy elsewhere")
    if os.path.ismount(lake):
        raise NotRestorable(f"{lake} is a mount point and cannot be renamed: choose a directory below it with SDA_LAKE")
    return lake


def _require_sound(settings: Settings, copy: Path) -> None:
    found = recover(_opened(settings, copy), TABLES, {}, depth=Depth.FOOTERS, repair=False, wait=lambda _s: None)
    wrong = [each for each in found if each.outcome == "damaged"]
    if wrong:
        shutil.rmtree(copy)
        told = "; ".join(each.refused or "; ".join(each.problems) for each in wrong)
        raise NotRestorable(f"the backup is damaged, and the lake was left as it is: {told}")


def _lost_commits(settings: Settings, lake: Path, copy: Path) -> Iterator[tuple[str, int]]:
    """Of each table how many commits the lake has now and the backup has not; nothing of what cannot be read."""
    now, then = _opened(settings, lake), _opened(settings, copy)
    for table in TABLES:
        try:
            lost = now.log(table).head().sequence - then.log(table).head().sequence
        except LakeError:
            continue
        if lost > 0:
            yield table.name, lost


def _as_of(settings: Settings) -> str:
    lake = _opened(settings, Path(settings.lake_uri))
    heads = [lake.log(table).head().commit for table in TABLES]
    return iso(max((commit.manifest.as_of_ns for commit in heads if commit), default=0))


def _opened(settings: Settings, place: Path) -> Lake:
    return Lake(str(place), MissionClock.load(settings.home), without_session)

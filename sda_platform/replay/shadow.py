"""Where a replay works: a directory next to the lake, removed when the comparison is done.

A process that is killed leaves its shadow. The next start, or the next shadow, removes it: on a local disk its owner
holds a lock beside it, which ends with the process.
"""

import fcntl
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from upath import UPath

from sda_platform.lake.object_store import is_object_store
from sda_platform.lake.storage import location
from sda_platform.units import DAY_NS

PURPOSES: Final = ("audit", "impact", "reconcile", "replay")
_LOCK: Final = ".lock"
_NAME: Final = re.compile(rf"\.(?:{'|'.join(PURPOSES)})-(?:(?P<made_ns>\d{{9,}})|[0-9a-f]{{8}})")


def is_shadow(name: str, lake_name: str) -> bool:
    """Return whether ``name`` is that of a shadow that is removed at its end, of the lake ``lake_name``."""
    return name.startswith(lake_name) and _NAME.fullmatch(name.removeprefix(lake_name)) is not None


@contextmanager
def temporary_shadow(lake_uri: str, purpose: str, *, keep: bool = False) -> Iterator[str]:
    """A free place next to the lake, with ``purpose`` in its name; removed at the end, unless it is to be kept."""
    assert purpose in PURPOSES, purpose
    remove_left_shadows(lake_uri)
    made = time.time_ns()  # deterministic: a name that no row holds
    place = location(f"{lake_uri}.{'kept-' if keep else ''}{purpose}-{made}")
    with ExitStack() as held:
        if not keep and not is_object_store(lake_uri):
            held.enter_context(_owned(Path(str(place))))
        try:
            yield str(place)
        finally:
            if not keep:
                _remove(place)


def remove_left_shadows(lake_uri: str) -> list[str]:
    """Remove the shadows next to the lake whose process is gone; returns their names.

    Without a lock, as in an object store, that is one which was made a day ago.
    """
    lake = location(lake_uri)
    names = {each.name.removesuffix(_LOCK) for each in lake.parent.glob(f"{lake.name}.*")}
    left = sorted(each for each in names if is_shadow(each, lake.name) and _is_left(lake.with_name(each)))
    for name in left:
        place = lake.with_name(name)
        _remove(place)
        if not is_object_store(lake_uri):
            _lock_of(Path(str(place))).unlink(missing_ok=True)
    return left


@contextmanager
def _owned(place: Path) -> Iterator[None]:
    lock = _lock_of(place)
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _lock_of(place: Path) -> Path:
    return place.with_name(f"{place.name}{_LOCK}")


def _is_left(place: UPath) -> bool:
    if not is_object_store(str(place)):
        with suppress(FileNotFoundError), _lock_of(Path(str(place))).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True
    found, now_ns = _NAME.search(place.name), time.time_ns()
    if found is not None and found["made_ns"]:
        made_ns = int(found["made_ns"])
    else:  # of an earlier release, on a local disk
        made_ns = now_ns if is_object_store(str(place)) else Path(str(place)).stat().st_mtime_ns
    return made_ns < now_ns - DAY_NS


def _remove(place: UPath) -> None:
    if place.exists():
        place.fs.rm(place.path, recursive=True)

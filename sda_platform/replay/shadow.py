"""Where a replay works: a directory next to the lake, removed when the comparison is done."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from upath import UPath

from sda_platform.lake.storage import location


@contextmanager
def temporary_shadow(lake_uri: str, purpose: str, *, keep: bool = False) -> Iterator[str]:
    """A free place next to the lake, with ``purpose`` in its name; removed at the end, unless it is to be kept."""
    place = location(f"{lake_uri}.{purpose}-{uuid.uuid4().hex[:8]}")
    try:
        yield str(place)
    finally:
        if not keep:
            remove_shadow(place)


def remove_shadow(place: UPath) -> None:
    """Remove a shadow with all its tables, if it exists."""
    if place.exists():
        place.fs.rm(place.path, recursive=True)

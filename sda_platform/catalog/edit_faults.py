"""Edits that claim what is not so: a fault each, until a person decides.

- One that counts edits which have not arrived: they are on their way, or it is forged. It has no effect.
- Two that a site counted as the same edit: it was restored from a backup, or another one has its key. Neither holds.
- One that is not signed by its site, in the last day.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.catalog.edit_decoding import edit_of
from sda_platform.catalog.lookup import open_conflicts
from sda_platform.catalog.sites import BAD_SIGNATURE
from sda_platform.catalog.tables import CATALOG_EDITS, HELD
from sda_platform.lake.lake import Lake
from sda_platform.units import DAY_NS

REFUSED_WITHIN_NS: Final = DAY_NS
_MOST: Final = 20


@dataclass(frozen=True)
class EditFault:
    """What is wrong with an edit. ``subject`` stays the same while it lasts; ``text`` is for people."""

    subject: str
    text: str


def edit_faults(lake: Lake, now_ns: int) -> Iterator[EditFault]:
    """Yield what is wrong with edits at ``now_ns``; of unsigned ones, the last day."""
    claims = open_conflicts(lake)
    yield from (
        EditFault(f"{_named(row)} at {row['origin']}", f"an edit of {_named(row)} is held back: {row['reason']}")
        for row in claims
        if row["outcome"] == HELD
    )
    yield from _counted_twice([row for row in claims if row["outcome"] != HELD])
    yield from _unsigned(lake, now_ns - REFUSED_WITHIN_NS)


def _counted_twice(claims: list[dict[str, Any]]) -> Iterator[EditFault]:
    """``claims`` are sorted by object and attribute."""

    def place(row: dict[str, Any]) -> tuple[int, str, str, int]:
        return row["norad_id"], row["attribute"], row["origin"], edit_of(row).vector[row["origin"]]

    for (_, _, origin, count), rows in groupby(sorted(claims, key=place), place):
        same = list(rows)
        if len(same) > 1:
            values = ", ".join(sorted(repr(row["value"]) for row in same))
            text = f"{origin} made edit {count} of {_named(same[0])} {len(same)} times ({values}): none of them holds"
            yield EditFault(f"{_named(same[0])} at {origin}", f"{text}; decide with `sda catalog resolve`")


def _unsigned(lake: Lake, since_ns: int) -> Iterator[EditFault]:
    log = lake.log(CATALOG_EDITS)
    if log.version() < 0:
        return
    is_late = (ds.field("error_kind") == BAD_SIGNATURE) & (ds.field("received_time_ns") >= since_ns)
    rows = log.rows(["segment_name", "record_number", "error"], is_late).to_pylist()
    for row in rows[:_MOST]:
        yield EditFault(f"{row['segment_name']} record {row['record_number']}", f"an edit was refused: {row['error']}")


def _named(row: dict[str, Any]) -> str:
    return f"{row['attribute']} of {row['norad_id']}"

"""When sensors observe nothing, as a person or a weather service writes it: bad weather, maintenance, a holiday."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.listings import read_listing

COLUMNS: Final = ("source_id", "start", "end", "reason")


@dataclass(frozen=True, order=True)
class Closure:
    """A sensor that observes nothing from ``start_ns`` to ``end_ns``, Unix time UTC, and why."""

    source_id: str
    start_ns: int
    end_ns: int
    reason: str


def listed_closures(file: str) -> list[Closure]:
    """Return the closures of a CSV with the header COLUMNS, ordered; none without a ``file`` or below its header.

    Instants are ISO 8601, UTC unless they state an offset. Raises ListingError with the file, the line and the reason.
    """
    if not file:
        return []
    return sorted(read_listing(Path(file), COLUMNS, _entry, may_be_empty=True).values())


def _entry(fields: Sequence[str]) -> tuple[tuple[str, int, int], Closure]:
    source_id, start, end, reason = fields
    if not source_id:
        raise ValueError("source_id is empty, must name a sensor")
    try:
        start_ns, end_ns = parse_epoch_ns(start, "start"), parse_epoch_ns(end, "end")
    except RecordError as error:
        raise ValueError(str(error)) from None
    if end_ns <= start_ns:
        raise ValueError(f"end is {end}, must be after start, {start}")
    return (source_id, start_ns, end_ns), Closure(source_id, start_ns, end_ns, reason)

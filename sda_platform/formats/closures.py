"""When sensors observe nothing, as a person or a weather service writes it: bad weather, maintenance, a holiday."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sda_platform.clock import iso_to_second
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.listings import ListingError, read_listing
from sda_platform.plain_rows import write_csv

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


def usable_closures(file: str) -> list[Closure]:
    """Return the same, and none where the file cannot be used: what is wrong with it is a fault of its own."""
    try:
        return listed_closures(file)
    except ListingError:
        return []


def with_closure(path: Path, new: Closure) -> str:
    """Return the text of the list at ``path``, which need not exist, with ``new``; other lines stay as they are.

    Raises ListingError where the list cannot be used or has such a closure.
    """
    exists = path.exists()
    for each in listed_closures(str(path)) if exists else ():
        if each.source_id == new.source_id and each.start_ns < new.end_ns and new.start_ns < each.end_ns:
            raise ListingError(
                f"{path}: {new.source_id} is closed already, from {iso_to_second(each.start_ns)} to "
                f"{iso_to_second(each.end_ns)}; edit its line"
            )
    line = io.StringIO()
    fields = (new.source_id, iso_to_second(new.start_ns), iso_to_second(new.end_ns), new.reason)
    write_csv([dict(zip(COLUMNS, fields, strict=True))], line)
    header, _, row = line.getvalue().partition("\n")
    return f"{path.read_text('utf-8-sig').rstrip() if exists else header}\n{row}"


def closed_upto(closures: Iterable[Closure], now_ns: int) -> dict[str, int]:
    """Return by sensor until when it has been closed at ``now_ns``: that instant itself while it is closed."""
    upto: dict[str, int] = {}
    for each in closures:
        if each.start_ns <= now_ns:
            upto[each.source_id] = max(upto.get(each.source_id, 0), min(each.end_ns, now_ns))
    return upto


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

"""The satellites screened against everything else: who is protected, and on whose behalf.

Holds the list and its reader; which element sets they fly on comes from the catalogue at run time.
"""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

_COLUMNS = ("norad_id", "name", "operator")


class FleetError(ValueError):
    """A fleet file that cannot be used; the text names the file, the line and what is wrong."""


@dataclasses.dataclass(frozen=True)
class ProtectedObject:
    """One satellite of the protected fleet."""

    norad_id: int
    name: str
    operator: str


def protected_fleet(path: Path | None = None) -> tuple[ProtectedObject, ...]:
    """The protected fleet in file order, from ``path`` or the list shipped with the package.

    The file is CSV with the header ``norad_id,name,operator``; each id is a positive integer and occurs once.

    Raises:
        FleetError: the file cannot be read or breaks that form.
    """
    source = path or Path(__file__).with_name("fleet.csv")
    try:
        with source.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            rows = [(f"{source} line {reader.line_num}", row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FleetError(f"cannot read the fleet file {source}: {error}") from error
    if not rows or tuple(rows[0][1]) != _COLUMNS:
        found = ",".join(rows[0][1]) if rows else ""
        raise FleetError(f"{source}: header is {found!r}, expected {','.join(_COLUMNS)!r}")
    return _distinct([(where, _member(row, where)) for where, row in rows[1:]], source)


def _distinct(members: list[tuple[str, ProtectedObject]], source: Path) -> tuple[ProtectedObject, ...]:
    fleet: dict[int, ProtectedObject] = {}
    for where, member in members:
        if member.norad_id in fleet:
            raise FleetError(f"{where}: norad_id {member.norad_id} occurs twice")
        fleet[member.norad_id] = member
    if not fleet:
        raise FleetError(f"{source}: lists no satellite")
    return tuple(fleet.values())


def _member(row: list[str], where: str) -> ProtectedObject:
    if len(row) != len(_COLUMNS):
        raise FleetError(f"{where}: {len(row)} fields, expected {len(_COLUMNS)} ({','.join(_COLUMNS)})")
    norad_id, name, operator = (field.strip() for field in row)
    if not norad_id.isascii() or not norad_id.isdigit() or int(norad_id) == 0:
        raise FleetError(f"{where}: norad_id is {norad_id!r}, must be a positive integer")
    if not name:
        raise FleetError(f"{where}: satellite {norad_id} has no name")
    return ProtectedObject(int(norad_id), name, operator)

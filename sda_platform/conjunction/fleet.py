"""The satellites screened against everything else: who is protected, and on whose behalf.

Holds the list and its reader; which element sets they fly on comes from the catalogue at run time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from sda_platform.formats.listings import read_listing

_COLUMNS = ("norad_id", "name", "operator")


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
        ListingError: the file cannot be read or breaks that form.
    """
    return tuple(read_listing(path or Path(__file__).with_name("fleet.csv"), _COLUMNS, _member).values())


def _member(fields: Sequence[str]) -> tuple[int, ProtectedObject]:
    norad_id, name, operator = fields
    if not norad_id.isascii() or not norad_id.isdigit() or int(norad_id) == 0:
        raise ValueError(f"norad_id is {norad_id!r}, must be a positive integer")
    if not name:
        raise ValueError(f"satellite {norad_id} has no name")
    return int(norad_id), ProtectedObject(int(norad_id), name, operator)

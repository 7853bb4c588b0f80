"""International designators (COSPAR), as messages and files write them."""

import re
from collections.abc import Callable, Sequence
from typing import Final

NumbersOf = Callable[[str], Sequence[int]]
"""The catalogue numbers of the objects with an international designator (1998-067A)."""
_DESIGNATOR: Final = re.compile(r"(\d{4}|\d\d)-?(\d{3}) ?([A-Z]{1,3})")
_PIVOT_YEAR: Final = 57
_MOST_DIGITS: Final = 9


def catalogue_number(text: str) -> int | None:
    """The catalogue number that ``text`` is; None: it is none."""
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text) or None
    return None


def normal_designator(text: str) -> str | None:
    """``text`` in the form of the catalogue, 1998-067A; also of 98067A and 1998-067 A. None: it is no designator."""
    found = _DESIGNATOR.fullmatch(text.strip().upper())
    if found is None:
        return None
    year, launch, piece = found.groups()
    century = "" if len(year) == 4 else "19" if int(year) >= _PIVOT_YEAR else "20"
    return f"{century}{year}-{launch}{piece}"


def no_objects(_designator: str) -> Sequence[int]:
    """Where no catalogue is at hand: no designator is of an object."""
    return ()

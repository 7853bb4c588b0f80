"""International designators (COSPAR) and numbers of navigation satellites, as messages, files and names write them."""

import re
from collections.abc import Callable, Sequence
from typing import Final

NumbersOf = Callable[[str], Sequence[int]]
"""The catalogue numbers of the objects with an international designator (1998-067A), or with a number like G01."""
_DESIGNATOR: Final = re.compile(r"(\d{4}|\d\d)-?(\d{3}) ?([A-Z]{1,3})")
_NAVIGATION: Final = re.compile(r"[GREJC]\d\d")
# How names of the catalogue at CelesTrak state them: system of the name, and the number's own form.
_IN_NAMES: Final = (
    (re.compile(r"GPS\b.*\(PRN (\d\d?)\)"), "G", 0),
    (re.compile(r".*\(PRN E(\d\d)\)"), "E", 0),
    (re.compile(r"BEIDOU\b.*\(C(\d\d)\)"), "C", 0),
    (re.compile(r".*\(QZSS/PRN (18[3-9]|19[0-2])\)"), "J", 182),
    (re.compile(r".*\(QZSS/PRN (19[3-9]|20[0-2])\)"), "J", 192),
)
_PIVOT_YEAR: Final = 57
_MOST_DIGITS: Final = 9
ALPHA_5: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # I and O are left out
_ALPHA_5_LENGTH: Final = 5


def catalogue_number(text: str) -> int | None:
    """Return the catalogue number that ``text`` is, also in Alpha-5 (T0001 is 270001); None: it is none."""
    if len(text) == _ALPHA_5_LENGTH and text[0] in ALPHA_5 and text[1:].isascii() and text[1:].isdigit():
        return alpha_5_number(text[0], int(text[1:]))
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text) or None
    return None


def alpha_5_number(letter: str, rest: int) -> int:
    """Return the catalogue number that Alpha-5 writes with this letter and the four digits of ``rest``."""
    return (10 + ALPHA_5.index(letter)) * 10_000 + rest


def normal_designator(text: str) -> str | None:
    """``text`` in the form of the catalogue, 1998-067A; also of 98067A and 1998-067 A. None: it is no designator."""
    found = _DESIGNATOR.fullmatch(text.strip().upper())
    if found is None:
        return None
    year, launch, piece = found.groups()
    century = "" if len(year) == 4 else "19" if int(year) >= _PIVOT_YEAR else "20"
    return f"{century}{year}-{launch}{piece}"


def is_navigation_number(text: str) -> bool:
    """Return whether ``text`` is the number of a satellite within its navigation system, as SP3 has it: G01,
    E11, C19.
    """
    return _NAVIGATION.fullmatch(text) is not None


def navigation_number(name: str) -> str | None:
    """Return the number within its navigation system that the name of an object states: G01 of GPS BIIF-2 (PRN 01)."""
    for pattern, system, offset in _IN_NAMES:
        if found := pattern.fullmatch(name.strip().upper()):
            return f"{system}{int(found[1]) - offset:02}"
    return None


def no_objects(_designator: str) -> Sequence[int]:
    """Find no object for any designator: the lookup where there is no catalogue."""
    return ()

"""How much of an expensive test the suite runs; ``make soak UNITS=1`` and ``CASES=1`` run all of it."""

import os
from collections.abc import Iterable
from typing import Final, TypeVar

IS_SOAK: Final = "SOAK" in os.environ
_Case = TypeVar("_Case")


def sampled(cases: Iterable[_Case], *chosen: _Case) -> list[_Case]:
    """All ``cases`` in a soak, else the ``chosen`` ones."""
    known = list(cases)
    if any(each not in known for each in chosen):
        raise ValueError(f"{chosen} are not all among {known}")
    return known if IS_SOAK else list(chosen)


def number(in_soak: int, in_suite: int) -> int:
    """How many cases are drawn."""
    return in_soak if IS_SOAK else in_suite

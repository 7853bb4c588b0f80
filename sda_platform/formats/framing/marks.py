"""Marks that open and close a part of a text, found in one forward pass, however many of them are left open."""

import re


class Marks:
    """Finds marks in ``data``, as patterns. Each search ends at ``end``; those of one mark begin at places that ascend.

    What comes next is found once, not anew from each place before it: so is that nothing comes any more.
    """

    def __init__(self, data: bytes, end: int | None = None) -> None:
        self.data, self.end = data, len(data) if end is None else end
        self._ahead: dict[re.Pattern[bytes], tuple[int, int] | None] = {}

    def next(self, mark: re.Pattern[bytes], begin: int) -> tuple[int, int] | None:
        """Return where the next ``mark`` from ``begin`` on begins and ends; None: there is none any more."""
        ahead = self._ahead.get(mark, (-1, -1))
        if ahead is not None and ahead[0] < begin:
            found = mark.search(self.data, begin, self.end)
            ahead = self._ahead[mark] = found.span() if found else None
        return ahead

    def last(self, mark: re.Pattern[bytes], begin: int) -> tuple[int, int] | None:
        """Return where the last ``mark`` from ``begin`` on begins and ends; None: there is none."""
        span = None
        for found in mark.finditer(self.data, begin, self.end):
            span = found.span()
        return span

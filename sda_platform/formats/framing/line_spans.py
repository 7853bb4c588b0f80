"""Where the lines of a text lie, without the blanks around them, found for all lines at once."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

BLANK: Final = b" \t\r"
_LINE_FEED: Final = 10
_IS_BLANK: Final = np.isin(np.arange(256), np.frombuffer(BLANK, np.uint8))
_MOST_ROUNDS: Final = 32
"""Blanks that are taken off all lines at once; a line with more of them is stripped alone."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LineSpans:
    """The lines of ``data`` that are not blank: `begins` and `ends` (n,) without blanks, `numbers` (n,) from 1.

    ``data`` is the text with line feeds alone, so that one byte lies between a line and the next.
    """

    data: bytes
    begins: Positions
    ends: Positions
    numbers: Positions

    def texts(self) -> list[bytes]:
        """Return the bytes of each line."""
        data = self.data
        return [data[begin:end] for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)]

    def begin_with(self, *starts: bytes) -> npt.NDArray[np.bool_]:
        """Tell of each line whether it begins with one of these bytes, (n,)."""
        content, at = np.frombuffer(self.data, np.uint8), self.begins
        found = np.zeros(len(at), np.bool_)
        for start in starts:
            is_so = self.ends - at >= len(start)
            for offset, byte in enumerate(start):
                is_so &= content[np.minimum(at + offset, len(content) - 1)] == byte
            found |= is_so
        return found


def line_spans(data: bytes) -> LineSpans:
    """Return the lines of ``data``, which may end in a line feed or in a carriage return and a line feed."""
    data = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    content = np.frombuffer(data + b"\n", np.uint8)
    ends = np.flatnonzero(content == _LINE_FEED)
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    ends, is_blank = ends.copy(), np.ones(1, np.bool_)
    for _ in range(_MOST_ROUNDS):
        at_end = (begins < ends) & _IS_BLANK[content[ends - 1]]
        ends -= at_end
        at_begin = (begins < ends) & _IS_BLANK[content[begins]]
        begins += at_begin
        is_blank = at_end | at_begin
        if not is_blank.any():
            break
    for row in np.flatnonzero(is_blank).tolist():
        text = data[begins[row] : ends[row]].rstrip(BLANK)
        ends[row] = begins[row] + len(text)
        begins[row] += len(text) - len(text.lstrip(BLANK))
    kept = np.flatnonzero(begins < ends)
    return LineSpans(data, begins[kept], ends[kept], kept + 1)

"""Records that are whole text files: from one beginning to the next, as where several were joined."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import Framing, RawRecord

Split = Callable[[bytes], Iterator[RawRecord]]


def documents(begins: re.Pattern[bytes], ends: re.Pattern[bytes], split: Split | None = None) -> Framing:
    """Return the framing of files that begin with a line like ``begins`` and whose last line is like ``ends``.

    ``split`` gives the records of such files, where a file is more than one.
    """

    def boundary(buffer: bytearray, room: int) -> int:
        found = [each.start() for each in begins.finditer(buffer, 0, room)]
        return found[-1] if found else 0

    def one_each(data: bytes) -> Iterator[RawRecord]:
        lines = LineNumbers(data)
        spans = list(document_spans(data, begins))
        for number, (start, end) in enumerate(spans):
            yield RawRecord(number, None, data[start:end], line=lines.at(start))

    return Framing(
        split or one_each, _pack, split_at(boundary), lambda tail: ends.search(tail.rstrip(b" \t\n")) is not None
    )


def document_spans(data: bytes, begins: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Begin and end of each file in ``data``, without the blanks around it; what comes before the first is its own."""
    starts = [found.start() for found in begins.finditer(data)][1:]
    for start, end in pairwise([0, *starts, len(data)]):
        text = data[start:end]
        first, last = start + len(text) - len(text.lstrip()), start + len(text.rstrip())
        if first < last:
            yield first, last


def _pack(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    del received_time_ns, header
    return b"".join(payload + b"\n" for payload in payloads)

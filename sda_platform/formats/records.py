"""Records of a segment, and what a way of framing them can do. No format is named here.

A framing finds where a record begins and ends; it does not interpret it. Its split never raises and never loses a byte
of a record: what cannot be split becomes one last record that carries its error.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.errors import ErrorKind, RecordError

MAX_TIME_NS: Final = 2**63 - 1
NOT_STAMPED: Final = -1


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as landed; `number` counts from 0 in its segment, `error` is the reason if it could not be split off.

    `line` is the line of the segment on which it begins, from 1; 0 where the segment is binary. `header` is what the
    record needs of its segment to be read: the first line of a CSV. `pieces` of a record that is put together of
    several stretches of its segment: for each the line of the payload and that of the segment on which it begins.
    """

    number: int
    received_time_ns: int | None
    payload: bytes
    error_kind: ErrorKind | None = None
    error: str | None = None
    line: int = 0
    header: bytes = b""
    pieces: tuple[tuple[int, int], ...] = ()

    def line_of(self, line: int) -> int:
        """Return the line of the segment that is this ``line`` of the payload."""
        place = bisect_right(self.pieces, line, key=itemgetter(0))
        begin, in_segment = self.pieces[place - 1] if place else (1, max(self.line, 1))
        return in_segment + line - begin


@dataclass(frozen=True, slots=True)
class CutRecords:
    """The records of one or several segments as columns of n rows; `numbers` count from 0 in each segment.

    `received_time_ns` is NOT_STAMPED where the record carries none; `lines` as in `RawRecord`. A row in `errors` could
    not be cut.
    """

    numbers: NDArray[np.int64]
    payloads: list[bytes]
    received_time_ns: NDArray[np.int64]
    lines: NDArray[np.int64]
    errors: Mapping[int, RecordError]

    def __len__(self) -> int:
        return len(self.payloads)


def _no_header(data: bytes) -> bytes:
    del data
    return b""


def _not_at_once(data: bytes) -> CutRecords | None:
    del data
    return None


@dataclass(frozen=True, slots=True)
class Framing:
    """How records lie in a segment.

    `pack` is the inverse of `split`: payloads, their received times (ns) and the segment's header to a segment.
    `split_stream` cuts a stream of chunks into segments of at most so many bytes, at ends of records. `looks_ended`
    returns whether a stream with these last bytes may be complete. `cut` does what `split` does for many records at
    once, or returns None where it cannot. `count` is the number of records that `split` yields; None where nothing
    counts them sooner. Of text all functions get it as `text.as_text` gives it.
    """

    split: Callable[[bytes], Iterator[RawRecord]]
    pack: Callable[[Sequence[bytes], Sequence[int], bytes], bytes]
    split_stream: Callable[[Iterable[bytes], int], Iterator[bytes]]
    looks_ended: Callable[[bytes], bool]
    header: Callable[[bytes], bytes] = _no_header
    cut: Callable[[bytes], CutRecords | None] = _not_at_once
    count: Callable[[bytes], int] | None = None
    is_stamped: bool = False
    is_text: bool = True

    @property
    def has_header(self) -> bool:
        """Whether a record can be read only with the header of its segment."""
        return self.header is not _no_header

"""Cutting a stream of any length into segments at record boundaries, holding no more than one segment.

What a framing finds in the segments, one after the other, is what it finds in the whole stream. A stretch without a
boundary may be longer than a segment: a line without an end, a document that breaks off. It is cut where the segment is
full: no byte of it is lost, and its pieces fail as records. A stream that fits into one segment is that segment, byte
for byte.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

# The end of the last whole record within the first bytes of a buffer, 0 where there is none.
Boundary = Callable[[bytearray, int], int]
StreamSplitter = Callable[[Iterable[bytes], int], Iterator[bytes]]


def _no_prefix(head: bytearray) -> bytes:
    del head
    return b""


def split_at(boundary: Boundary, prefix_of: Callable[[bytearray], bytes] = _no_prefix) -> StreamSplitter:
    """Return the splitter that cuts at ``boundary``; each segment begins with what ``prefix_of`` finds in the first
    bytes.
    """
    return partial(_split, boundary, prefix_of)


def _split(
    boundary: Boundary, prefix_of: Callable[[bytearray], bytes], chunks: Iterable[bytes], max_bytes: int
) -> Iterator[bytes]:
    rest = iter(chunks)
    buffer = bytearray()
    for chunk in rest:
        buffer += chunk
        if len(buffer) > max_bytes:
            break
    if len(buffer) <= max_bytes:
        yield bytes(buffer)
        return
    prefix = prefix_of(buffer)
    del buffer[: len(prefix)]
    room = max_bytes - len(prefix)
    for chunk in chain([b""], rest):
        buffer += chunk
        while len(buffer) > room:
            end = boundary(buffer, room) or room
            yield prefix + buffer[:end]
            del buffer[:end]
    if buffer:
        yield prefix + buffer

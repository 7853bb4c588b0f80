"""The JSON array with which an archive of telescope records answers, read piece by piece.

A record that no reader of JSON takes, such as one with a number of 5,000 digits, harms no other: where it ends follows
from quotes and brackets alone.
"""

import json
import re
from hashlib import sha256
from typing import Any, Final, NamedTuple

from typing_extensions import override

MOST_RECORD_BYTES: Final = 2**20
_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*("?)|[\[\]{},]', re.DOTALL)


class _Unnumbered(str):
    """Text in which an error of `json` counts no lines: it would read all text before it, for each bad record."""

    __slots__ = ()

    @override
    def count(self, *_: object) -> int:
        return 0

    @override
    def rfind(self, *_: object) -> int:
        return -1


class NoRecords(ValueError):
    """The answer is no JSON array of records; the text says why."""


class Record(NamedTuple):
    """A record as a line of JSON. ``name`` is its id and ``time_ns`` its time.

    Where one of them is missing, the name is the hash of its text, and the time None.
    """

    name: str
    time_ns: int | None
    line: bytes


class Piece(NamedTuple):
    """The records of a piece of an answer, as columns, which go between processes at a tenth of the cost of objects.

    ``rest`` is what the next piece continues, None once the array is closed; ``has_begun``: its bracket was read.
    """

    names: list[str]
    times_ns: list[int | None]
    lines: list[bytes]
    rest: bytes | None
    has_begun: bool = True

    @property
    def records(self) -> list[Record]:
        """The same as records."""
        return [Record(*row) for row in zip(self.names, self.times_ns, self.lines, strict=True)]


def read_piece(data: bytes, received_ns: int, *, is_first: bool, is_last: bool) -> Piece:
    """Read the records in ``data``, the rest of the piece before and a new one. Raises NoRecords."""
    text = _Unnumbered(data.decode("utf-8", "surrogateescape"))
    at = _skip(text, 0)
    if is_first:
        if text[at : at + 1] not in ("[", ""):
            raise NoRecords(f"begins with {text[at : at + 40]!r}, must be a JSON array")
        if text[at : at + 1]:
            at = _skip(text, at + 1)
        elif not is_last:
            return _piece([], data, has_begun=False)
    records: list[Record] = []
    while at < len(text):
        if text[at] == "]":
            return _piece(records, None)
        found = _element(text, at)
        if found is None:
            break
        record, end = found
        records.append(_record(record, text[at:end], received_ns))
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    rest = text[at:].encode("utf-8", "surrogateescape")
    if is_last or len(rest) > MOST_RECORD_BYTES:
        raise NoRecords(f"the array breaks off at {text[at : at + 40]!r}")
    # A separator may have been read: the array goes on as if it began here.
    return _piece(records, rest)


def _piece(records: list[Record], rest: bytes | None, *, has_begun: bool = True) -> Piece:
    names, times_ns, lines = [list(column) for column in zip(*records, strict=True)] or ([], [], [])
    return Piece(names, times_ns, lines, rest, has_begun)


def _element(text: str, at: int) -> tuple[Any, int] | None:
    """Return the element at ``at`` (None where it cannot be decoded) and its end; None while the end is not there."""
    value: Any = None
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        end = _end(text, at)
    following = _skip(text, end)
    return (value, end) if text[following : following + 1] in (",", "]") and end > at else None


def _end(text: str, at: int) -> int:
    """Where the element ends by quotes and brackets; ``at`` while that is not there."""
    depth = 0
    for found in _STRUCTURE.finditer(text, at):
        mark = found[0][0]
        if mark == '"':
            if not found[1]:
                return at
        elif mark in "[{":
            depth += 1
        elif depth and mark in "]}":
            depth -= 1
        elif not depth:
            return found.start()
    return at


def _record(value: Any, text: str, received_ns: int) -> Record:
    if not isinstance(value, dict):
        line = " ".join(text.split()) if value is None else json.dumps(value, separators=(",", ":"))
        return Record(_hash_name(text), None, line.encode("utf-8", "surrogateescape"))
    name, time_ns = value.get("obs_id"), value.get("timestamp_ns")
    line = json.dumps({**value, "received_ns": received_ns}, separators=(",", ":"))
    if isinstance(name, str) and name and isinstance(time_ns, int) and not isinstance(time_ns, bool):
        return Record(name, time_ns, line.encode())
    return Record(_hash_name(text), None, line.encode())


def _hash_name(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at

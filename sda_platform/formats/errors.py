"""Why one record cannot be read: the closed list of error kinds, and the exception that carries one.

Holds no parsing. Decoders turn a `RecordError` into a row (`error_kind`, `error`); it never leaves a segment
decoder.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

ErrorKind = Literal[
    "bad_length",
    "bad_json",
    "bad_field",
    "bad_checksum",
    "bad_signature",
    "frame_conflict",
    "missing_field",
    "out_of_range",
    "torn_record",
    "unknown_format",
]
ERROR_KINDS: Final[tuple[str, ...]] = get_args(ErrorKind)


class RecordError(ValueError):
    """One record is unreadable; `kind` is for counting, `text` has the value found and the values allowed."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind: Final[ErrorKind] = kind
        self.text: Final[str] = text

    def alone(self) -> "RecordError":
        """Return the same error without the frames in which it was raised: of many records they fill the memory."""
        return RecordError(self.kind, self.text)


@contextmanager
def located(place: str) -> Iterator[None]:
    """Put ``place`` ("line 7") before the text of a RecordError."""
    try:
        yield
    except RecordError as error:
        raise RecordError(error.kind, f"{place}: {error.text}") from None

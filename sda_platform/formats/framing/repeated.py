"""What the records of a text may hold in all, where each repeats what they have in common."""

from typing import Final

_TIMES: Final = 32
_FLOOR_BYTES: Final = 64 * 2**20
_PIECE_BYTES: Final = 64
"""What a stretch of a record costs besides its bytes."""


class Repetition:
    """The bytes that records of a text of ``size`` bytes may hold in all.

    Of sound files a record repeats a header of some kilobytes. One whose header is half the text would make its square.
    """

    def __init__(self, size: int) -> None:
        self._most = self._left = _TIMES * size + _FLOOR_BYTES

    def excess(self, size: int, pieces: int) -> str | None:
        """Take the bytes and the number of stretches of further records; return the reason where that is too much."""
        size += pieces * _PIECE_BYTES
        if size > self._left:
            return f"its records repeat what they have in common to {size:,} bytes, at most {self._most:,} are allowed"
        self._left -= size
        return None

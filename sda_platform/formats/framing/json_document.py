"""A JSON document that is read on demand, so that a file of any size needs little memory."""

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Final

JSON_SPACE: Final = " \t\r\n"
_AFTER_ELEMENT: Final = frozenset(JSON_SPACE + ",]")
_DECODER: Final = json.JSONDecoder()


class JsonDocument:
    """The elements of an array, each of at most ``limit`` bytes, one after the other; then what is no element."""

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self._chunks = iter(chunks)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text, self._at = "", 0
        self._limit = limit
        self._has_more = True
        self._is_closed = False

    def elements(self) -> Iterator[bytes]:
        """Yield the elements of the array (or the one document that is none), up to what cannot be read."""
        is_array = self._took("[")
        while not (is_array and self._took("]")):
            element = self._element()
            if element is None:
                return
            yield element
            if not is_array:
                break
            if not self._took(",") and self._next() != "]":
                return
        self._is_closed = True

    def rest(self, max_bytes: int) -> Iterator[bytes]:
        """Yield what follows the last element; nothing where the document is closed and only blanks follow."""
        if not self._next():
            if not self._is_closed:
                yield b"["  # fails as a document that breaks off
            return
        rest = b""
        while self._text or self._read(max_bytes):
            rest += self._text[self._at :].encode("utf-8", "surrogateescape")
            self._text, self._at = "", 0
            while len(rest) > max_bytes:
                yield rest[:max_bytes]
                rest = rest[max_bytes:]
        yield rest

    def _element(self) -> bytes | None:
        """Return the element that comes next, taken; None where it cannot be read, is too long, or the document
        ends.
        """
        self._next()
        while True:
            length = len(self._text) - self._at
            try:
                end = _DECODER.raw_decode(self._text, self._at)[1]
                if self._text[end : end + 1] in _AFTER_ELEMENT or not self._has_more or length > self._limit:
                    break  # else it may be the beginning of a number
            except (ValueError, RecursionError):
                if not self._has_more or length > self._limit:
                    return None
            self._read(2 * length)
        element = self._text[self._at : end].encode("utf-8", "surrogateescape")
        if len(element) > self._limit:
            return None
        self._at = end
        return element

    def _took(self, character: str) -> bool:
        """Return whether ``character`` comes next; it is taken."""
        found = self._next() == character
        self._at += found
        return found

    def _next(self) -> str:
        """Return the next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in JSON_SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._read(1):
                return ""

    def _read(self, length: int) -> bool:
        """Have at least ``length`` characters ahead; False where nothing comes any more."""
        parts = [self._text[self._at :]]
        before = size = len(parts[0])
        while self._has_more and size < length:
            chunk = next(self._chunks, None)
            self._has_more = chunk is not None
            parts.append(self._decoder.decode(chunk or b"", final=chunk is None))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > before

"""Bytes become text once: the bytes of a segment as UTF-8 with line feeds and without a byte order mark.

Encodings are found as XML 1.0, appendix F, has it: by a byte order mark, by the zero bytes of UTF-16 and UTF-32, by the
declaration of an XML document. What is declared or marked wrongly stays as it is, so that the record's reader refuses
it. Line ends are those of any system: CR LF, CR or LF.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

# UTF-32 before UTF-16, whose mark is the beginning of the other's.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WITHOUT_MARK: Final = (
    (re.compile(rb"[^\0]\0\0\0", re.DOTALL), "utf-32-le"),
    (re.compile(rb"\0\0\0[^\0]", re.DOTALL), "utf-32-be"),
    (re.compile(rb"[^\0]\0[^\0]\0", re.DOTALL), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]", re.DOTALL), "utf-16-be"),
)
_DECLARED: Final = re.compile(rb"""(\s*<\?xml\b[^>]{0,200}?\sencoding\s*=\s*["'])([A-Za-z][\w.-]{0,40})(?=["'])""")
_DECLARED_TEXT: Final = re.compile(r"""(\s*<\?xml\b[^>]{0,200}?\sencoding\s*=\s*["'])([A-Za-z][\w.-]{0,40})(?=["'])""")
_UTF_8: Final = "utf-8"
_HEAD_BYTES: Final = 512


def as_text(data: bytes) -> bytes:
    """``data`` as UTF-8 with line feeds, without a byte order mark; usual text is returned as it is."""
    encoding, mark = _encoding_of(data[:_HEAD_BYTES])
    if encoding != _UTF_8:
        data = _declared_as_utf_8(data[mark:].decode(encoding, "replace")).encode()
    elif mark:
        data = data[mark:]
    return _with_line_feeds(data)


def to_be_read_again(text: bytes) -> bytes:
    """Return bytes of which `as_text` makes ``text``, which is its result or a part of it.

    A part may begin with what says another encoding at the beginning of a file; then it gets the mark of UTF-8.
    """
    return text if _encoding_of(text[:_HEAD_BYTES]) == (_UTF_8, 0) else codecs.BOM_UTF8 + text


def stream_as_text(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decode ``chunks`` piece by piece, as `as_text` decodes the whole."""
    rest = iter(chunks)
    head = b""
    while len(head) < _HEAD_BYTES and (chunk := next(rest, None)) is not None:
        head += chunk
    encoding, mark = _encoding_of(head[:_HEAD_BYTES])
    pieces = chain([head[mark:]], rest)
    texts = pieces if encoding == _UTF_8 else _decoded(pieces, encoding)
    held = b""
    for text in texts:
        text = held + text
        held = b"\r" if text.endswith(b"\r") else b""  # a line feed may follow
        text = text[: len(text) - len(held)]
        yield _with_line_feeds(text)
    if held:
        yield b"\n"


def _with_line_feeds(text: bytes) -> bytes:
    if b"\r" not in text:
        return text
    text = text.replace(b"\r\n", b"\n")
    return text.replace(b"\r", b"\n") if b"\r" in text else text


def _decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    is_first = True
    for piece in pieces:
        text = decoder.decode(piece)
        yield (_declared_as_utf_8(text) if is_first else text).encode()
        is_first = False
    yield decoder.decode(b"", final=True).encode()


def _encoding_of(head: bytes) -> tuple[str, int]:
    """Return the encoding of a text that begins with ``head``, and the length of its byte order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    for pattern, encoding in _WITHOUT_MARK:
        if pattern.match(head):
            return encoding, 0
    declared = _DECLARED.match(head)
    return (_usable(declared[2].decode()) if declared else _UTF_8), 0


def _usable(name: str) -> str:
    """Return the codec of a declared encoding in which the declaration itself was legible; UTF-8 for others."""
    try:
        "".encode(name)  # refuses what is no encoding of text
        codec = codecs.lookup(name)
        is_legible = "<?xml".encode(name) == b"<?xml" and codec.incrementaldecoder is not None
    except (LookupError, ValueError):
        return _UTF_8
    return codec.name if is_legible and codec.name not in _NOT_DECLARED else _UTF_8


# Encodings of identifiers and of Python's own texts.
_NOT_DECLARED: Final = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "ascii", "utf-7"})


def _declared_as_utf_8(text: str) -> str:
    """An XML document whose declaration states the encoding that it has now."""
    return _DECLARED_TEXT.sub(r"\g<1>UTF-8", text, count=1) if _DECLARED_TEXT.match(text) else text

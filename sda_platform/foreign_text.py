"""Text that others wrote (names, comments, file names, messages), made harmless for where it is shown.

A terminal obeys control characters, and a Markdown page loads images. Each output has one function or class here, so
that no place that shows text has to remember this. JSON is escaped by `json`.
"""

import re
import unicodedata
from html import escape
from typing import Final

_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F
# Written in the text's own order, they show something else than what it holds (Unicode TR36).
_DIRECTIONS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LAYOUT: Final = frozenset("\n\t")
CONTROLS: Final = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
"""A pattern of the characters that no name has, for texts without lone surrogates."""
_NOT_PLAIN: Final = re.compile(f"{CONTROLS[:-1]}\ud800-\udfff]")
_FORMULA: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
"""How a formula begins; some spreadsheets take the wide letters, too."""
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
# An underscore between letters or digits, as in names of columns and sensors, marks nothing (CommonMark 6.2).
# Parentheses mark nothing where brackets are escaped.
_MARKS: Final = re.compile(r"([\\`*\[\]<>!|~&#{}$]|(?<![^\W_])_|_(?![^\W_]))")
# Invisible. Renderers also look for addresses after they have read escapes; before the sign, this breaks them.
_JOINER: Final = "\u2060"
_ADDRESS: Final = re.compile(r"(?i)(\w):(?=//)|\b(www)\.(?=\w)|(?<=\w)@(?=\w)")


# What chats read as a call of people (@everyone, <!channel>), as a link ([text](address)) or as an address.
_CALLS: Final = re.compile(r"(?i)[@<\]]|(?<=\w):(?=//)|\bwww\.(?=\w)")
# Spreadsheets of many countries separate cells by semicolons, and know no quotation marks within one.
_INNER_FORMULA: Final = re.compile(rf"(;\s*|(?<=\S)\s*[\t\n]\s*)(?=[{re.escape(''.join(sorted(_FORMULA)))}])")


def printable(text: str) -> str:
    """``text`` in which each character that controls a terminal is replaced by one that shows it; as many characters.

    Line feeds and tabulators stay.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def is_plain(text: str) -> bool:
    """Return whether ``text`` has no control character, line break or change of direction: what a name may have."""
    return not _NOT_PLAIN.search(text)


class Html(str):
    """A part of a page that is written as it is; whatever else becomes a part of a page is text (`html_elements`)."""

    __slots__ = ()


def in_html(content: object) -> Html:
    """``content`` as a part of a page or the value of an attribute: text is shown, and makes no element; Html stays."""
    return content if isinstance(content, Html) else Html(escape(printable(str(content))))


class Markdown(str):
    """Markdown that is shown as it is; whatever else becomes a part of Markdown is text (`markdown_elements`)."""

    __slots__ = ()


def in_markdown(content: object) -> Markdown:
    """``content`` as a part of Markdown: text is shown in one line, and makes no link, image, element, formula or cell.

    Markdown stays.
    """
    if isinstance(content, Markdown):
        return content
    shown = _MARKS.sub(r"\\\1", printable(str(content)).replace("\n", "␊").replace("\t", "␉"))
    escaped = _ADDRESS.sub(lambda found: f"{found[1] or found[2] or ''}{_JOINER}&#{ord(found[0][-1])};", shown)
    return Markdown(escaped)


def in_message(text: str) -> str:
    """Return ``text`` as a part of a line of a mail or a chat, without a call of people and without a link."""
    return _CALLS.sub(rf"\g<0>{_JOINER}", " ".join(printable(text).split()))


def in_figure(text: str) -> str:
    """``text`` as matplotlib draws it: no formula comes from it."""
    return printable(text).replace("$", r"\$")


def in_csv(text: str) -> str:
    """``text`` as a cell of CSV that a spreadsheet shows and does not execute, and a terminal does not obey."""
    shown = _INNER_FORMULA.sub(r"\1'", printable(text))
    return f"'{shown}" if shown.lstrip()[:1] in _FORMULA and not _NUMBER.fullmatch(shown) else shown


def _shown(letter: str) -> str:
    if letter in _LAYOUT:
        return letter
    code, kind = ord(letter), unicodedata.category(letter)
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    if code == _DELETE:
        return "␡"
    return "\N{REPLACEMENT CHARACTER}" if kind in ("Cc", "Cs", "Zl", "Zp") or letter in _DIRECTIONS else letter

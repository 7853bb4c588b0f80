"""Typed reading of one JSON object; every refusal is a RecordError naming field and value."""

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final

from sda_platform.formats.errors import RecordError

_MAX_INT64: Final = 2**63 - 1
LONGEST_TEXT: Final = 256
"""Characters of a name, a designator, an originator: more than any publisher's, and than most file systems allow."""
_LONGEST_NUMBER: Final = 500
"""More characters than the largest number has without an exponent, so that reading one costs little."""
_FORTRAN: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))[dD]([+-]?\d+)", re.ASCII)


def json_object(payload: bytes) -> dict[str, Any]:
    """Return the object in `payload`; NaN, bad UTF-8, a repeated name and anything else raise
    RecordError("bad_json").
    """
    try:
        text = payload.decode("utf-8")
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise RecordError("bad_json", f"not a JSON object: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise RecordError("bad_json", f"not a JSON object but a {type(value).__name__}")
    return value


def _with_each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"{ascii(repeated(name for name, _ in pairs))[:80]} is given twice")
    return found


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of ``names`` that occurs a second time; None: each occurs once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


# Made once: to make one takes longer than to read a record.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_with_each_name_once)


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Non-empty text of a column."""
    value = _present(fields, name)
    if not isinstance(value, str) or not value:
        raise RecordError("bad_field", f"{name} is {_shown(value)}, must be non-empty text")
    return column_text(value, name)


def integer_field(fields: Mapping[str, Any], name: str) -> int:
    """Read an integer in [0, 2^63)."""
    value = _present(fields, name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError("bad_field", f"{name} is {_shown(value)}, must be an integer")
    if not 0 <= value <= _MAX_INT64:
        raise RecordError("out_of_range", f"{name} is {_shown(value)}, must be at least 0 and at most {_MAX_INT64}")
    return value


def number_field(fields: Mapping[str, Any], name: str) -> float:
    """Read a finite number."""
    value = _present(fields, name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RecordError("bad_field", f"{name} is {_shown(value)}, must be a number")
    return finite(value, name)


def finite(value: int | float | str, name: str) -> float:
    """`value` as a finite float; RecordError: `bad_field` if no number, `out_of_range` if infinite."""
    try:
        # Python would read 1_000 and digits of other scripts.
        if isinstance(value, str) and (len(value) > _LONGEST_NUMBER or "_" in value or not value.isascii()):
            raise ValueError
        number = float(with_exponent(value) if isinstance(value, str) else value)
    except OverflowError:
        raise RecordError("out_of_range", f"{name} is {_shown(value)}, too large for a number") from None
    except ValueError:
        raise RecordError("bad_field", f"{name} is {_shown(value)}, must be a number") from None
    if not isfinite(number):
        raise RecordError("out_of_range", f"{name} is {_shown(value)}, must be finite")
    return number


def with_exponent(text: str) -> str:
    """A number as everybody reads it: 1.5D+03, as Fortran writes it, is 1.5E+03; other text as it is."""
    found = _FORTRAN.fullmatch(text.strip()) if len(text) <= _LONGEST_NUMBER else None
    return f"{found[1]}E{found[2]}" if found else text


def column_text(value: str, name: str) -> str:
    """`value` itself: a name, a designator, an originator. Raises RecordError for one that a column does not hold."""
    return encodable(require_short(value, name), name)


def require_short(value: str, name: str) -> str:
    """`value` itself, if it has no more characters than a name may. Raises RecordError."""
    if len(value) > LONGEST_TEXT:
        raise RecordError("bad_length", f"{name} has {len(value)} characters, at most {LONGEST_TEXT} are allowed")
    return value


def encodable(value: str, name: str) -> str:
    """`value` itself; RecordError("bad_field") for lone surrogates, which no table stores."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RecordError("bad_field", f"{name} is {_shown(value)}, not valid Unicode text") from None
    return value


def _present(fields: Mapping[str, Any], name: str) -> Any:
    value = fields.get(name)
    if value is None:
        raise RecordError("missing_field", f"{name} is missing")
    return value


def _shown(value: object) -> str:
    try:
        return ascii(value)[:80]
    except ValueError:  # an integer of more digits than Python will print
        return f"a very long {type(value).__name__}"

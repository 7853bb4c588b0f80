"""Two- and three-line sets read by columns: fixed positions of many lines at once, or nothing (`element_columns`).

The characters of all sets are stored column by column, so that each step reads one stretch of memory. A number of fixed
width is an integer over a power of ten. Both are exact as doubles, so the quotient is the double that is nearest to the
text, as the careful path has it.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.designators import ALPHA_5
from sda_platform.formats.element_columns import USUAL, Columns, are_short, are_within_limits, content_of, trimmed
from sda_platform.formats.element_set import SGP4
from sda_platform.formats.tle import LINE_LENGTH, PIVOT_YEAR, designator, year_start_ns
from sda_platform.units import DAY_NS

ByteArray = npt.NDArray[np.uint8]
_BOTH: Final = 2 * LINE_LENGTH + 1
# A digit is its value; the classes of other characters follow.
_SPACE, _MINUS, _PLUS, _POINT, _OTHER, _LINE_FEED, _UNUSUAL = range(10, 17)
_CLASSES: Final = np.full(256, _UNUSUAL, np.uint8)
_CLASSES[0x20:0x7F] = _OTHER
_CLASSES[np.frombuffer(b"0123456789 -+.\n", np.uint8)] = [*range(10), _SPACE, _MINUS, _PLUS, _POINT, _LINE_FEED]
_CLASS_OF: Final = _CLASSES.tobytes()
_IN_CHECKSUM: Final = 68
_ALPHA: Final = np.zeros(256, np.int64)
_ALPHA[np.frombuffer(ALPHA_5.encode(), np.uint8)] = np.arange(10, 10 + len(ALPHA_5))
_YEAR_STARTS_NS: Final = np.array([year_start_ns(number) for number in range(100)], np.int64)


class _UnusualError(Exception):
    """A line that is left to the careful path."""


def read_tle_columns(payloads: pa.Array, header: bytes = b"") -> Columns | None:
    """Columns of sets of two lines each, or three, by name as in ELEMENT_SCHEMA; None: not all are usual."""
    del header
    text, names = content_of(pc.binary_slice(payloads, -_BOTH)), pc.binary_slice(payloads, 0, -_BOTH)
    if len(text) != len(payloads) * _BOTH:
        return None
    characters = np.frombuffer(text, np.uint8).reshape(len(payloads), _BOTH)
    classes = np.ascontiguousarray(np.frombuffer(text.translate(_CLASS_OF), np.uint8).reshape(characters.shape).T)
    try:
        _require(np.delete(classes, LINE_LENGTH, axis=0) < _LINE_FEED)
        _require(classes[LINE_LENGTH] == _LINE_FEED)
        columns = _columns(classes[:LINE_LENGTH], classes[LINE_LENGTH + 1 :], characters)
        columns["international_designator"] = _designators(characters[:, 9:17])
        columns["classification"] = _classifications(characters[:, 7])
        if name_text := content_of(names):
            columns["object_name"] = _names(names, name_text)
    except _UnusualError:
        return None
    return columns if are_within_limits(columns) else None


def _names(lines: pa.Array, text: bytes) -> pa.Array:
    """Names from the lines above line 1, each with its line feed and no other; `text` is all of them."""
    is_ended = pc.all(pc.ends_with(lines, b"\n")).as_py()
    if text.count(b"\n") != len(lines) or not is_ended or text.translate(None, USUAL):
        raise _UnusualError
    names = trimmed(pc.replace_substring_regex(lines.cast(pa.string()), "^0 ", ""))
    if not are_short(names):
        raise _UnusualError
    return names


def _classifications(letters: ByteArray) -> pa.Array:
    """Column 8 of the first lines; null where it is blank."""
    ends = np.arange(len(letters) + 1, dtype=np.int32)
    text = pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(letters)))
    return trimmed(text)


def _designators(field: ByteArray) -> pa.Array:
    """`98067A` as `1998-067A`; another text is kept as it is."""
    digits = field[:, :5]
    is_usual = ((digits >= ord("0")) & (digits <= ord("9"))).all(axis=1) & (field[:, 5] != ord(" "))
    is_usual &= ((field[:, 6] != ord(" ")) | (field[:, 7] == ord(" "))) & (field >= ord(" ")).all(axis=1)
    text = np.empty((len(field), 11), np.uint8)
    is_of_1900 = (field[:, 0] - ord("0")) * 10 + (field[:, 1] - ord("0")) >= PIVOT_YEAR
    text[:, :2] = np.where(is_of_1900[:, None], *(np.frombuffer(each, np.uint8) for each in (b"19", b"20")))
    text[:, 2:4], text[:, 4], text[:, 5:] = field[:, :2], ord("-"), field[:, 2:]
    is_kept = text != ord(" ")
    ends = np.zeros(len(field) + 1, np.int32)
    np.cumsum(is_kept.sum(axis=1), out=ends[1:])
    found = pa.StringArray.from_buffers(len(field), pa.py_buffer(ends), pa.py_buffer(text[is_kept]))
    others = [designator(row.tobytes().decode()) for row in field[~is_usual]]
    return pc.replace_with_mask(found, pa.array(~is_usual), pa.array(others, pa.string()))


def _columns(one: ByteArray, two: ByteArray, characters: ByteArray) -> dict[str, Any]:
    for line in (one, two):
        _require(_checksums(line[:_IN_CHECKSUM]) == line[_IN_CHECKSUM])
    number_1, number_2 = characters[:, 2:7], characters[:, LINE_LENGTH + 3 : LINE_LENGTH + 8]
    _require((number_1 == number_2) & np.isin(one[62], (SGP4, _SPACE))[:, None])
    return {
        "norad_id": _catalogue_numbers(one[2:7], characters[:, 2]),
        "epoch_time_ns": _epochs_ns(one[18:32]),
        "mean_motion_rev_per_day": _decimal(two[52:63], 2),
        "eccentricity": _digits(two[26:33], may_be_blank=False) / 1e7,
        "inclination_deg": _decimal(two[8:16], 3),
        "raan_deg": _decimal(two[17:25], 3),
        "arg_of_pericenter_deg": _decimal(two[34:42], 3),
        "mean_anomaly_deg": _decimal(two[43:51], 3),
        "bstar_per_earth_radius": _exponential(one[53:61]),
        "mean_motion_dot_rev_per_day2": _signs(one[33]) * _decimal(one[34:43], 0),
        "mean_motion_ddot_rev_per_day3": _exponential(one[44:52]),
        "element_set_number": _digits(one[64:68]),
        "revolution_at_epoch": _digits(two[63:68]),
    }


def _require(is_usual: npt.NDArray[np.bool_]) -> None:
    if not is_usual.all():
        raise _UnusualError


def _checksums(line: ByteArray) -> npt.NDArray[np.int64]:
    value = np.where(line < _SPACE, line, line == _MINUS)
    return np.asarray(value.sum(axis=0, dtype=np.int64) % 10)


def _digits(field: ByteArray, *, may_be_blank: bool = True) -> npt.NDArray[np.int64]:
    """Integers of digits, blank to the left only; ``field`` holds (columns, n) classes."""
    _require(field <= _SPACE if may_be_blank else field < _SPACE)
    is_blank = field == _SPACE
    if is_blank.any():
        _require(is_blank[:-1] | ~is_blank[1:])
        field = np.where(is_blank, 0, field)
    value = np.zeros(field.shape[1], np.int64)
    for digit in field:
        value *= 10
        value += digit
    return value


def _decimal(field: ByteArray, point: int) -> npt.NDArray[np.float64]:
    """Numbers with a point at column ``point``, digits after it, and digits or blanks before it."""
    _require(field[point] == _POINT)
    decimals = len(field) - point - 1
    fraction = _digits(field[point + 1 :], may_be_blank=False)
    return np.asarray((_digits(field[:point]) * 10**decimals + fraction) / 10.0**decimals)


def _signs(column: ByteArray) -> npt.NDArray[np.float64]:
    _require((column >= _SPACE) & (column <= _PLUS))
    return np.where(column == _MINUS, -1.0, 1.0)


def _exponential(field: ByteArray) -> npt.NDArray[np.float64]:
    """` 28098-4` is 0.28098e-4: sign, five digits, sign and digit of the exponent."""
    mantissa = _digits(field[1:6], may_be_blank=False).astype(np.float64)
    exponent_sign = field[6]
    _require((exponent_sign == _MINUS) | (exponent_sign == _PLUS))
    exponent = _digits(field[7:8], may_be_blank=False) * np.where(exponent_sign == _MINUS, -1, 1) - 5
    value = np.where(
        exponent < 0, mantissa / 10.0 ** np.maximum(-exponent, 0), mantissa * 10.0 ** np.maximum(exponent, 0)
    )
    return np.asarray(_signs(field[0]) * value)


def _catalogue_numbers(field: ByteArray, first: ByteArray) -> npt.NDArray[np.int64]:
    """Numbers in Alpha-5, whose ``first`` characters may be letters."""
    thousands = _ALPHA[first]
    is_letter = thousands > 0
    _require(~is_letter | (field[1] != _SPACE))
    _require(field[4] != _SPACE)
    plain = np.vstack([np.where(is_letter, 0, field[0])[None], field[1:]]) if is_letter.any() else field
    return np.asarray(_digits(plain) + thousands * 10_000)


def _epochs_ns(field: ByteArray) -> npt.NDArray[np.int64]:
    """YYDDD.DDDDDDDD: a unit of the eighth decimal is 864,000 ns."""
    _require(field[5] == _POINT)
    year, day = _digits(field[:2], may_be_blank=False), _digits(field[2:5], may_be_blank=False)
    decimals = _digits(field[6:], may_be_blank=False)
    _require((day >= 1) & (day <= np.where(year % 4 == 0, 366, 365)))
    return np.asarray(_YEAR_STARTS_NS[year] + (day - 1) * DAY_NS + decimals * (DAY_NS // 10**8))

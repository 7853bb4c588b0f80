"""Two- and three-line sets read by columns: fixed positions of many lines at once, or nothing (`element_columns`).

A number of fixed width is an integer over a power of ten. Both are exact as doubles, so the quotient is the double
that is nearest to the text, as the careful path has it.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.element_columns import USUAL, Columns, are_within_limits, trimmed
from sda_platform.formats.element_set import SGP4_XP
from sda_platform.formats.tle import ALPHA_5, LINE_LENGTH, NS_PER_DAY, PIVOT_YEAR, designator, year_start_ns

ByteArray = npt.NDArray[np.uint8]
_BOTH: Final = 2 * LINE_LENGTH + 1
_LINE_FEED, _NOT_ASCII = 10, 128
_ZERO, _SPACE, _POINT, _MINUS, _PLUS = (ord(each) for each in "0 .-+")
_ALPHA: Final = np.full(256, -1, np.int64)
_ALPHA[[ord(each) for each in ALPHA_5]] = np.arange(10, 10 + len(ALPHA_5))


class _UnusualError(Exception):
    """A line that is left to the careful path."""


def read_tle_columns(payloads: Sequence[bytes], header: bytes = b"") -> Columns | None:
    """Columns of sets of two lines each, or three, by name as in ELEMENT_SCHEMA; None: not all are usual."""
    del header
    tails = b"".join([payload[-_BOTH:] for payload in payloads])
    if len(tails) != len(payloads) * _BOTH:
        return None
    names = [payload[:-_BOTH] for payload in payloads]
    name_text = b"".join(names)
    # A name ends in the only line feed before line 1; a set without one has nothing there.
    is_named = len(name_text) > 0
    if name_text.count(b"\n") != is_named * len(names) or name_text.translate(None, USUAL):
        return None
    if is_named and not all(name.endswith(b"\n") for name in names):
        return None
    both = np.frombuffer(tails, np.uint8).reshape(len(payloads), _BOTH)
    one, two = both[:, :LINE_LENGTH], both[:, LINE_LENGTH + 1 :]
    try:
        _require(
            (both[:, LINE_LENGTH] == _LINE_FEED) & ((both == _LINE_FEED).sum(axis=1) == 1) & (both < _NOT_ASCII).all(1)
        )
        columns = _columns(one, two)
    except _UnusualError:
        return None
    columns["international_designator"] = _designators(one[:, 9:17])
    if is_named:
        text = pc.replace_substring_regex(pa.array(names, pa.string()), "^0 ", "")
        columns["object_name"] = trimmed(text)
    return columns if are_within_limits(columns) else None


def _designators(field: ByteArray) -> list[str | None]:
    """`98067A` as `1998-067A`; another text is kept as it is."""
    digits = field[:, :5]
    is_usual = ((digits >= _ZERO) & (digits < _ZERO + 10)).all(axis=1) & (field[:, 5] != _SPACE)
    is_usual &= ((field[:, 6] != _SPACE) | (field[:, 7] == _SPACE)) & (field > _SPACE - 1).all(axis=1)
    year = (field[:, 0].astype(np.int64) - _ZERO) * 10 + field[:, 1] - _ZERO
    century = np.where(year[:, None] >= PIVOT_YEAR, *(np.frombuffer(each, np.uint8) for each in (b"19", b"20")))
    dash = np.full((len(field), 1), _MINUS, np.uint8)
    piece = np.where(field[:, 5:] == _SPACE, 0, field[:, 5:]).astype(np.uint8)  # numpy drops what is 0 at the end
    text = np.hstack([century.astype(np.uint8), field[:, :2], dash, field[:, 2:5], piece])
    found: list[str | None] = np.ascontiguousarray(text).view("S11")[:, 0].astype("U11").tolist()
    for row in np.flatnonzero(~is_usual).tolist():
        found[row] = designator(field[row].tobytes().decode().strip())
    return found


def _columns(one: ByteArray, two: ByteArray) -> dict[str, Any]:
    for lines in (one, two):
        _require(_checksums(lines) == lines[:, 68] - _ZERO)
    _require((one[:, 2:7] == two[:, 2:7]).all(axis=1) & (one[:, 62] != ord(str(SGP4_XP))))
    _digits(two[:, 63:68])
    return {
        "norad_id": _catalogue_numbers(one[:, 2:7]),
        "epoch_time_ns": _epochs_ns(one[:, 18:32]),
        "mean_motion_rev_per_day": _decimal(two[:, 52:63], 2),
        "eccentricity": _digits(two[:, 26:33], may_be_blank=False) / 1e7,
        "inclination_deg": _decimal(two[:, 8:16], 3),
        "raan_deg": _decimal(two[:, 17:25], 3),
        "arg_of_pericenter_deg": _decimal(two[:, 34:42], 3),
        "mean_anomaly_deg": _decimal(two[:, 43:51], 3),
        "bstar_per_earth_radius": _exponential(one[:, 53:61]),
        "mean_motion_dot_rev_per_day2": _signs(one[:, 33]) * _decimal(one[:, 34:43], 0),
        "mean_motion_ddot_rev_per_day3": _exponential(one[:, 44:52]),
        "element_set_number": _digits(one[:, 64:68]),
    }


def _require(is_usual: npt.NDArray[np.bool_]) -> None:
    if not is_usual.all():
        raise _UnusualError


def _checksums(lines: ByteArray) -> npt.NDArray[np.int64]:
    body = lines[:, :68]
    is_digit = (body >= _ZERO) & (body < _ZERO + 10)
    values = np.where(is_digit, body - _ZERO, body == _MINUS)
    return np.asarray(values.sum(axis=1, dtype=np.int64) % 10)


def _digits(field: ByteArray, *, may_be_blank: bool = True) -> npt.NDArray[np.int64]:
    """Integers of digits, blank to the left only."""
    is_blank = field == _SPACE
    _require(((field >= _ZERO) & (field < _ZERO + 10) | is_blank).all(axis=1))
    if field.shape[1] > 1:
        _require((is_blank[:, :-1] | ~is_blank[:, 1:]).all(axis=1))
    if not may_be_blank:
        _require(~is_blank[:, 0])
    values = np.where(is_blank, 0, field.astype(np.int64) - _ZERO)
    return np.asarray(values @ 10 ** np.arange(field.shape[1] - 1, -1, -1, dtype=np.int64))


def _decimal(field: ByteArray, point: int) -> npt.NDArray[np.float64]:
    """Numbers with a point at column ``point``, digits after it, and digits or blanks before it."""
    _require(field[:, point] == _POINT)
    decimals = field.shape[1] - point - 1
    fraction = _digits(field[:, point + 1 :], may_be_blank=False)
    whole = _digits(field[:, :point]) if point else np.zeros(len(field), np.int64)
    return np.asarray((whole * 10**decimals + fraction) / 10.0**decimals)


def _signs(column: ByteArray) -> npt.NDArray[np.float64]:
    _require((column == _SPACE) | (column == _MINUS) | (column == _PLUS))
    return np.where(column == _MINUS, -1.0, 1.0)


def _exponential(field: ByteArray) -> npt.NDArray[np.float64]:
    """` 28098-4` is 0.28098e-4: sign, five digits, sign and digit of the exponent."""
    mantissa = _digits(field[:, 1:6], may_be_blank=False).astype(np.float64)
    exponent_sign = field[:, 6]
    _require((exponent_sign == _MINUS) | (exponent_sign == _PLUS))
    exponent = _digits(field[:, 7:8], may_be_blank=False) * np.where(exponent_sign == _MINUS, -1, 1) - 5
    value = np.where(
        exponent < 0, mantissa / 10.0 ** np.maximum(-exponent, 0), mantissa * 10.0 ** np.maximum(exponent, 0)
    )
    return np.asarray(_signs(field[:, 0]) * value)


def _catalogue_numbers(field: ByteArray) -> npt.NDArray[np.int64]:
    letters = _ALPHA[field[:, 0]]
    is_letter = letters >= 0
    plain = np.where(is_letter[:, None], np.append(field[:, :1] * 0 + _ZERO, field[:, 1:], axis=1), field)
    _require(~is_letter | (field[:, 1] != _SPACE))
    _require(field[:, 4] != _SPACE)
    return np.asarray(_digits(plain) + np.where(is_letter, letters, 0) * 10_000)


def _epochs_ns(field: ByteArray) -> npt.NDArray[np.int64]:
    """YYDDD.DDDDDDDD: a unit of the eighth decimal is 864,000 ns."""
    _require(field[:, 5] == _POINT)
    year, day = _digits(field[:, :2], may_be_blank=False), _digits(field[:, 2:5], may_be_blank=False)
    decimals = _digits(field[:, 6:], may_be_blank=False)
    _require((day >= 1) & (day <= 366))
    starts_ns = np.array([year_start_ns(number) for number in range(100)], np.int64)
    return np.asarray(starts_ns[year] + (day - 1) * NS_PER_DAY + decimals * (NS_PER_DAY // 10**8))

"""Element sets as two or three lines. New systems read OMM: lines cannot hold every catalogue number."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from sda_platform.formats.designators import ALPHA_5
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.markings import REAL
from sda_platform.formats.tle import line_checksum

_MOST_PLAIN: Final = 99_999
MOST_ALPHA_5: Final = 339_999
"""The last catalogue number that five characters can hold: Z9999."""
_FIRST_YEAR, _LAST_YEAR = 1957, 2056


def encode_tles(element_sets: Iterable[ElementSet]) -> bytes:
    """Sets of two lines, below the name where there is one.

    Raises ValueError: a number, a name, an epoch or a data mode that the lines cannot hold.
    """
    return "".join(map(_set, element_sets)).encode()


def encode_alpha_5(norad_id: int) -> str:
    """A catalogue number in five characters: digits, or a letter (A = 10, without I and O) and four digits.

    Raises ValueError above 339,999.
    """
    if not 0 <= norad_id <= MOST_ALPHA_5:
        raise ValueError(f"NORAD_CAT_ID {norad_id} does not fit into a two-line set, at most {MOST_ALPHA_5} does")
    if norad_id <= _MOST_PLAIN:
        return f"{norad_id:05d}"
    return f"{ALPHA_5[norad_id // 10_000 - 10]}{norad_id % 10_000:04d}"


def _set(element: ElementSet) -> str:
    if element.data_mode not in (None, REAL):
        raise ValueError(
            f"object {element.norad_id}: two lines cannot state that a set is of data mode {element.data_mode}"
        )
    number = encode_alpha_5(element.norad_id)
    first = (
        f"1 {number}{(element.classification or 'U')[:1]} {_designator(element.international_designator):<8} "
        f"{_epoch(element)} {_derivative(element.mean_motion_dot_rev_per_day2 or 0.0)} "
        f"{_exponential(element.mean_motion_ddot_rev_per_day3 or 0.0)} "
        f"{_exponential(element.bstar_per_earth_radius)} 0 {(element.element_set_number or 0) % 10_000:4d}"
    )
    second = (
        f"2 {number} {element.inclination_deg % 360:8.4f} {_angle(element.raan_deg)} {_eccentricity(element)} "
        f"{_angle(element.arg_of_pericenter_deg)} {_angle(element.mean_anomaly_deg)} "
        f"{element.mean_motion_rev_per_day:11.8f}{(element.revolution_at_epoch or 0) % 100_000:5d}"
    )
    name = _name(element)
    return "".join(f"{line}\n" for line in ([name] if name else [])) + "".join(
        f"{line}{line_checksum(line)}\n" for line in (first, second)
    )


def _name(element: ElementSet) -> str:
    name = (element.object_name or "").strip()
    if len(name.splitlines()) > 1 or name.startswith("#"):
        raise ValueError(f"object {element.norad_id}: its name {name!r} cannot be the name line of a set")
    # The mark of a name line, where other programs would take it for an element line.
    return f"0 {name}" if name.startswith(("1 ", "2 ")) else name


def _designator(text: str | None) -> str:
    """`1998-067A` as `98067A`."""
    if not text:
        return ""
    year, hyphen, piece = text.partition("-")
    short = year[2:] + piece if hyphen and year.isdigit() and len(year) == 4 else text
    if len(short) > 8 or not short.isascii():
        raise ValueError(f"OBJECT_ID {text!r} does not fit into the eight columns of a two-line set")
    return short


def _epoch(element: ElementSet) -> str:
    """YYDDD.DDDDDDDD, rounded to the unit of the eighth decimal, 864 µs."""
    units = round(element.epoch_time_ns / 864_000)
    days, fraction = divmod(units, 10**8)
    moment = datetime.fromtimestamp(days * 86_400, UTC)
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"object {element.norad_id}: a two-line set cannot hold an epoch in {moment.year}")
    return f"{moment:%y%j}.{fraction:08d}"


def _angle(value_deg: float) -> str:
    return f"{round(value_deg % 360, 4) % 360:8.4f}"


def _eccentricity(element: ElementSet) -> str:
    return f"{min(round(element.eccentricity * 1e7), 9_999_999):07d}"


def _derivative(value: float) -> str:
    """` .00000023`: ten columns, a sign and eight decimals."""
    digits = f"{abs(value):.8f}"
    if not digits.startswith("0"):
        raise ValueError(f"MEAN_MOTION_DOT {value!r} does not fit into a two-line set, must be below 1")
    return ("-" if value < 0 else " ") + digits[1:]


def _exponential(value: float) -> str:
    """` 28098-4` for 0.28098e-4: eight columns, five digits and an exponent of one."""
    if value == 0:
        return " 00000-0"
    mantissa, exponent = f"{abs(value):.4e}".split("e")
    power = int(exponent) + 1
    if power < -9:
        return " 00000-0"
    if power > 9:
        raise ValueError(f"{value!r} does not fit into the eight columns of a two-line set")
    return f"{'-' if value < 0 else ' '}{mantissa.replace('.', '')}{'-' if power <= 0 else '+'}{abs(power)}"

"""Two-line element sets, with or without a name line, ids in Alpha-5: text to `ElementSet`.

Layout and checksum as in Space-Track's format description. `tle_writing` writes them.
"""

import re
from datetime import UTC, datetime
from typing import Final

from sda_platform.formats.designators import ALPHA_5, alpha_5_number
from sda_platform.formats.element_set import ElementSet, require_sgp4
from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import column_text, finite
from sda_platform.formats.records import RawRecord
from sda_platform.units import DAY_NS

LINE_LENGTH: Final = 69
PIVOT_YEAR: Final = 57


# Sign, digits with blanks for leading zeros, sign and digit of the exponent; some write their own point.
_EXPONENTIAL: Final = re.compile(r"([ +-])(?=.{5}(?:[+-][\d ]| [\d ])$)([ \d]*[+-]?[ \d]*)([+ -][\d ])")
_EXPONENTIAL_WITH_POINT: Final = re.compile(r"([ +-]*)\.(\d+)([+-]\d|)")


def read_tle(record: RawRecord) -> ElementSet:
    """Return the lines of one set, separated by line feeds; raises RecordError. Columns past 69 are not read."""
    try:
        lines = record.payload.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RecordError("bad_field", f"not text in UTF-8: {error}") from error
    if len(lines) not in (2, 3):
        raise RecordError("torn_record", f"{len(lines)} lines, a set has 2 or 3")
    first, second = (_checked_line(line, number) for number, line in enumerate(lines[-2:], start=1))
    if first[2:7] != second[2:7]:
        raise RecordError("bad_field", f"line 1 is of object {first[2:7]}, line 2 of {second[2:7]}")
    require_sgp4(_integer(first[62].strip() or "0", "ephemeris type"), "ephemeris type")
    return ElementSet(
        norad_id=decode_alpha_5(first[2:7]),
        object_name=_name(lines[0]) if len(lines) == 3 else None,
        international_designator=designator(first[9:17]),
        epoch_time_ns=_epoch_ns(first[18:32]),
        mean_motion_rev_per_day=_number(second[52:63], "mean motion"),
        eccentricity=_number(_fraction(second[26:33]), "eccentricity"),
        inclination_deg=_number(second[8:16], "inclination"),
        raan_deg=_number(second[17:25], "right ascension of the node"),
        arg_of_pericenter_deg=_number(second[34:42], "argument of perigee"),
        mean_anomaly_deg=_number(second[43:51], "mean anomaly"),
        bstar_per_earth_radius=_exponential(first[53:61], "B*"),
        mean_motion_dot_rev_per_day2=_number(_padded(first[33:43]) or "0", "mean motion derivative"),
        mean_motion_ddot_rev_per_day3=_exponential(first[44:52], "mean motion second derivative"),
        element_set_number=_integer(first[64:68].strip() or "0", "element set number"),
        classification=first[7].strip() or None,
        revolution_at_epoch=_integer(second[63:68].strip() or "0", "revolution number"),
    )


def decode_alpha_5(field: str) -> int:
    """A catalogue number of up to 5 characters, the first perhaps a letter (10 to 33); RecordError."""
    text = field.strip()
    if text and text[0] in ALPHA_5:
        return alpha_5_number(text[0], _integer(text[1:], "catalogue number"))
    return _integer(text, "catalogue number")


def line_checksum(line: str) -> int:
    """Modulo-10 checksum of the first 68 columns: digits at their value, minus signs as 1."""
    return sum(int(c) if c in "0123456789" else c == "-" for c in line[:68]) % 10


def _checked_line(line: str, number: int) -> str:
    if len(line) < LINE_LENGTH:
        raise RecordError("bad_length", f"line {number} has {len(line)} columns, must have {LINE_LENGTH}")
    if not line.isascii():
        raise RecordError("bad_field", f"line {number} has characters that are not ASCII")
    if line[68] != str(line_checksum(line)):
        text = f"line {number} ends in checksum {line[68]!r}, its columns give {line_checksum(line)}"
        raise RecordError("bad_checksum", text)
    return line


def _name(line: str) -> str | None:
    return column_text(line.removeprefix("0 ").strip().removeprefix("0 "), "name") or None


def designator(field: str) -> str | None:
    """`98067A` as `1998-067A`, the OMM's form; other text is kept as it is. Blanks before digits are zeros."""
    year, launch, piece = field[:2].lstrip(), field[2:5].lstrip(), field[5:].strip()
    if not (year.isdigit() and launch.isdigit()):
        return field.strip() or None
    number = int(year)
    return f"{1900 + number if number >= PIVOT_YEAR else 2000 + number}-{int(launch):03d}{piece}"


def _fraction(field: str) -> str:
    """Digits after an implied point; blanks among them are zeros."""
    return "." + field.replace(" ", "0") if field.strip() else ""


def _padded(field: str) -> str:
    """A number whose point is given, with blanks around the sign; blanks after the point are zeros."""
    whole, point, decimals = field.partition(".")
    return whole.replace(" ", "") + point + decimals.replace(" ", "0")


def _epoch_ns(field: str) -> int:
    """YYDDD.DDDDDDDD exactly: a unit of the eighth decimal is 864,000 ns."""
    whole, _, fraction = field.rstrip().replace(" ", "0").partition(".")
    year, day = _integer(whole[:-3], "epoch year"), _integer(whole[-3:], "epoch day")
    decimals = _integer(fraction[:8].ljust(8, "0"), "epoch day fraction")
    if not (0 <= year <= 99 and 1 <= day <= _days_of(year)):
        raise RecordError("out_of_range", f"epoch {field!r} is no year and day of the year")
    return year_start_ns(year) + (day - 1) * DAY_NS + decimals * (DAY_NS // 10**8)


def _days_of(year: int) -> int:
    """Return the days of a year of two digits; 1957 to 2056 has no year without its leap day."""
    return 366 if year % 4 == 0 else 365


def year_start_ns(year: int) -> int:
    """Unix time in ns of the beginning of a year of two digits: 57 to 99 are of the 20th century."""
    start = datetime(1900 + year if year >= PIVOT_YEAR else 2000 + year, 1, 1, tzinfo=UTC)
    return int(start.timestamp()) * 1_000_000_000


def _exponential(field: str, name: str) -> float:
    """` 28098-4` is 0.28098e-4: sign, five digits after an implied point, exponent. Blanks among digits are zeros."""
    if not field.strip():
        return 0.0
    # Some leave the column of the sign out, and end a column early.
    columns = f" {field[:-1]}" if field[0].isdigit() and field[-1] == " " else field
    found = _EXPONENTIAL.fullmatch(columns) or _EXPONENTIAL_WITH_POINT.fullmatch(field.strip())
    if found is None:
        raise RecordError("bad_field", f"{name} is {field!r}, must be like ' 28098-4'")
    before, digits, exponent = found.groups()
    # A sign within the blanks has the place of a zero.
    sign = "-" if "-" in before + digits else ""
    mantissa = "".join("0" if each in " +-" else each for each in digits)
    return _number(f"{sign}0.{mantissa}e{exponent.replace(' ', '0') or 0}", name)


def _number(text: str, name: str) -> float:
    return finite(text.strip() or "absent", name)


def _integer(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise RecordError("bad_field", f"{name} is {text!r}, must be digits")
    return int(text)

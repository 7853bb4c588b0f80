"""Orbit Mean-elements Messages as CelesTrak and Space-Track publish them: one record's fields by keyword.

Reads a CSV line or a JSON object (numbers or numbers as text) into an `ElementSet`; writes the CelesTrak CSV
of 17 columns. Knows the keywords and the number formats (CCSDS 502.0), not the physical limits.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, finite, json_object

OMM_CSV_COLUMNS: Final[tuple[str, ...]] = (
    "OBJECT_NAME",
    "OBJECT_ID",
    "EPOCH",
    "MEAN_MOTION",
    "ECCENTRICITY",
    "INCLINATION",
    "RA_OF_ASC_NODE",
    "ARG_OF_PERICENTER",
    "MEAN_ANOMALY",
    "EPHEMERIS_TYPE",
    "CLASSIFICATION_TYPE",
    "NORAD_CAT_ID",
    "ELEMENT_SET_NO",
    "REV_AT_EPOCH",
    "BSTAR",
    "MEAN_MOTION_DOT",
    "MEAN_MOTION_DDOT",
)
_ONLY: Final = (
    ("TIME_SYSTEM", ("UTC",)),
    ("REF_FRAME", ("TEME",)),
    # Of the theories that the standard lists, the first two are the one that SGP4 reads.
    ("MEAN_ELEMENT_THEORY", ("SGP4", "SGP/SGP4")),
)
_SGP4_XP: Final = 4
_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ElementSet:
    """One SGP4 mean element set, TEME and UTC; fields are the columns of ELEMENT_SCHEMA.

    `mean_motion_dot_rev_per_day2` and `mean_motion_ddot_rev_per_day3` are as published (in practice the
    halved and sixthed derivatives of the two-line format); SGP4 does not use them.
    """

    norad_id: int
    object_name: str | None
    international_designator: str | None
    epoch_time_ns: int
    mean_motion_rev_per_day: float
    eccentricity: float
    inclination_deg: float
    raan_deg: float
    arg_of_pericenter_deg: float
    mean_anomaly_deg: float
    bstar_per_earth_radius: float
    mean_motion_dot_rev_per_day2: float | None = None
    mean_motion_ddot_rev_per_day3: float | None = None
    element_set_number: int | None = None
    originator: str | None = None


def parse_omm_csv_header(line: bytes) -> list[str]:
    """The keywords of a CSV header line; none where it cannot be read, so every line then fails."""
    try:
        text = line.decode("utf-8").removeprefix("\ufeff")
        return [name.strip() for name in next(csv.reader([text]), [])]
    except (UnicodeDecodeError, csv.Error):
        return []


def parse_omm_csv_line(header: Sequence[str], payload: bytes) -> ElementSet:
    """One CSV line under `header`; raises RecordError."""
    try:
        line = payload.decode("utf-8")
        row = next(csv.reader([line]), []) if '"' in line else line.split(",")
    except (UnicodeDecodeError, csv.Error) as error:
        raise RecordError("bad_field", f"not a line of CSV in UTF-8: {str(error)[:200]}") from error
    if len(row) != len(header):
        raise RecordError("bad_length", f"line has {len(row)} fields, its header has {len(header)}")
    return element_set(dict(zip(header, row, strict=True)))


def parse_omm_json_object(payload: bytes) -> ElementSet:
    """One JSON object with OMM keywords; raises RecordError."""
    return element_set(json_object(payload))


def element_set(fields: Mapping[str, Any]) -> ElementSet:
    """An ElementSet from values by OMM keyword, each text or number; RecordError names the keyword."""
    for keyword, allowed in _ONLY:
        if fields.get(keyword) not in (*allowed, "", None):
            raise RecordError(
                "out_of_range", f"{keyword} is {ascii(fields[keyword])[:80]}, only {allowed[0]} can be used"
            )
    if _optional_int(fields, "EPHEMERIS_TYPE") == _SGP4_XP:
        raise RecordError("out_of_range", "EPHEMERIS_TYPE is 4 (SGP4-XP), which SGP4 cannot propagate")
    return ElementSet(
        norad_id=_int(_present(fields, "NORAD_CAT_ID"), "NORAD_CAT_ID"),
        object_name=_optional_text(fields, "OBJECT_NAME"),
        international_designator=_optional_text(fields, "OBJECT_ID"),
        epoch_time_ns=parse_epoch_ns(_present(fields, "EPOCH")),
        mean_motion_rev_per_day=_number(fields, "MEAN_MOTION"),
        eccentricity=_number(fields, "ECCENTRICITY"),
        inclination_deg=_number(fields, "INCLINATION"),
        raan_deg=_number(fields, "RA_OF_ASC_NODE"),
        arg_of_pericenter_deg=_number(fields, "ARG_OF_PERICENTER"),
        mean_anomaly_deg=_number(fields, "MEAN_ANOMALY"),
        bstar_per_earth_radius=_number(fields, "BSTAR"),
        mean_motion_dot_rev_per_day2=_optional_number(fields, "MEAN_MOTION_DOT"),
        mean_motion_ddot_rev_per_day3=_optional_number(fields, "MEAN_MOTION_DDOT"),
        element_set_number=_optional_int(fields, "ELEMENT_SET_NO"),
        originator=_optional_text(fields, "ORIGINATOR"),
    )


def parse_epoch_ns(text: object, keyword: str = "EPOCH") -> int:
    """Unix time in ns of an ISO 8601 instant, by month and day or by day of year; UTC without an offset.

    Digits past 1 ns are cut.
    """
    if not isinstance(text, str):
        raise RecordError("bad_field", f"{keyword} is {ascii(text)[:80]}, must be text")
    whole, _, fraction = text.strip().removesuffix("Z").partition(".")
    try:
        if fraction and not (fraction.isascii() and fraction.isdigit()):
            raise ValueError
        moment = _by_day_of_year(whole) if whole[8:9] == "T" else datetime.fromisoformat(whole)
        if moment.microsecond:
            raise ValueError
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp()) * _NS + int(fraction[:9].ljust(9, "0") if fraction else 0)
    except (ValueError, OverflowError):
        raise RecordError(
            "bad_field", f"{keyword} is {ascii(text)[:80]}, must be like 2024-11-01T00:00:00.000000"
        ) from None


def _by_day_of_year(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%jT%H:%M:%S").replace(tzinfo=UTC)


def format_epoch(time_ns: int) -> str:
    """ISO 8601 with microseconds (nanoseconds where needed) and no offset, as OMM writes UTC."""
    seconds, fraction = divmod(time_ns, _NS)
    digits = f"{fraction // 1000:06d}" if fraction % 1000 == 0 else f"{fraction:09d}"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{digits}"


def encode_omm_csv(element_sets: Iterable[ElementSet]) -> bytes:
    """A segment in CelesTrak's 17 columns, and the originator where one is known; floats keep every digit.

    Raises ValueError: line break in a name.
    """
    sets = list(element_sets)
    header, lines = ",".join(OMM_CSV_COLUMNS), [_csv_line(element) for element in sets]
    if any(element.originator for element in sets):
        header += ",ORIGINATOR"
        lines = [f"{line},{_quoted(e.originator or '')}" for line, e in zip(lines, sets, strict=True)]
    lines.insert(0, header)
    return ("\r\n".join(lines) + "\r\n").encode()


def _csv_line(element: ElementSet) -> str:
    dot, ddot = element.mean_motion_dot_rev_per_day2, element.mean_motion_ddot_rev_per_day3
    fields = (
        _quoted(element.object_name or ""),
        _quoted(element.international_designator or ""),
        format_epoch(element.epoch_time_ns),
        repr(element.mean_motion_rev_per_day),
        repr(element.eccentricity),
        repr(element.inclination_deg),
        repr(element.raan_deg),
        repr(element.arg_of_pericenter_deg),
        repr(element.mean_anomaly_deg),
        "0",
        "U",
        str(element.norad_id),
        "" if element.element_set_number is None else str(element.element_set_number),
        "",
        repr(element.bstar_per_earth_radius),
        "" if dot is None else repr(dot),
        "" if ddot is None else repr(ddot),
    )
    return ",".join(fields)


def _quoted(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError(f"a record is one line, {text!r} has a line break")
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _present(fields: Mapping[str, Any], keyword: str) -> Any:
    value = fields.get(keyword)
    if value is None or value == "":
        raise RecordError("missing_field", f"{keyword} is missing")
    return value


def _number(fields: Mapping[str, Any], keyword: str) -> float:
    value = _present(fields, keyword)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be a number")
    return finite(value, keyword)


def _optional_number(fields: Mapping[str, Any], keyword: str) -> float | None:
    return None if fields.get(keyword) in (None, "") else _number(fields, keyword)


def _int(value: object, keyword: str) -> int:
    try:
        if isinstance(value, str):
            value = int(value) if value.isascii() and "_" not in value else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
    except ValueError:
        raise RecordError("bad_field", f"{keyword} is {_shown(value)}, must be an integer") from None
    if not -(2**53) <= value <= 2**53:
        raise RecordError("out_of_range", f"{keyword} is {_shown(value)}, too large for an integer here")
    return value


def _shown(value: object) -> str:
    return ascii(value)[:80] if isinstance(value, str) or not isinstance(value, int) else hex(value)[:80]


def _optional_int(fields: Mapping[str, Any], keyword: str) -> int | None:
    value = fields.get(keyword)
    return None if value is None or value == "" else _int(value, keyword)


def _optional_text(fields: Mapping[str, Any], keyword: str) -> str | None:
    value = fields.get(keyword)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise RecordError("bad_field", f"{keyword} is {ascii(value)[:80]}, must be text")
    return encodable(value.strip(), keyword) or None

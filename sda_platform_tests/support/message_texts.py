"""A message of each kind as text, and what reading a text finds in it or refuses."""

from pathlib import Path
from typing import Any

from sda_platform.formats.conversion import converted
from sda_platform.formats.cutting import split_records
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.registry import known_format
from sda_platform.formats.text import as_text

FIELD = Path(__file__).parents[1] / "data" / "field"
KVN = {
    "omm": (FIELD / "024-lower-case-omm-kvn.kvn").read_text(),
    "oem": (FIELD / "052-oem-covariance-tnw.oem").read_text(),
    "tdm": (FIELD / "066-tdm-epoch-digits.tdm").read_text(),
    "cdm": (FIELD / "057-cdm-kilometres-relabelled.cdm").read_text(),
    "opm": (Path(__file__).parents[1] / "data" / "messages" / "ccsds" / "opm_g4.kvn").read_text(),
}
XML = {kind: converted(text.encode(), f"{kind}-kvn", f"{kind}-xml").data.decode() for kind, text in KVN.items()}
FIRST, SECOND = as_text((FIELD / "015-bom-2le.tle").read_bytes()).decode().splitlines()


def errors_of(text: str | bytes, name: str) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    records = list(split_records(data, name))
    _, errors = read_records(records, name, known_format(name).zone)
    return [error_text(records[row], error) or "" for row, error in sorted(errors.items())] if records else ["none"]


def values_of(text: str, name: str) -> Any:
    return read_records(list(split_records(text.encode(), name)), name, known_format(name).zone)[0]

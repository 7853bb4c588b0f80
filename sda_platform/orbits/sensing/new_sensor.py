"""Adding a sensor to a list of sensors, which begins as a copy of the shipped one."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from sda_platform.formats.listings import ListingError
from sda_platform.orbits.sensing.sensors import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Sensor,
    listed_sensors,
    sensor_in,
    shipped_list,
)

_ALL = (*COLUMNS, *OPTIONAL_COLUMNS)
# A spreadsheet would compute what begins with a sign of a formula.
_PLAIN = re.compile(r"(?![=+@])[^,\"\x00-\x1f\x7f]*")


def with_sensor(path: Path, source_id: str, stated: Mapping[str, str], like: str = "") -> tuple[Sensor, str]:
    """Return a new sensor, and the text of the list at ``path`` with it.

    ``stated`` has the text of columns, as in the list. Coverage and noise that it lacks are those of the listed sensor
    ``like``. The lines of the others stay as they are. Raises ListingError with the reason.
    """
    old = path.read_text(encoding="utf-8-sig") if path.exists() else shipped_list()
    known = listed_sensors(str(path) if path.exists() else "")
    header, *rows = [row for row in csv.reader(io.StringIO(old)) if row]
    if unknown := sorted({*stated} - {*_ALL}):
        raise ListingError(f"{unknown[0]!r} is no column of a list of sensors: {', '.join(_ALL)}")
    if source_id in known:
        raise ListingError(f"{path}: lists {source_id} already; edit its line")
    if like and like not in known:
        raise ListingError(f"{like!r} is not in the list: {', '.join(known)}")
    kind = source_id.partition("-")[0]
    if like and known[like].kind != kind:
        raise ListingError(f"{source_id} is of another kind than {like}")
    template = next((dict(zip(header, row, strict=True)) for row in rows if row[0].strip() == like), {})
    site = dict.fromkeys(("latitude_deg", "longitude_deg", "altitude_m"), "")
    fields = {**template, **site, "name": source_id, "kind": kind, **stated, "source_id": source_id}
    try:
        _, sensor = sensor_in([fields.get(column, "") for column in _ALL])
    except ValueError as error:
        raise ListingError(f"{source_id}: {error}") from None
    if odd := [value for value in fields.values() if not _PLAIN.fullmatch(value)]:
        raise ListingError(
            f"{source_id}: {odd[0]!r} cannot stand in a list: no comma, quote, control character or formula"
        )
    more = [column for column in OPTIONAL_COLUMNS if fields.get(column) and column not in header]
    lines = [line + "," * len(more) for line in re.split(r"\r\n|\r|\n", old) if line.strip()]
    lines[0] = ",".join([*header, *more])
    lines.append(",".join(fields.get(column, "") for column in (*header, *more)))
    return sensor, "\n".join(lines) + "\n"

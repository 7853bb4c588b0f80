"""Adding a sensor to a list of sensors, which begins as a copy of the shipped one."""

import csv
import io
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


def with_sensor(path: Path, source_id: str, stated: Mapping[str, str], like: str = "") -> tuple[Sensor, str]:
    """Return a new sensor, and the text of the list at ``path`` with it.

    ``stated`` has the text of columns, as in the list. Coverage and noise that it lacks are those of the listed sensor
    ``like``. Raises ListingError with the reason.
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
    header = [*header, *(column for column in OPTIONAL_COLUMNS if fields.get(column) and column not in header)]
    text = io.StringIO()
    writer = csv.DictWriter(text, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*(dict(zip(header, row, strict=False)) for row in rows), fields])
    return sensor, text.getvalue()

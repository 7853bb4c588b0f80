"""The screening volumes of each regime of orbit, from a CSV file: the shipped one or a user's."""

import csv
from pathlib import Path

from sda_platform.orbits.screening.volumes import REGIMES, Volume

STANDARD = "standard"
_SHAPES = ("box", "ellipsoid")
_COLUMNS = ("regime", "shape", "radial_km", "in_track_km", "cross_track_km")


class VolumesError(ValueError):
    """A file of volumes that cannot be used; the text names the file, the line and what is wrong."""


def screening_volumes(source: str) -> dict[str, Volume]:
    """The volume of each regime from the CSV ``source``, or from the shipped one where it is `STANDARD`.

    A line a regime: its name, `box` or `ellipsoid`, and half-axes in km. Orbits of a regime that has no line are not
    screened as primaries.

    Raises:
        VolumesError: the file cannot be read or breaks that form.
    """
    path = Path(__file__).with_name("volumes.csv") if source == STANDARD else Path(source)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            rows = [(f"{path} line {reader.line_num}", row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise VolumesError(f"cannot read the screening volumes {path}: {error}") from error
    if not rows or tuple(rows[0][1]) != _COLUMNS:
        found = ",".join(rows[0][1]) if rows else ""
        raise VolumesError(f"{path}: header is {found!r}, expected {','.join(_COLUMNS)!r}")
    volumes = {}
    for where, row in rows[1:]:
        regime, volume = _line(row, where)
        if regime in volumes:
            raise VolumesError(f"{where}: regime {regime} occurs twice")
        volumes[regime] = volume
    if not volumes:
        raise VolumesError(f"{path}: lists no regime")
    return volumes


def _line(row: list[str], where: str) -> tuple[str, Volume]:
    if len(row) != len(_COLUMNS):
        raise VolumesError(f"{where}: {len(row)} fields, expected {len(_COLUMNS)} ({','.join(_COLUMNS)})")
    regime, shape, *axes = (field.strip() for field in row)
    if regime not in REGIMES:
        raise VolumesError(f"{where}: regime is {regime!r}, must be one of {', '.join(REGIMES)}")
    if shape not in _SHAPES:
        raise VolumesError(f"{where}: shape is {shape!r}, must be {' or '.join(_SHAPES)}")
    try:
        return regime, Volume("box" if shape == "box" else "ellipsoid", *(float(axis) for axis in axes))
    except ValueError as error:
        raise VolumesError(f"{where}: {error}") from None

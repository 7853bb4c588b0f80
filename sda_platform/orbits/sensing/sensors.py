"""The ground sensors: site, coverage and measurement noise of each (``sensors.csv`` lists the ones shipped).

Positions are approximate public locations of real sites; coverage and noise are representative figures of their
class, not of the site. Inter-satellite links are not ground sensors and are not listed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.listings import read_listing

_KINDS = ("radar", "optical")
_MOST_BEAMS = 100
_SHIPPED = resources.files("sda_platform.orbits.sensing") / "sensors.csv"
_NEEDED_SIGMAS = {
    "radar": ("azimuth_sigma_rad", "elevation_sigma_rad", "range_sigma_m"),
    "optical": ("angle_sigma_rad",),
}


@dataclasses.dataclass(frozen=True)
class Sensor:
    """One ground sensor; a noise figure (1 sigma) that does not apply to its kind is NaN.

    The last three state what its angles refer to where a record does not (`formats.angle_references`).
    """

    source_id: str
    kind: str
    name: str
    latitude_deg: float
    longitude_deg: float
    altitude_m: float
    min_elevation_deg: float
    max_range_km: float
    azimuth_sigma_rad: float
    elevation_sigma_rad: float
    range_sigma_m: float
    range_rate_sigma_m_s: float
    angle_sigma_rad: float
    # Absent from the text of a sensor that states none, whose hash older commits record.
    angle_frame: str = dataclasses.field(default="", repr=False)
    angle_aberration: str = dataclasses.field(default="", repr=False)
    angle_refraction: str = dataclasses.field(default="", repr=False)
    beams: int = dataclasses.field(default=1, repr=False)
    """How many objects a phased array observes at a time; 1 for a dish or a telescope."""


OPTIONAL_COLUMNS = (*ANGLE_REFERENCES, "beams")
COLUMNS = tuple(field.name for field in dataclasses.fields(Sensor) if field.name not in OPTIONAL_COLUMNS)
"""The header of a sensor list, which may go on with OPTIONAL_COLUMNS."""
_TEXT_COLUMNS = frozenset({"source_id", "kind", "name", *ANGLE_REFERENCES})


class SensorNetwork(Mapping[str, Sensor]):
    """Ground sensors by ``source_id`` (``radar-<array id>``, ``optical-<site id>``), in file order; hashable."""

    def __init__(self, sensors: Iterable[Sensor]) -> None:
        self._sensors = {sensor.source_id: sensor for sensor in sensors}
        stated = [(s.source_id, stated) for s in self._sensors.values() if (stated := _stated(s))]
        self._identity = repr(tuple(self._sensors.values())) + (repr(stated) if stated else "")

    def __getitem__(self, source_id: str) -> Sensor:
        return self._sensors[source_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sensors)

    def __len__(self) -> int:
        return len(self._sensors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SensorNetwork) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"SensorNetwork({self._identity})"

    def of_kind(self, kind: str) -> list[Sensor]:
        """Return the radars (``radar``) or telescopes (``optical``), in file order."""
        return [sensor for sensor in self._sensors.values() if sensor.kind == kind]


def sensor_network(path: Path) -> SensorNetwork:
    """Return the sensors of a CSV with the header COLUMNS; a noise figure that does not apply is left empty.

    Raises:
        ListingError: the file cannot be read, or a line is not a sensor; the text names file, line and reason.
    """
    return SensorNetwork(read_listing(path, COLUMNS, sensor_in, OPTIONAL_COLUMNS).values())


def listed_sensors(file: str) -> SensorNetwork:
    """Return the ground sensors that ``file`` lists; without one, those that the package ships. Raises ListingError."""
    return sensor_network(Path(file)) if file else sensor_registry()


def references_of(sensor: Sensor) -> dict[str, str]:
    """Name the reference of the sensor's angles, one of ANGLE_REFERENCES; "" where the list does not state it."""
    return {name: getattr(sensor, name) for name in ANGLE_REFERENCES}


def _stated(sensor: Sensor) -> dict[str, Any]:
    """Return what the list states in the optional columns, if anything."""
    references = references_of(sensor)
    stated: dict[str, Any] = references if any(references.values()) else {}
    return stated | ({"beams": sensor.beams} if sensor.beams > 1 else {})


@cache
def sensor_registry() -> SensorNetwork:
    """Return the ground sensors that the package ships."""
    with resources.as_file(_SHIPPED) as path:
        return sensor_network(path)


def shipped_list() -> str:
    """Return the text of the list that the package ships."""
    return _SHIPPED.read_text(encoding="utf-8")


def sensor_in(fields: Sequence[str]) -> tuple[str, Sensor]:
    """Return the sensor of a line, with the text of all columns, and its ``source_id``. Raises ValueError."""
    text = dict(zip((*COLUMNS, *OPTIONAL_COLUMNS), fields, strict=True))
    beams = text.pop("beams") or "1"
    values: dict[str, Any] = {
        name: value if name in _TEXT_COLUMNS else _number(name, value) for name, value in text.items()
    }
    if not (beams.isascii() and beams.isdigit() and 1 <= int(beams) <= _MOST_BEAMS):
        raise ValueError(f"beams is {beams!r}, must be a whole number from 1 to {_MOST_BEAMS}")
    sensor = Sensor(**values, beams=int(beams))
    if sensor.kind == "optical" and sensor.beams > 1:
        raise ValueError(f"beams is {beams!r}, must be empty for a telescope")
    if sensor.kind not in _KINDS:
        raise ValueError(f"kind is {sensor.kind!r}, must be {' or '.join(_KINDS)}")
    if not sensor.source_id.startswith(f"{sensor.kind}-"):
        raise ValueError(f"source_id is {sensor.source_id!r}, must begin with {sensor.kind}-")
    _require(sensor, "latitude_deg", -90.0, 90.0)
    _require(sensor, "longitude_deg", -180.0, 360.0)
    _require(sensor, "altitude_m", -500.0, 9_000.0)
    _require(sensor, "min_elevation_deg", -5.0, 90.0)
    _require(sensor, "max_range_km", 1.0, 1e6)
    for name in _NEEDED_SIGMAS[sensor.kind]:
        if not getattr(sensor, name) > 0:
            raise ValueError(f"{name} is {text[name]!r}, must be a positive number")
    for name, value in references_of(sensor).items():
        if value and sensor.kind == "radar" and name != "angle_refraction":
            raise ValueError(f"{name} is {value!r}, must be empty for a radar")
        if value and value not in ANGLE_REFERENCES[name]:
            raise ValueError(f"{name} is {value!r}, must be one of {', '.join(ANGLE_REFERENCES[name])}")
    return sensor.source_id, sensor


def _number(name: str, value: str) -> float:
    try:
        return float(value or "nan")
    except ValueError:
        raise ValueError(f"{name} is {value!r}, must be a number") from None


def _require(sensor: Sensor, name: str, least: float, most: float) -> None:
    value = getattr(sensor, name)
    if not (np.isfinite(value) and least <= value <= most):
        stated = "empty" if np.isnan(value) else f"{value:g}"
        raise ValueError(f"{name} is {stated}, must be from {least:g} to {most:g}")

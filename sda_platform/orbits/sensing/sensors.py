"""The ground sensors: where they stand, what they reach and how well they measure (``sensors.csv``).

Positions are approximate public locations of real sites; reach and noise are representative figures of their
class, not of the site. Inter-satellite links are not sensors on the ground and are not listed.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclasses.dataclass(frozen=True)
class Sensor:
    """One ground sensor; a noise figure (1 sigma) that does not apply to its kind is NaN."""

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


_TEXT_FIELDS = frozenset({"source_id", "kind", "name"})


@cache
def sensor_registry() -> Mapping[str, Sensor]:
    """All ground sensors by ``source_id`` (``radar-<array id>``, ``optical-<site id>``), in file order."""
    text = resources.files("sda_platform.orbits.sensing").joinpath("sensors.csv").read_text(encoding="utf-8")
    rows = (_sensor(row) for row in csv.DictReader(text.splitlines()))
    return MappingProxyType({sensor.source_id: sensor for sensor in rows})


def _sensor(row: Mapping[str, str]) -> Sensor:
    fields: dict[str, Any] = {
        name: value if name in _TEXT_FIELDS else float(value or "nan") for name, value in row.items()
    }
    return Sensor(**fields)

"""Kinds of objects and their hard-body radii: by the fleet file, the radar cross-section, or the object's kind.

Sources of cross-sections and kinds: a satellite catalogue in CelesTrak's CSV form (celestrak.org/satcat), in square
metres; then table `satellite_catalog`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from sda_platform.catalog.tables import SATELLITE_CATALOG
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform.formats.satcat import SHORT_TYPES
from sda_platform.lake.lake import Lake
from sda_platform.orbits.risk.object_kinds import HARD_BODY_RADIUS_M, object_type, stated_type

FLEET, RADAR_CROSS_SECTION, DEFAULT = "fleet file", "radar cross-section", "default by type"
SIZE_SOURCES = (FLEET, RADAR_CROSS_SECTION, DEFAULT)
_NUMBER, _CROSS_SECTION, _KIND = "NORAD_CAT_ID", "RCS", "OBJECT_TYPE"
# A catalogue of fewer objects is a part of one, and says nothing of others.
_WHOLE = 10_000
# Between a fragment of a centimetre and the largest station.
_RADII_M = (0.005, 60.0)


@dataclass(frozen=True)
class ObjectSizes:
    """Radii by catalogue number, m: those that the fleet file states, and those that cross-sections suggest."""

    stated_m: Mapping[int, float] = field(default_factory=dict)
    by_cross_section_m: Mapping[int, float] = field(default_factory=dict)
    kinds: Mapping[int, str] = field(default_factory=dict)
    """By the satellite catalogue."""
    fleet: frozenset[int] = frozenset()

    def kind(self, norad_id: int, name: str | None) -> str:
        """Return the kind of an object: by the satellite catalogue, else by its name.

        An object that a whole catalogue lacks is no payload by its name alone: it is unknown, unless it is a member of
        the fleet.
        """
        if norad_id in self.kinds:
            return self.kinds[norad_id]
        by_name = object_type(name)
        is_uncatalogued = len(self.kinds) >= _WHOLE and norad_id not in self.fleet
        return "unknown" if by_name == "payload" and is_uncatalogued else by_name

    def radius_m(self, norad_id: int, name: str | None) -> tuple[float, str]:
        """Return the radius of an object and its source, one of SIZE_SOURCES; the first source that has one counts."""
        if norad_id in self.stated_m:
            return self.stated_m[norad_id], FLEET
        if norad_id in self.by_cross_section_m:
            return self.by_cross_section_m[norad_id], RADAR_CROSS_SECTION
        return HARD_BODY_RADIUS_M[self.kind(norad_id, name)], DEFAULT

    def of(self, norad_ids: Sequence[int], names: Sequence[str | None]) -> tuple[list[float], list[str]]:
        """Return the radii of objects, m, and their sources."""
        found = [self.radius_m(*each) for each in zip(norad_ids, names, strict=True)]
        return [radius for radius, _ in found], [source for _, source in found]

    def with_table(self, store: Lake, version: int) -> ObjectSizes:
        """Return these sizes with the facts in a version of `satellite_catalog`, which count last."""
        if version < 0:
            return self
        columns = ("norad_id", "rcs_m2", "object_type")
        is_useful = (ds.field("rcs_m2") > 0) | ds.field("object_type").is_valid()
        rows = store.log(SATELLITE_CATALOG).rows(columns, is_useful, version)
        facts = list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))
        radii = {number: _radius_m(area_m2) for number, area_m2, _ in facts if area_m2}
        kinds = {number: stated_type(kind) for number, _, kind in facts if kind}
        return replace(self, by_cross_section_m={**radii, **self.by_cross_section_m}, kinds={**kinds, **self.kinds})

    def listed(self) -> list[list[tuple[int, Any]]]:
        """Return all entries in order."""
        found = [sorted(self.stated_m.items()), sorted(self.by_cross_section_m.items())]
        return [*found, *([sorted(self.kinds.items())] if self.kinds else [])]


def object_sizes(fleet: str, satellite_catalogue: str) -> ObjectSizes:
    """Return the sizes by a fleet file and a satellite catalogue; empty: the shipped fleet, and no catalogue.

    Raises:
        ListingError: a file cannot be read or breaks its form.
    """
    members = protected_fleet(fleet)
    radii, kinds = _of_catalogue(Path(satellite_catalogue)) if satellite_catalogue else ({}, {})
    return ObjectSizes(
        {member.norad_id: member.radius_m for member in members if member.radius_m},
        radii,
        kinds,
        frozenset(member.norad_id for member in members),
    )


def _radius_m(area_m2: float) -> float:
    """Return the radius of the sphere whose cross-section is that of the radar: sqrt(RCS / pi).

    The optical limit. It holds from about ten centimetres on; the results are kept within ``_RADII_M``.
    """
    least, largest = _RADII_M
    return min(max(math.sqrt(area_m2 / math.pi), least), largest)


def _of_catalogue(path: Path) -> tuple[dict[int, float], dict[int, str]]:
    """Return the radii by cross-section, and the kinds, that a file states."""
    radii, kinds = dict[int, float](), dict[int, str]()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if not {_NUMBER, _CROSS_SECTION} <= set(reader.fieldnames or ()):
                raise ListingError(f"{path}: header has no {_NUMBER} or no {_CROSS_SECTION}")
            for row in reader:
                text, kind = (row[_CROSS_SECTION] or "").strip(), (row.get(_KIND) or "").strip()
                if kind and row[_NUMBER].isdecimal():
                    kinds[int(row[_NUMBER])] = stated_type(SHORT_TYPES.get(kind.upper(), kind))
                if not text:
                    continue
                try:
                    number, area_m2 = int(row[_NUMBER]), float(text)
                    if not 0 < area_m2 < math.inf:
                        raise ValueError
                except (TypeError, ValueError):
                    raise ListingError(
                        f"{path} line {reader.line_num}: {row[_NUMBER]!r} and {text!r} are no object and square metres"
                    ) from None
                radii[number] = _radius_m(area_m2)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ListingError(f"{path}: cannot be read: {error}") from error
    return radii, kinds

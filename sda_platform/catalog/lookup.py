"""Questions about the catalogue that are answered from its tables, without an engine."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.identity import identities_at
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CONCURRENT,
    ELEMENTS,
    HELD,
    IN_FORCE,
    LOST,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
)
from sda_platform.clock import iso
from sda_platform.formats.satcat import FACTS
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.orbits.elements import ElementSets, apogee_altitude_km, perigee_altitude_km
from sda_platform.units import DAY_NS

_LEO_APOGEE_KM, _GEO_ALTITUDE_KM, _GEO_WIDTH_KM = 2_000.0, 35_786.0, 300.0
REGIMES = ("LEO", "MEO", "GEO", "HEO", "decaying")
"""Low (apogee below 2,000 km), medium, geostationary belt, highly elliptical, and perigee below 160 km."""
_DECAY_PERIGEE_KM = 160.0
_HIGHLY_ELLIPTICAL = 0.25
_AGES_DAYS = (1, 3, 7, 30)
_NAMED = 5


NO_CATALOGUE: Final = "the lake has no catalogue yet: land element sets and run the platform"


class UnknownObject(LookupError):
    """The catalogue has no such object, or no such version."""


def with_orbits(lake: Lake, version: int | None = None, where: ds.Expression | None = None) -> pa.Table:
    """Return rows of the catalogue by number, with perigee and apogee altitude (km), regime and age (days) added.

    Raises UnknownObject where there is no catalogue.
    """
    log = lake.log(ORBITAL_CATALOG)
    if log.version() < 0:
        raise UnknownObject(NO_CATALOGUE)
    rows = log.rows(None, where, version).sort_by("norad_id")
    elements = ElementSets.from_columns(arrays(rows, ELEMENT_COLUMNS))
    perigee_km, apogee_km = perigee_altitude_km(elements), apogee_altitude_km(elements)
    added = {
        "perigee_km": pa.array(perigee_km),
        "apogee_km": pa.array(apogee_km),
        "regime": pa.array(regimes(elements, perigee_km, apogee_km)),
        "age_days": pa.array((lake.clock.now_ns() - elements.epoch_time_ns) / DAY_NS),
    }
    for name, column in added.items():
        rows = rows.append_column(name, column)
    return rows


def regimes(elements: ElementSets, perigee_km: Any, apogee_km: Any) -> list[str]:
    """Return the regime of each orbit, one of REGIMES."""
    is_geo = (np.abs(perigee_km - _GEO_ALTITUDE_KM) < _GEO_WIDTH_KM) & (
        np.abs(apogee_km - _GEO_ALTITUDE_KM) < _GEO_WIDTH_KM
    )
    cases = [
        perigee_km < _DECAY_PERIGEE_KM,
        apogee_km < _LEO_APOGEE_KM,
        is_geo,
        elements.eccentricity > _HIGHLY_ELLIPTICAL,
    ]
    found: list[str] = np.select(cases, ["decaying", "LEO", "GEO", "HEO"], "MEO").tolist()
    return found


def number_of(lake: Lake, text: str) -> int:
    """Return the catalogue number that ``text`` is, or that of the only object whose name or designator contains it.

    Raises UnknownObject, which names the first of several.
    """
    if text.isascii() and text.isdigit() and 0 < int(text) < 2**63:
        return int(text)
    rows = found_objects(with_orbits(lake), text).select(["norad_id", "object_name"]).to_pylist()
    if len(rows) != 1:
        first = ", ".join(f"{row['norad_id']} {row['object_name'] or ''}".rstrip() for row in rows[:_NAMED])
        count = f"{len(rows):,} objects have {text[:80]!r} in their name or designator"
        more = f": {first}{', …' if len(rows) > _NAMED else ''}; `sda catalog search` lists them" if rows else ""
        raise UnknownObject(f"{count}{more}")
    return int(rows[0]["norad_id"])


def one_object(lake: Lake, norad_id: int) -> dict[str, Any]:
    """Return the set in force of an object with its orbit, the numbers merged into it, and the claims on it.

    Raises UnknownObject.
    """
    rows = with_orbits(lake, where=ds.field("norad_id") == norad_id).to_pylist()
    newest = lake.log(ORBITAL_CATALOG).head().commit
    merges = identities_at(lake, newest.manifest if newest else None).merges
    if norad_id in merges:
        raise UnknownObject(f"object {norad_id} is merged into {merges[norad_id]}, by an edit")
    if not rows:
        raise UnknownObject(f"the catalogue has no object {norad_id}")
    merged = sorted(number for number, into in merges.items() if into == norad_id)
    claims = lake.log(CATALOG_CONFLICTS).rows(None, ds.field("norad_id") == norad_id)
    return {
        **rows[0],
        "merged": merged,
        "claims": claims.sort_by([("attribute", "ascending"), ("claimant", "ascending")]).to_pylist(),
    }


def satellite(lake: Lake, norad_id: int) -> dict[str, str]:
    """Return the facts about an object that the satellite catalogue knows, for people."""
    names = [name for name in FACTS if name not in ("norad_id", "object_name", "international_designator")]
    if lake.log(SATELLITE_CATALOG).version() < 0:
        return {}
    rows = lake.log(SATELLITE_CATALOG).rows(names, ds.field("norad_id") == norad_id).to_pylist()
    known = {name: value for row in rows for name, value in row.items() if value is not None}
    return {
        name.removesuffix("_time_ns"): iso(value) if name.endswith("_time_ns") else str(value)
        for name, value in known.items()
    }


def found_objects(rows: pa.Table, text: str) -> pa.Table:
    """Return the rows whose number, name or designator contains ``text``, whatever its case."""
    columns = (
        pc.cast(rows.column("norad_id"), pa.string()),
        rows.column("object_name"),
        rows.column("international_designator"),
    )
    matches = [pc.fill_null(pc.match_substring(column, text, ignore_case=True), False) for column in columns]
    return rows.filter(pc.or_(matches[0], pc.or_(matches[1], matches[2])))


def difference(lake: Lake, before: int, after: int) -> dict[str, list[dict[str, Any]]]:
    """Compare two versions of the catalogue: objects that are new, removed, or have another set.

    Raises UnknownObject for a version that was not written yet, VersionGone for one that is not kept any more.
    """
    newest = lake.log(ORBITAL_CATALOG).version()
    if newest < 0:
        raise UnknownObject(NO_CATALOGUE)
    if max(before, after) > newest:
        raise UnknownObject(f"the catalogue has no version {max(before, after)}; the newest is {newest}")
    columns = ["norad_id", "object_name", "epoch_time_ns", "segment_sha256", "record_number"]
    old, new = (
        {row["norad_id"]: row for row in lake.log(ORBITAL_CATALOG).rows(columns, None, version).to_pylist()}
        for version in (before, after)
    )
    changed = [number for number in old.keys() & new.keys() if _set_of(old[number]) != _set_of(new[number])]
    return {
        "added": [_named(new[number]) for number in sorted(new.keys() - old.keys())],
        "removed": [_named(old[number]) for number in sorted(old.keys() - new.keys())],
        "changed": [
            {**_named(new[number]), "epoch_before": iso(old[number]["epoch_time_ns"])} for number in sorted(changed)
        ],
    }


def coverage(rows: pa.Table) -> list[dict[str, Any]]:
    """Count by regime: objects, median age, and sets older than 1, 3, 7 and 30 days."""
    found = []
    names = rows.column("regime").to_numpy(zero_copy_only=False)
    ages = rows.column("age_days").to_numpy()
    for regime in (*REGIMES, "all"):
        chosen = ages[(names == regime) | (regime == "all")]
        if len(chosen):
            older = {f"older_than_{days}_days": int((chosen > days).sum()) for days in _AGES_DAYS}
            found.append(
                {"regime": regime, "objects": len(chosen), "median_age_days": float(np.median(chosen)), **older}
            )
    return found


def open_conflicts(lake: Lake, *, with_sources: bool = False) -> list[dict[str, Any]]:
    """List edits that wait for a decision or for other edits; ``with_sources`` adds sets of sources that lost."""
    outcomes = [CONCURRENT, HELD, *([LOST] if with_sources else [])]
    claims = lake.log(CATALOG_CONFLICTS).rows(None, ds.field("outcome").isin(outcomes))
    rows: list[dict[str, Any]] = claims.sort_by([(n, "ascending") for n in CATALOG_CONFLICTS.key]).to_pylist()
    return rows


def annotations(claims: Iterable[dict[str, Any]]) -> dict[str, str]:
    """List the values that edits have set and that are in force, by attribute."""
    return {
        claim["attribute"]: claim["value"]
        for claim in claims
        if claim["attribute"] != ELEMENTS and claim["outcome"] == IN_FORCE and claim["value"]
    }


def _set_of(row: dict[str, Any]) -> Sequence[Any]:
    return row["segment_sha256"], row["record_number"]


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {"norad_id": row["norad_id"], "object_name": row["object_name"], "epoch": iso(row["epoch_time_ns"])}

"""Questions about held element sets that are answered from the tables, without an engine."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.gate import are_held
from sda_platform.catalog.identity import SET_KEY
from sda_platform.catalog.lookup import UnknownObject
from sda_platform.catalog.orbits import catalogue_at, propagator_of
from sda_platform.catalog.tables import ELEMENT_SETS, HELD, HELD_ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.lake.lake import Lake

Row = dict[str, Any]
_NEAR_KM: Final = 50.0
"""An object that is farther from the state of a set at its epoch is not the one that the set is of."""
_SHORT: Final = 12


def held_sets(lake: Lake, norad_ids: Collection[int] | None = None, *, every: bool = False) -> list[Row]:
    """Return the sets that are held, the newest first; of some objects only, if they are given.

    ``every``: also those that were held once. ``is_newer``: whether its epoch is after that of the set in force.
    """
    is_wanted = ds.scalar(value=True) if every else ds.field("outcome") == HELD
    if norad_ids is not None:
        is_wanted &= ds.field("norad_id").isin(sorted(norad_ids))
    rows = lake.log(HELD_ELEMENT_SETS).rows(None, is_wanted).to_pylist()
    is_of_objects = ds.field("norad_id").isin(sorted({row["norad_id"] for row in rows}))
    current = lake.log(ORBITAL_CATALOG).rows(["norad_id", "epoch_time_ns"], is_of_objects if rows else None)
    in_force = dict(zip(current["norad_id"].to_pylist(), current["epoch_time_ns"].to_pylist(), strict=True))
    for row in rows:
        row["is_newer"] = row["epoch_time_ns"] > in_force.get(row["norad_id"], row["epoch_time_ns"] - 1)
    return sorted(rows, key=lambda row: (-row["epoch_time_ns"], row["norad_id"], row["segment_sha256"]))


def newer_held_sets(lake: Lake, norad_ids: Collection[int] | None = None) -> list[Row]:
    """Return the held sets that are newer than the set in force: their objects go on with an older one."""
    return [row for row in held_sets(lake, norad_ids) if row["is_newer"]]


def set_name(row: Mapping[str, Any]) -> str:
    """Return the name of a set for `sda catalog release`: the beginning of its segment's hash, and its record."""
    return f"{row['segment_sha256'][:_SHORT]}:{row['record_number']}"


def why_held(row: Mapping[str, Any]) -> str:
    """Describe a held set in one line: its epoch, the reason, and by how much it is off."""
    distance = distance_km(row)
    off = "" if distance is None else f", {distance:,.1f} km off, {row['times_usual']:,.0f} times the usual"
    return f"set of {iso(row['epoch_time_ns'])[:16]} held ({row['reason']}{off}): {set_name(row)}"


def distance_km(row: Mapping[str, Any]) -> float | None:
    """Return how far a set is off the one that it contradicts, km; None: it is held by itself."""
    parts = [row[f"{axis}_km"] for axis in ("radial", "in_track", "cross_track")]
    return None if None in parts else float(np.linalg.norm(parts))


def fitting_objects(lake: Lake, rows: Sequence[Row]) -> list[str]:
    """Return for each held set the object that it may be of: the nearest at its epoch, by the catalogue; else empty."""
    if not rows:
        return []
    of_segments = ds.field("segment_sha256").isin(sorted({row["segment_sha256"] for row in rows}))
    sets = lake.log(ELEMENT_SETS).rows(None, of_segments & ds.field("error_kind").is_null())
    keys = pa.Table.from_pylist([{name: row[name] for name in SET_KEY} for row in rows])
    sets = sets.filter(are_held(sets, keys))
    catalogue = catalogue_at(lake, lake.log(ORBITAL_CATALOG).version())
    found: dict[tuple[str, int], str] = {}
    for place, each in enumerate(sets.select(list(SET_KEY)).to_pylist()):
        one = propagator_of(sets.slice(place, 1))
        position = one.at([0], one.elements.epoch_time_ns)[1][0]
        others = catalogue.propagator.grid(one.elements.epoch_time_ns)[1][:, 0]
        far_km = np.nan_to_num(np.linalg.norm(others - position, axis=1), nan=np.inf)
        far_km[catalogue.norad_id == each["norad_id"]] = np.inf
        nearest = int(np.argmin(far_km))
        text = f"{catalogue.norad_id[nearest]} ({far_km[nearest]:.1f} km)" if far_km[nearest] < _NEAR_KM else ""
        found[each["segment_sha256"], each["record_number"]] = text
    return [found.get((row["segment_sha256"], row["record_number"]), "") for row in rows]


def named_set(lake: Lake, name: str) -> Row:
    """Return the row of a held set by its segment (name, or beginning of its hash) and record. Raises LookupError."""
    segment, _, record = name.rpartition(":")
    is_record = ds.field("record_number") == (int(record) if record.isdecimal() else -2)
    rows = lake.log(HELD_ELEMENT_SETS).rows(None, is_record & (ds.field("outcome") == HELD))
    is_named = pc.or_(pc.equal(rows["segment_name"], segment), pc.starts_with(rows["segment_sha256"], segment))
    found = rows.filter(is_named).to_pylist() if segment else []
    if len(found) != 1:
        raise UnknownHeldSet(
            f"{name[:120]!r} names {len(found)} held sets, must name one: <segment>:<record>; `sda catalog held`"
        )
    row: Row = found[0]
    return row


class UnknownHeldSet(UnknownObject):
    """No set that is held has this name, or several have."""

"""Real sets of a month, of some objects, and the error scales that the catalogue gives them."""

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from sda_platform.catalog.error_history import with_error_scales
from sda_platform.catalog.tables import HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE

HISTORY = Path(__file__).parents[1] / "data/history/sets_of_40_objects_2013-10.3le.gz"
OBJECTS = 6
DAY_NS = 86_400 * 10**9


@cache
def sets() -> list[dict[str, Any]]:
    """Real sets of some objects, as rows of `element_sets`, by object and epoch."""
    rows = decode_element_sets(gzip.decompress(HISTORY.read_bytes()), segment_format="tle").to_pylist()
    chosen = sorted({row["norad_id"] for row in rows})[:OBJECTS]
    kept = [row for row in rows if row["norad_id"] in chosen]
    kept.sort(key=lambda row: (row["norad_id"], row["epoch_time_ns"]))
    return [{**row, "record_number": n, "source_priority": 0} for n, row in enumerate(kept)]


def newest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["norad_id"]: row for row in sorted(rows, key=lambda row: row["epoch_time_ns"])}.values())


def as_table(rows: list[dict[str, Any]], scales: bool = False) -> pa.Table:
    names = [f.name for f in ORBITAL_CATALOG.arrow_schema if f.name != COMMIT_SEQUENCE]
    names = names if scales else [name for name in names if name not in HISTORY_COLUMNS]
    schema = pa.schema([ORBITAL_CATALOG.arrow_schema.field(name) for name in names])
    return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema)


def rated(lake: Lake, changed: list[dict[str, Any]], current: pa.Table | None = None) -> dict[int, list[float]]:
    known = as_table([], scales=True) if current is None else current
    found = with_error_scales(lake, lake.plan(ORBITAL_CATALOG), as_table(changed), known)
    return {row["norad_id"]: [row[name] for name in HISTORY_COLUMNS] for row in found.to_pylist()}

"""A small simulated world for the whole chain from frames to alerts."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.clock import parse_iso_ns
from sda_platform.formats.fleet import protected_fleet
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.segments import (
    START_NS,
    catalogue_ids,
    catalogue_of,
)

TRUTH = Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv"
HORIZON_NS = 2 * 3600 * 10**9
FLEET = [member.norad_id for member in protected_fleet()]


@cache
def events() -> list[tuple[int, int, int, float]]:
    """The true approaches of the fleet within the horizon: both ids, TCA in ns, miss in km."""
    rows = list(csv.DictReader(TRUTH.open()))
    found = [(int(r["norad_lo"]), int(r["norad_hi"]), parse_iso_ns(r["tca_utc"]), float(r["miss_km"])) for r in rows]
    return [e for e in found if e[2] < START_NS + HORIZON_NS]


@cache
def objects() -> tuple[int, ...]:
    """The fleet, the objects that come close to it, and some hundred others."""
    return tuple(sorted({*FLEET, *(n for e in events() for n in e[:2]), *catalogue_ids()[::90]}))


@cache
def catalogue() -> bytes:
    return catalogue_of(objects())


@cache
def simulated() -> tuple[SimulatedSegment, ...]:
    """Three windows of what radars and links report of the fleet, with late, repeated and corrupt records."""
    return tuple(
        simulate("nominal", start_time_ns=START_NS, duration_s=75, seed=3, objects=FLEET, catalogue=catalogue())
    )


def tracks(platform: Platform) -> pa.Table:
    """The standing fused tracks, without sequence and times of processing (E11)."""
    last: dict[str, dict[str, Any]] = {}
    for row in sorted(platform.rows(FUSED_TRACKS).to_pylist(), key=lambda r: (r["sequence"], r["op"])):
        last[row["fit_id"]] = row
    standing = [last[track] for track in sorted(last) if last[track]["op"] == "insert"]
    rows = pa.Table.from_pylist(standing, schema=FUSED_TRACKS.arrow_schema)
    return rows.drop_columns(["commit_sequence", "sequence", "op", "as_of_ns"])

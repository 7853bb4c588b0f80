"""Small catalogues as tables with the columns of the serving index."""

import random
from typing import Any

import pyarrow as pa

from sda_platform.serving.index import Binding
from sda_platform.serving.record import COLUMNS

DAY_NS = 86_400 * 10**9
EPOCH_NS = 1_730_000_000 * 10**9
_TYPES = {
    **dict.fromkeys(COLUMNS[:9], pa.int64()),
    **dict.fromkeys(COLUMNS[9:18], pa.float64()),
    **dict.fromkeys(COLUMNS[18:], pa.string()),
}
SCHEMA = pa.schema(list(_TYPES.items()))


def row(norad_id: int, **facts: Any) -> dict[str, Any]:
    """One element set with plausible content that follows from its number."""
    chance = random.Random(norad_id)
    found = {
        "norad_id": norad_id,
        "epoch_time_ns": EPOCH_NS + norad_id * 1_000_000,
        "source_priority": 20,
        "record_number": norad_id,
        "received_time_ns": EPOCH_NS + DAY_NS,
        "commit_sequence": 1,
        "element_set_number": 999,
        "revolution_at_epoch": norad_id,
        "decay_time_ns": None,
        "mean_motion_rev_per_day": chance.uniform(14.0, 16.0),
        "eccentricity": chance.uniform(0.0001, 0.01),
        "inclination_deg": chance.uniform(0.0, 180.0),
        "raan_deg": chance.uniform(0.0, 360.0),
        "arg_of_pericenter_deg": chance.uniform(0.0, 360.0),
        "mean_anomaly_deg": chance.uniform(0.0, 360.0),
        "bstar_per_earth_radius": chance.uniform(-1e-4, 1e-3),
        "mean_motion_dot_rev_per_day2": 1e-5,
        "mean_motion_ddot_rev_per_day3": 0.0,
        "object_name": f"OBJECT {norad_id}",
        "international_designator": f"1998-{norad_id % 1000:03d}A",
        "originator": "18 SDS",
        "classification": "U",
        "segment_sha256": f"{norad_id:064x}",
    }
    return {**found, **facts}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows as a table."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def bound_to(version: int) -> Binding:
    """A binding to this version of a catalogue."""
    return Binding(version, version + 1, f"{version:064x}", version + 1, EPOCH_NS + DAY_NS)

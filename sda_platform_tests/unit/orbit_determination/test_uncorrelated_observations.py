"""Which observations are uncorrelated: those that the fusion tried to correlate, and left over."""

from pathlib import Path

import pytest

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.orbit_determination.assets import closed_observations
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at, next_window
from sda_platform_tests.support.segments import after

WINDOW_NS = 30 * SECOND_NS
OPEN_FROM_S = 3600


def observed(number: int, ago_s: float, kind: str) -> dict[str, object]:
    at = after(OPEN_FROM_S - ago_s)
    facts = {"sensor_time_ns": at, "received_time_ns": at, "source_kind": kind, "source_id": "s", "segment_sha256": "s"}
    return {**facts, "observation_id": f"o{number}", "record_number": number, "corrections": []}


@pytest.mark.parametrize(
    ("kind", "ago_s"), [("radar", 60.0), ("radar", 900.0), ("optical", 900.0), ("optical", 3000.0)]
)
def test_what_came_late_is_not_uncorrelated(tmp_path: Path, kind: str, ago_s: float) -> None:
    lake = lake_at(tmp_path, now_ns=after(OPEN_FROM_S - 2.0))
    for table in (ORBITAL_CATALOG, TIME_TAG_BIASES):
        commit(lake, table)
    commit(lake, OBSERVATIONS, [observed(n, ago_s, kind) for n in range(2)])
    first = genesis_window(OBSERVATIONS)
    fit = {"op": "insert", "norad_id": 7, "window_start_ns": after(OPEN_FROM_S - ago_s), "observation_ids": ["o0"]}
    counts = {"radar_count": int(kind == "radar"), "optical_count": int(kind == "optical")}
    marks = {FIRST_OPEN_WINDOW: after(0.0)}
    commit(lake, FUSED_TRACKS, [fit | counts], windows=[first], watermarks=marks, counts={"late": 0})
    commit(lake, OBSERVATIONS, [observed(n, ago_s, kind) for n in range(2, 4)])
    marks = {FIRST_OPEN_WINDOW: after(OPEN_FROM_S)}
    commit(lake, FUSED_TRACKS, windows=[next_window(first)], watermarks=marks, counts={"late": 2})
    left, followed = closed_observations(lake, lake.plan(PROVISIONAL_ELEMENTS), WINDOW_NS)
    assert left["observation_id"].to_pylist() == ["o1"]
    assert followed == ({7} if ago_s < 1200.0 else set())

"""A radar whose clock is off is found out by satellites that show where they are, and corrected two terms later."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.recovery.verification import current_keys
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.scenes import catalogue, visible
from sda_platform_tests.support.segments import after, catalogue_of, land

CHAIN = ["raw_records", "observations", "fused_tracks"]
TERM_S, WRONG, AHEAD_S = 300, "radar-2", 0.05
_STATE = ["x_km", "y_km", "z_km"]


@cache
def followed() -> tuple[int, ...]:
    """Low satellites of late: some that radar-2 sees around the end of the first term, some in the fourth."""
    low = catalogue().elements.mean_motion_rev_per_day > 11
    chosen: set[int] = set()
    for begin, end in ((240, 360), (900, 955)):
        seen = [visible("radar", after(seconds)) for seconds in (begin, end)]
        both = set.intersection(*(set(each.index[each.source_id == WRONG].tolist()) for each in seen))
        chosen |= set(sorted(row for row in both if low[row])[-15:])
    return tuple(catalogue().elements.norad_id[sorted(chosen)].tolist())


@cache
def simulated() -> tuple[SimulatedSegment, ...]:
    """The minutes around the end of the first term, and the first of the fourth."""
    plan = ObservingPlan(
        radar_interval_s=5.0,
        isl_interval_s=5.0,
        isl_satellites=20,
        catalogue_error_s=0.02,
        radars_ahead_s={WRONG: AHEAD_S},
    )
    return tuple(
        segment
        for begin, duration_s in ((240, 120), (3 * TERM_S, 60))
        for segment in simulate(
            "nominal", start_time_ns=after(begin), duration_s=duration_s, seed=5, objects=followed(), plan=plan,
            catalogue=catalogue_of(followed()), segment_seconds=20.0,
        )
        if segment.feed in ("radar", "isl")
    )  # fmt: skip


def run(platform: Platform, job: str, only: list[str]) -> None:
    outcome = correctness(platform.run(job, only=only))
    assert all(outcome.values()), outcome


def misses_km(platform: Platform) -> np.ndarray:
    """How far fits of the last minute by radars alone, the wrong one among them, are from the truth next to them."""
    radar_only = (pc.field("isl_count") == 0) & (pc.field("window_start_ns") >= after(3 * TERM_S))
    columns = ["norad_id", "epoch_time_ns", *_STATE]
    rows = current_keys(platform.lake.log(FUSED_TRACKS), columns, where=radar_only)
    truth = pa.concat_tables([s.truth for s in simulated() if s.feed == "radar"]).to_pandas()
    of_wrong = set(truth.loc[truth["source_id"] == WRONG, "norad_id"])
    found = []
    for row in rows.to_pylist():
        if row["norad_id"] not in of_wrong:
            continue
        mine = truth[truth["norad_id"] == row["norad_id"]]
        near = mine.iloc[(mine["true_time_ns"] - row["epoch_time_ns"]).abs().argmin()]
        elapsed_s = (row["epoch_time_ns"] - near["true_time_ns"]) / 1e9
        if abs(elapsed_s) < 1.5:
            place = [(near[f"{c}_m"] + near[f"v{c}_m_s"] * elapsed_s) / 1e3 for c in "xyz"]
            found.append(np.linalg.norm(np.subtract(place, [row[c] for c in _STATE])))
    return np.array(found)


def test_a_clock_that_is_off_is_reported_and_corrected_once_two_terms_say_so__DP3_I4(platform: Platform) -> None:
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(followed()))
    platform.run("catalog_to_alerts", only=["element_sets", "orbital_catalog"])
    end = 3 * TERM_S + 60
    last = [s for s in simulated() if s.available_time_ns > after(end - 20)]
    for seconds, segments in ((end - 20, [s for s in simulated() if s not in last]), (end + 60, last)):
        platform.at(after(seconds))
        platform.land(segments)
        run(platform, "observations_to_alerts", CHAIN)
    before = misses_km(platform)
    run(platform, "orbit_determination", ["time_tag_biases"])
    told = platform.rows(TIME_TAG_BIASES)
    assert set(told["term_start_ns"].to_pylist()) == {after(0), after(TERM_S)}
    applied = told.filter(pc.and_(told["is_applied"], pc.equal(told["holds_from_ns"], after(3 * TERM_S))))
    assert applied["source_id"].to_pylist() == [WRONG]
    np.testing.assert_allclose(applied["offset_s"].to_numpy(), AHEAD_S, atol=0.01)

    run(platform, "observations_to_alerts", CHAIN)
    journal = platform.rows(FUSED_TRACKS, "op", "window_start_ns")
    retracted = journal.filter(pc.equal(journal["op"], "retract"))["window_start_ns"].to_numpy()
    assert (retracted >= after(3 * TERM_S)).any()
    assert np.median(misses_km(platform)) < 0.3 * np.median(before)
    tables = (TIME_TAG_BIASES, FUSED_TRACKS)
    found = replay_lake(
        platform.lake, str(platform.home / "shadow"), platform.definitions.resources or {}, tables=tables
    )
    assert [(each.table, each.differences) for each in found] == [(table.name, ()) for table in tables]

"""Tracks live: carried through windows, corrected by late data, and confirmed only when seen often enough."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.lake.verification import standing_keys
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.pipeline.platform_run import Platform, correctness
from sda_platform_tests.pipeline.test_chain import FLEET
from sda_platform_tests.segments import START_NS, after, catalogue_of, land

CHAIN = ["raw_records", "observations", "fused_tracks", "tracks"]
SECONDS = 120
_STATE = ["x_km", "y_km", "z_km"]


@cache
def simulated() -> tuple[SimulatedSegment, ...]:
    return tuple(
        simulate(
            "nominal", start_time_ns=START_NS, duration_s=SECONDS, seed=3, objects=FLEET, catalogue=catalogue_of(FLEET)
        )
    )


def run_at(platform: Platform, seconds: float, segments: list[SimulatedSegment]) -> None:
    platform.at(after(seconds))
    platform.land(segments)
    outcome = correctness(platform.run("hot", only=CHAIN))
    assert all(outcome.values()), outcome


def misses_km(rows: pa.Table) -> dict[int, float]:
    """Distance of each object's newest state from the truth at its epoch, which readings near it give by a line."""
    truth = pa.concat_tables([s.truth for s in simulated() if s.feed in ("radar", "isl")])
    found = {}
    for row in rows.to_pylist():
        of_object = truth.filter(pc.equal(truth["norad_id"], row["norad_id"])).to_pylist()
        near = min(of_object, key=lambda r: abs(r["true_time_ns"] - row["epoch_time_ns"]))
        elapsed_s = (row["epoch_time_ns"] - near["true_time_ns"]) / 1e9
        if abs(elapsed_s) < 1.5:
            place_km = [(near[f"{c}_m"] + near[f"v{c}_m_s"] * elapsed_s) / 1e3 for c in "xyz"]
            found[row["norad_id"]] = float(np.linalg.norm(np.subtract(place_km, [row[c] for c in _STATE])))
    return found


def rms(misses: dict[int, float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(misses.values())))))


def test_tracks_are_carried_and_late_data_moves_them(platform: Platform) -> None:
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(FLEET))
    platform.run("catalog", only=["element_sets", "orbital_catalog"])
    segments = list(simulated())
    late = [s for s in segments if s.feed == "radar" and after(100) < s.available_time_ns < after(115)]
    early = [s for s in segments if s.available_time_ns <= after(40) and s not in late]
    run_at(platform, 40, early)
    assert set(platform.rows(TRACKS, "state")["state"].to_pylist()) == {"new"}, "nobody is confirmed by two windows"

    rest = [s for s in segments if s not in late and s not in early]
    run_at(platform, SECONDS, rest)
    first = platform.rows(TRACKS)
    assert pc.sum(pc.equal(first["state"], "confirmed")).as_py() > 20
    run_at(platform, SECONDS + 1, late)
    after_late = platform.rows(TRACKS)
    said = platform.rows(FUSED_TRACKS, "op", "sequence")
    assert pc.max(said["sequence"]).as_py() > 0, "late data inside the lateness corrects its window"
    before = {row["norad_id"]: row["x_km"] for row in first.to_pylist()}
    moved = [row["norad_id"] for row in after_late.to_pylist() if row["x_km"] != before.get(row["norad_id"])]
    assert moved, "and the tracks follow"

    newest = standing_keys(platform.lake.log(FUSED_TRACKS), ["norad_id", "epoch_time_ns", *_STATE])
    alone = {}
    for row in newest.sort_by("epoch_time_ns").to_pylist():
        alone[row["norad_id"]] = row
    single, carried = misses_km(pa.Table.from_pylist(list(alone.values()))), misses_km(after_late)
    assert carried.keys() == single.keys()
    assert np.sqrt(np.mean(np.square(list(carried.values())))) < 0.8 * np.sqrt(
        np.mean(np.square(list(single.values())))
    )

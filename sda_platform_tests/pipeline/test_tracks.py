"""Tracks live: carried through windows, confirmed if seen often enough; late data corrects all that rests on them."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.recovery.verification import current_keys
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.lived import MET_ID, ONCOMING_ID
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import START_NS, after, catalogue_of, land
from sda_platform_tests.support.simulated_chain import FLEET

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
    outcome = correctness(platform.run("observations_to_alerts", only=CHAIN))
    assert all(outcome.values()), outcome


def misses_km(rows: pa.Table) -> dict[int, float]:
    """Distance of each object's newest state from the truth at its epoch, which observations near it give by a line."""
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
    platform.run("catalog_to_alerts", only=["element_sets", "orbital_catalog"])
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

    newest = current_keys(platform.lake.log(FUSED_TRACKS), ["norad_id", "epoch_time_ns", *_STATE])
    alone = {}
    for row in newest.sort_by("epoch_time_ns").to_pylist():
        alone[row["norad_id"]] = row
    single, carried = misses_km(pa.Table.from_pylist(list(alone.values()))), misses_km(after_late)
    assert carried.keys() == single.keys()
    assert np.sqrt(np.mean(np.square(list(carried.values())))) < 0.8 * np.sqrt(
        np.mean(np.square(list(single.values())))
    )


def test_late_data_corrects_its_windows_and_all_that_rests_on_them__DP3_F7_I17(lived: Platform) -> None:
    """Links tell late of windows that radars opened: fits, tracks, assessments and alerts follow, to the subscriber."""
    windows, carried, assessed, alerts = (of_commit(lived, table, consumed) for table, consumed in late_journey(lived))
    corrected = {row["norad_id"] for row in windows if row["op"] == "retract"}
    assert corrected and all(row["sequence"] == 0 for row in windows if row["op"] == "retract")
    assert corrected <= {row["norad_id"] for row in carried}
    withdrawn = {row["event_id"]: row for row in assessed if row["op"] == "retract"}
    said = {row["event_id"]: row for row in assessed if row["op"] == "insert"}
    rested = {
        event
        for event, row in withdrawn.items()
        for n in (1, 2)
        if row[f"state_source_{n}"] == "fused_track" and row[f"norad_id_{n}"] in corrected
    }
    assert rested, "some approach had been assessed by a track that late data corrects"
    for event in rested:
        assert said[event]["sequence"] == withdrawn[event]["sequence"] + 1
        assert said[event]["collision_probability"] != withdrawn[event]["collision_probability"]
    updated = {row["event_id"]: row["sequence"] for row in alerts if row["op"] == "insert"}
    told = {row["event_id"] for row in alerts}
    assert told & rested and told <= said.keys()
    held = {entry.alert_id: entry for entry in lived.subscriber.held()}
    assert all(held[event].sequence >= updated.get(event, 0) for event in told), (
        "the subscriber has it, or what followed"
    )


def test_an_alert_that_late_data_rules_out_is_withdrawn_at_the_subscriber__DP3_F7_I17(lived: Platform) -> None:
    """By the radars' track alone it was a danger; by what the link told late of the same windows it is none."""
    written = of_commit(lived, *late_journey(lived)[-1])
    said = {row["event_id"] for row in written if row["op"] == "insert"}
    (gone,) = [row for row in written if row["op"] == "retract" and row["event_id"] not in said]
    assert {gone["norad_id_1"], gone["norad_id_2"]} == {MET_ID, ONCOMING_ID}
    assert gone["sequence"] > 0, "told, and told again when the radars had seen it"
    before, after_late = (
        {row["event_id"]: row for row in of_commit(lived, *late_journey(lived)[-2]) if row["op"] == op}[
            gone["event_id"]
        ]
        for op in ("retract", "insert")
    )
    assert (before["risk"], after_late["risk"]) == ("yellow", "green")
    assert before["track_id_1"] or before["track_id_2"], "a track told that it was one"
    (tombstone,) = [entry for entry in lived.subscriber.held() if entry.alert_id == gone["event_id"]]
    assert (tombstone.op, tombstone.sequence) == ("retract", gone["sequence"])
    delivered = lived.rows(ALERT_DELIVERIES, "alert_id", "sequence", "op", "outcome").to_pylist()
    assert {
        "alert_id": tombstone.alert_id,
        "sequence": tombstone.sequence,
        "op": "retract",
        "outcome": "applied",
    } in delivered


def late_journey(platform: Platform) -> list[tuple[Table, tuple[Table, int]]]:
    """Each table from fits to alerts, with the commit upstream that brought the late links to it."""
    journey: list[tuple[Table, tuple[Table, int]]] = []
    source, sequence = OBSERVATIONS, 2
    for table in (FUSED_TRACKS, TRACKS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS):
        journey.append((table, (source, sequence)))
        source, sequence = table, consumer(platform, table, source, sequence).sequence
    return journey


def consumer(platform: Platform, table: Table, source: Table, sequence: int) -> Commit:
    """The commit of ``table`` that consumed commit ``sequence`` of ``source``."""
    for commit in platform.lake.log(table).commits():
        window = commit.manifest.window(source.name)
        if window and window.after_sequence < sequence <= window.upto_sequence:
            return commit
    raise AssertionError(f"no commit of {table.name} consumed commit {sequence} of {source.name}")


def of_commit(platform: Platform, table: Table, consumed: tuple[Table, int]) -> list[dict[str, Any]]:
    """What the commit wrote that consumed this one."""
    commit = consumer(platform, table, *consumed)
    rows = platform.lake.log(table).rows_of((commit.sequence - 1, commit.sequence), version=commit.version)
    return list(rows.to_pylist())

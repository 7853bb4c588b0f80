"""Dead letters that come back end in the tracks that a history without failures would have had (DP5-F8, E26)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.dead_letters.reprocess_job import Reprocessing, reprocess_dead_letters
from sda_platform.dead_letters.reprocessing import DeadLetterFilter
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import after, catalogue_of, land
from sda_platform_tests.support.simulated_chain import FLEET, simulated, tracks

CHAIN = ["raw_records", "observations", "fused_tracks", "dead_letters"]


def with_elements(platform: Platform) -> Platform:
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(FLEET))
    platform.run("catalog_to_alerts", only=[ELEMENT_SETS.name, "orbital_catalog"])
    return platform


def run_at(platform: Platform, seconds: float, segments: Sequence[SimulatedSegment] = ()) -> dict[str, bool]:
    platform.at(after(seconds))
    platform.land(segments)
    return correctness(platform.run("observations_to_alerts", only=CHAIN))


def reprocess(platform: Platform, **chosen: frozenset[str]) -> Reprocessing:
    return reprocess_dead_letters(platform.lake, str(platform.home / "landing"), DeadLetterFilter(**chosen))  # type: ignore[arg-type]


def miscounted(platform: Platform, segment: SimulatedSegment) -> None:
    """The segment with a number of records that is not true: a lander's mistake, which the bytes do not share."""
    meta = replace(segment.meta, records=segment.meta.records + 1)
    assert platform.zone(segment.feed).seal("miscounted", segment.data, meta)


def mend_count(platform: Platform, segment: SimulatedSegment) -> None:
    (path,) = (platform.home / "landing" / segment.feed / "quarantine").glob("miscounted*.meta.json")
    path.write_text(segment.meta.to_json())


def test_late_and_repaired_records_return_into_their_closed_windows__DP5_F8_E26(
    platforms: Callable[[str], Platform],
) -> None:
    segments = list(simulated())
    radar = [s for s in segments if s.feed == "radar"]
    cut_off = radar[: len(radar) // 2]
    bad, *others = [s for s in segments if s not in cut_off]
    later = list(simulate("nominal", start_time_ns=after(300), duration_s=10, seed=3, objects=FLEET))
    twin = with_elements(platforms("never failed"))
    run_at(twin, 62, segments)
    run_at(twin, 312, later)

    platform = with_elements(platforms("failed"))
    miscounted(platform, bad)
    run_at(platform, 62, others)
    run_at(platform, 312, later)  # closes the windows of the first minute
    late = run_at(platform, 700, cut_off)
    assert all(late.values()), late
    known = platform.rows(OBSERVATIONS, "observation_id").num_rows
    kinds = platform.rows(DEAD_LETTERS, "error_kind").column("error_kind")
    told = pc.sum(pc.equal(kinds, "late_observation")).as_py()
    assert told > 20
    assert pc.sum(pc.equal(kinds, "bad_segment")).as_py() == 1
    assert not tracks(platform).equals(tracks(twin)), "what is late or refused is in no track yet"

    chosen = frozenset({"late_observation", "bad_segment"})
    mend_count(platform, bad)
    report = reprocess(platform, kinds=chosen).report
    assert report is not None
    assert (report.reprocessed, report.skipped) == (told + 1, ())
    came_back = run_at(platform, 710)

    assert all(came_back.values()), came_back
    mended = platform.rows(OBSERVATIONS, "observation_id").num_rows - known
    assert 0 < mended <= bad.meta.records, "those of the mended segment are new, the late ones are not doubled"
    assert tracks(platform).equals(tracks(twin))

    versions = platform.versions([RAW_RECORDS, OBSERVATIONS, FUSED_TRACKS, DEAD_LETTERS])
    again = reprocess(platform, kinds=chosen).report
    assert again is not None
    assert (again.reprocessed, again.had_already) == (0, told + 1)
    run_at(platform, 720)
    assert platform.versions([RAW_RECORDS, OBSERVATIONS, FUSED_TRACKS, DEAD_LETTERS]) == versions

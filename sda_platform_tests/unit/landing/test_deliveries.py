"""What a partner delivers twice, to the wrong zone, or so that no decoder survives it: counted, and in no one's way."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from upath import UPath

from sda_platform.formats.observations import decode_segments
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.landing.consumed_marks import mark_pruned
from sda_platform.landing.decode_attempts import DecodeAttempts
from sda_platform.landing.owners import Owners
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.status import platform_status
from sda_platform.orchestration.landing_balance import miscounted_segments, misplaced_segments
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import RepairFinding, recover
from sda_platform_tests.campaign.world import World, _optical
from sda_platform_tests.support.landed_deliveries import FEEDS, A, B, C, Decode, Platform
from sda_platform_tests.support.segments import described, put, radar_segment


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    return Platform(tmp_path)


OPTICAL = _optical(1).data


@pytest.mark.parametrize("together", [False, True])
def test_bytes_that_were_landed_in_the_wrong_zone_are_taken_in_the_right_one__D4(
    platform: Platform, together: bool
) -> None:
    platform.deliver("radar", "misplaced", OPTICAL)
    if not together:
        platform.drain()
        assert platform.valid() == {}
    platform.deliver("optical", "misplaced", OPTICAL, at=2.0)
    platform.drain()
    assert platform.valid() == {"optical/misplaced": 4}
    platform.deliver("optical", "again", OPTICAL, at=3.0)
    platform.deliver("radar", "again", OPTICAL, at=3.0)
    platform.drain()
    assert platform.valid() == {"optical/misplaced": 4}
    assert platform.counts() == {
        "discovered": 4, "acknowledged": 2, "duplicate": 2, "conflict": 0, "quarantined": 0,
    }  # fmt: skip


def test_bytes_that_were_landed_in_the_wrong_format_are_taken_in_the_right_one__D4(platform: Platform) -> None:
    platform.deliver("optical", "a", OPTICAL, segment_format="tle")
    platform.drain()
    assert platform.valid() == {}
    platform.deliver("optical", "b", OPTICAL)
    platform.drain()
    assert platform.valid() == {"optical/b": 4}


def test_a_segment_of_a_format_that_its_feed_does_not_carry_is_quarantined_once__D12(platform: Platform) -> None:
    """Its metadata is true, so only the decoder finds another number of records; under each name it is one loss."""
    for name in ("a", "a", "b"):
        platform.deliver("optical", name, OPTICAL, segment_format="tle")
        platform.drain()
    assert sorted(platform.rows()) == [("optical", name, -1, "undecodable_segment") for name in ("a", "b")]
    assert (platform.counts()["quarantined"], platform.counts()["duplicate"]) == (2, 1)


def test_every_second_delivery_is_counted_in_the_commit_that_discards_it__spec_115(platform: Platform) -> None:
    """Under its name, under another, in another zone, next to the first and long after it; nothing is left of any."""
    platform.deliver("radar", "a", A)
    platform.deliver("radar", "copy", A, at=2.0)
    platform.drain()
    platform.deliver("radar", "a", A)
    platform.deliver("isl", "a", A)
    put(LandingZone(str(platform.root), "radar"), "lone copy", A)
    platform.drain()
    assert platform.valid() == {"radar/a": 3}
    assert platform.counts() == {
        "discovered": 5, "acknowledged": 1, "duplicate": 4, "conflict": 0, "quarantined": 0,
    }  # fmt: skip
    observed = [{name: value.value for name, value in event.metadata.items()} for event in platform.events]
    assert sum(facts["duplicate_segments"] for facts in observed) == 4


def test_other_bytes_under_a_consumed_name_become_a_dead_letter__spec_94(platform: Platform) -> None:
    platform.deliver("radar", "every day the same", A)
    platform.drain()
    platform.deliver("radar", "every day the same", B)
    platform.drain()
    assert platform.dead() == {("radar/every day the same", "name_conflict")}
    assert platform.valid() == {"radar/every day the same": 3}
    assert platform.counts()["conflict"] == 1


class AtWork(Owners):
    """Processes of which none has ended."""

    def has_ended(self, _mark: str) -> bool:
        return False


def failing_at(poison: bytes, fail: Callable[[], object]) -> Decode:
    """The platform's decoder, but for a batch with these bytes."""

    def decode(segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
        if any(data == poison for data, _ in segments):
            fail()
        return decode_segments(segments)

    return decode


class Killed(BaseException):
    """Ends the code under test where it stands, as a kill does: nothing catches it."""


def be_killed() -> None:
    raise Killed


def raise_an_error() -> None:
    raise ValueError("unforeseen")


def test_a_segment_at_which_the_decoder_fails_is_isolated_at_once__D12(platform: Platform) -> None:
    for n in range(5):
        platform.deliver("radar", f"s{n}", radar_segment(2, first_track=100 * n), at=float(n))
    platform.deliver("radar", "poison", B, at=2.5)
    platform.run(failing_at(B, raise_an_error))
    assert platform.dead() == {("radar/poison", "undecodable_segment")}
    assert platform.valid() == {f"radar/s{n}": 2 for n in range(5)}
    (error,) = [r["error"] for r in platform.lake.log(RAW_RECORDS).rows(["error"]).to_pylist() if r["error"]]
    assert error == "radar/poison: the decoder ends with ValueError: unforeseen"
    assert platform.pending() == []


def test_a_segment_that_kills_its_decoder_is_isolated_by_halving_the_batch__D12(platform: Platform) -> None:
    """As the kernel kills a process that wants too much memory; more segments arrive meanwhile."""
    for n in range(6):
        platform.deliver("radar", f"s{n}", radar_segment(2, first_track=1000 * n), at=float(n))
    platform.deliver("radar", "poison", B, at=2.5)
    deaths = 0
    for n in range(30):
        platform.deliver("radar", f"late-{n}", radar_segment(1, first_track=50_000 + n), at=9.0)
        try:
            platform.run(failing_at(B, be_killed))
        except Killed:
            deaths += 1
    assert deaths <= 9, "8, 8, 4, 2 and three times 1 segments are tried, some of them again"
    assert platform.dead() == {("radar/poison", "undecodable_segment")}
    assert platform.valid() == {f"radar/s{n}": 2 for n in range(6)} | {f"radar/late-{n}": 1 for n in range(30)}
    (note,) = (platform.root / ".decoding").iterdir()
    assert DecodeAttempts.load(UPath(note), platform.owners) == DecodeAttempts(sound_sources=("radar/",))


def test_a_run_that_is_killed_once_at_a_segment_refuses_nothing__D12(platform: Platform) -> None:
    """And a note that is torn is empty."""
    platform.deliver("radar", "a", A)
    with pytest.raises(Killed):
        platform.run(failing_at(A, be_killed))
    platform.run()
    assert platform.valid() == {"radar/a": 3}
    (platform.root / ".decoding" / "raw_records.json").write_bytes(b'{"lim')
    platform.deliver("radar", "b", B)
    platform.run()
    assert platform.valid() == {"radar/a": 3, "radar/b": 3}


def test_the_note_of_a_run_that_is_at_work_counts_as_no_death__D12(platform: Platform) -> None:
    """A sound segment was refused when another run, and then a power loss, came while it was decoded."""
    platform.owners = AtWork()
    platform.deliver("radar", "a", A)
    for _ in range(3):
        with pytest.raises(Killed):
            platform.run(failing_at(A, be_killed))
    platform.run()
    assert platform.valid() == {"radar/a": 3}


def test_no_memory_for_a_batch_makes_the_next_ones_smaller__D12(platform: Platform) -> None:
    for n in range(8):
        platform.deliver("radar", f"s{n}", radar_segment(2, first_track=1000 * n), at=float(n))

    def decode(segments: Sequence[tuple[bytes, SegmentMeta]]) -> pa.Table:
        if len(segments) > 2:
            raise MemoryError
        return decode_segments(segments)

    for _ in range(30):
        if not platform.pending():
            break
        try:
            platform.run(decode)
        except MemoryError:
            continue
    assert platform.valid() == {f"radar/s{n}": 2 for n in range(8)}
    assert platform.dead() == set()


def test_the_balance_of_zones_sees_what_a_zone_lost_and_what_a_commit_did_not_count__spec_115(
    platform: Platform,
) -> None:
    for n, data in enumerate((A, B, C)):
        platform.deliver("radar", f"s{n}", data)
        platform.run()
    log = platform.lake.log(RAW_RECORDS)
    commits = log.commits()
    (platform.root / "radar/archive" / described(A).sha256).unlink()
    (problem,) = misplaced_segments(platform.zones(FEEDS), [commit.manifest for commit in commits])
    assert problem.startswith("sequence 1: radar/s0 was counted as acknowledged, and ")
    commits[0].manifest.counts["duplicate_segments"] = 3  # type: ignore[index]
    (problem,) = miscounted_segments(platform.lake, log, commits)
    assert problem.startswith("sequence 3 counts {")


def restored(platform: Platform, *, depth: Depth = Depth.PRESENCE, repair: bool = True) -> RepairFinding:
    zones = {RAW_RECORDS.name: platform.zones(FEEDS)}
    (found,) = recover(platform.lake, [RAW_RECORDS], zones, depth=depth, repair=repair, wait=lambda _seconds: None)
    return found


def test_a_lake_that_was_restored_from_an_older_backup_gets_its_later_segments_again__D9(
    platform: Platform, tmp_path: Path
) -> None:
    platform.deliver("radar", "a", A)
    platform.drain()
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    platform.deliver("radar", "b", B)
    platform.deliver("isl", "torn", b"?")
    platform.drain()
    before = sorted(platform.rows(), key=str)
    assert restored(platform).outcome == "sound"
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "backup", tmp_path / "lake")
    assert restored(platform, repair=False).outcome == "damaged"
    found = restored(platform)
    assert (found.outcome, len(found.unheld)) == ("repaired", 2)
    platform.deliver("radar", "b-again", B)
    platform.drain()
    assert sorted(platform.rows(), key=str) == before
    assert restored(platform).outcome == "sound"


def test_what_a_campaign_lands_flows_whatever_its_name_and_whatever_lies_next_to_it__D3(platform: Platform) -> None:
    """The account of the fault campaign, whose zones hold odd names, old modification times, directories and pipes."""
    world = World(seed=3)
    (platform.root / "optical" / "pending").mkdir(parents=True)
    for feed in ("radar", "isl"):
        (platform.root / feed / "pending").mkdir(parents=True)
    for _ in range(2):
        world.deliver(world.next_stretch(), str(platform.root))
        platform.run()
    left = {name.partition("/")[2] for name in platform.pending()}
    assert left == set()
    rows = platform.lake.log(RAW_RECORDS).rows(["segment_sha256", "record_number", "segment_name"]).to_pylist()
    assert Counter((r["segment_sha256"], r["record_number"]) for r in rows) == Counter(world.written.keys())
    odd = {r["segment_name"] for r in rows if r["segment_name"].startswith("odd-")}
    assert {name for name in odd if "\\xfc" in name}
    assert {len(name) for name in odd} >= {245}
    assert platform.counts()["duplicate"] == 2


def test_a_second_delivery_is_recognised_when_the_archive_was_removed__D11(platform: Platform) -> None:
    platform.deliver("radar", "a", A)
    platform.drain()
    platform.deliver("radar", "b", B)
    platform.drain()
    shutil.rmtree(platform.root / "radar" / "archive")
    for name in ("a again", "b again"):
        platform.deliver("radar", name, A if name.startswith("a") else B)
    platform.deliver("radar", "c", C)
    platform.drain()
    assert platform.valid() == {"radar/a": 3, "radar/b": 3, "radar/c": 3}
    assert platform.counts()["duplicate"] == 2


def test_a_second_delivery_of_a_single_pruned_segment_is_recognised_after_the_maintenance__D11(
    platform: Platform,
) -> None:
    for name, data in (("a", A), ("b", B), ("c", C)):
        platform.deliver("radar", name, data)
        platform.run()
    pruned = platform.root / "radar" / "archive" / described(A).sha256
    pruned.unlink()
    zones, log = platform.zones(FEEDS), platform.lake.log(RAW_RECORDS)
    (warning,) = mark_pruned(zones, log)
    assert f"radar: 1 consumed segments are gone from {pruned.parent}, such as {pruned.name}" in warning
    assert list(mark_pruned(zones, log)) == [], "once"
    platform.deliver("radar", "a again", A)
    platform.drain()
    assert platform.valid() == {"radar/a": 3, "radar/b": 3, "radar/c": 3}
    assert platform.counts()["duplicate"] == 1


def test_a_segment_that_is_not_archived_yet_is_not_taken_for_a_pruned_one__D11(platform: Platform) -> None:
    platform.deliver("radar", "a", A)
    platform.run()
    for name in (described(A).sha256, f"{described(A).sha256}.a.meta.json"):
        (platform.root / "radar" / "archive" / name).rename(
            platform.root / "radar" / "pending" / ("a.meta.json" if name.endswith("json") else "a")
        )
    assert list(mark_pruned(platform.zones(FEEDS), platform.lake.log(RAW_RECORDS))) == []
    platform.run()
    assert (platform.root / "radar" / "archive" / described(A).sha256).read_bytes() == A


def test_the_status_counts_what_became_of_each_zones_segments__spec_115(platform: Platform) -> None:
    for name, data in (("a", A), ("again", A), ("b", B)):
        platform.deliver("radar", name, data)
        platform.drain()
    platform.deliver("radar", "b", C)
    platform.drain()
    platform.deliver("radar", "torn", A[:-1])
    put(LandingZone(str(platform.root), "radar"), "torn", A[:-2])
    platform.drain()
    found = platform_status(platform.lake, str(platform.root), ()).zones
    (radar,) = [zone for zone in found if zone.zone == "radar"]
    assert (radar.acknowledged, radar.duplicate, radar.conflict, radar.quarantined) == (2, 1, 1, 1)


def test_a_missing_segment_of_the_commit_before_the_newest_is_reported_mutant_27(platform: Platform) -> None:
    for name, data in (("a", A), ("b", B), ("c", C)):
        platform.deliver("radar", name, data)
        platform.drain()
    commits = platform.lake.log(RAW_RECORDS).commits()
    for segment in commits[1].manifest.segments:
        Path(str(platform.zones(["radar"])[0].consumed_segments.place(segment)[0])).unlink()
    (problem,) = misplaced_segments(platform.zones(FEEDS), [commit.manifest for commit in commits])
    assert problem.startswith(f"sequence {commits[1].sequence}: radar/")

"""Intake: what the next commit takes from the zones, and that a second delivery is no second commit."""

import math
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform import failpoints
from sda_platform.formats.observations import decode_segments
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.errors import NameUsed, SegmentConflict
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing import intake
from sda_platform.landing.decoding import decode_batch
from sda_platform.landing.segments import REPORTED, LoadedSegment, refused_sha256
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.campaign.disk import Disk, mount
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.segments import committed, described, land, put, radar_segment

DATA, OTHER, THIRD = (radar_segment(3, first_track=n) for n in (0, 100, 200))


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def overwrite(zone: LandingZone, name: str, data: bytes, *, seconds: float = 1.0) -> None:
    """Put data and metadata into the zone past the rules of sealing, as a partner can."""
    put(zone, name, data)
    put(zone, f"{name}.meta.json", described(data, zone.feed, seconds=seconds).to_json().encode())


def take(
    *zones: LandingZone, head: Head | None = None, max_segments: int = 100, max_bytes: int = 10**6
) -> list[LoadedSegment]:
    return intake.take(zones, head or Head(), max_segments=max_segments, max_bytes=max_bytes)


def test_zones_are_taken_together_oldest_seal_first(tmp_path: Path) -> None:
    radar, isl = LandingZone(str(tmp_path), "radar"), LandingZone(str(tmp_path), "isl")
    land(radar, "b", DATA, seconds=3)
    land(isl, "c", OTHER, seconds=2)
    land(radar, "a", THIRD, seconds=1)
    assert [(s.zone, s.name) for s in take(radar, isl)] == [("radar", "a"), ("isl", "c"), ("radar", "b")]


def test_high_priority_is_taken_first_and_none_waits_for_ever__DP4_F8_E25(zone: LandingZone) -> None:
    """At minute 6: a deferred and a low segment of the beginning come before a high one that was sealed just now."""
    waiting = [("deferred", 0), ("low", 10), ("high", 20), ("emergency", 30), (None, 40), ("high", 360)]
    for number, (priority, second) in enumerate(waiting):
        data = radar_segment(1, first_track=number)
        land(zone, f"{second}-{priority}", data, seconds=second, priority=priority)
    order = ["30-emergency", "20-high", "40-None", "10-low", "0-deferred", "360-high"]
    assert [s.name for s in take(zone)] == order


def test_a_batch_keeps_within_its_bounds_but_never_starves(zone: LandingZone) -> None:
    for second, data in enumerate((DATA, OTHER, THIRD)):
        land(zone, f"s{second}", data, seconds=second)
    assert [s.name for s in take(zone, max_segments=2)] == ["s0", "s1"]
    cost = 3 * 96  # three small records cost more than their bytes
    assert [s.name for s in take(zone, max_bytes=2 * cost)] == ["s0", "s1"]
    assert [s.name for s in take(zone, max_bytes=2 * cost - 1)] == ["s0"]
    assert [s.name for s in take(zone, max_bytes=1)] == ["s0"], "a segment larger than a batch is a batch of its own"


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_batch_is_bounded_by_what_was_read_whatever_is_stated_of_it(zone: LandingZone, has_metadata: bool) -> None:
    for name, data in zip("abc", (DATA, OTHER, THIRD), strict=True):
        put(zone, name, data)
        if has_metadata:
            put(zone, f"{name}.meta.json", replace(described(data), bytes=1, records=0).to_json().encode())
    taken = intake.take([zone], Head(), max_segments=100, max_bytes=2 * len(DATA), orphaned_before_s=math.inf)
    assert [each.name for each in taken] == ["a", "b"]


def test_a_second_delivery_in_one_batch_is_taken_once(zone: LandingZone) -> None:
    assert land(zone, "a", DATA)
    assert land(zone, "copy of a", DATA, seconds=2)
    taken = take(zone)
    assert [(s.name, s.is_duplicate) for s in taken] == [("a", False), ("copy of a", True)]
    assert take(zone, head=committed(*taken)) == []
    assert zone.pending_names() == []


def test_a_second_delivery_after_the_commit_is_discarded_under_any_name(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    land(zone, "late copy", DATA)
    head = committed(take(zone, max_segments=1)[0])
    intake.finish_last_commit([zone], head)
    overwrite(zone, "a", DATA)
    taken = take(zone, head=head)
    assert [(s.name, s.is_duplicate) for s in taken] == [("a", True), ("late copy", True)]
    assert zone.pending_names() == ["a", "late copy"], "they go with the commit that counts them"
    assert take(zone, head=committed(*taken)) == []
    assert zone.pending_names() == []


def test_the_name_of_a_second_delivery_is_not_for_other_bytes(zone: LandingZone) -> None:
    """A run that was suspended while it removed the second delivery would remove them."""
    land(zone, "a", DATA)
    land(zone, "copy", DATA)
    assert take(zone, head=committed(*take(zone))) == []
    with pytest.raises(SegmentConflict, match="other bytes were consumed under this name"):
        land(zone, "copy", OTHER)
    assert not land(zone, "copy", DATA), "the same bytes again are known"
    assert zone.pending_files() == []


def test_the_name_of_another_zones_bytes_is_not_for_other_bytes(tmp_path: Path) -> None:
    radar, isl = LandingZone(str(tmp_path), "radar"), LandingZone(str(tmp_path), "isl")
    land(isl, "a", DATA)
    head = committed(*take(radar, isl))
    land(radar, "copy", DATA, seconds=2)
    head = committed(*take(radar, isl, head=head))
    assert take(radar, isl, head=head) == []
    with pytest.raises(SegmentConflict, match="other bytes were consumed under this name"):
        land(radar, "copy", OTHER)
    assert land(radar, "copy", DATA), "this zone has never consumed them"
    assert [s.is_duplicate for s in take(radar, isl)] == [True]


def test_the_name_of_refused_bytes_is_not_for_other_bytes(zone: LandingZone) -> None:
    """The first delivery was refused as a whole, so the archive knows its bytes by zone and format."""
    land(zone, "a", DATA)
    (first,) = take(zone)
    refused = refused_sha256("radar", "ccsds", first.sha256)
    zone.acknowledge([SegmentRef("radar", "a", refused, len(DATA), 0)])
    land(zone, "copy", DATA)
    head = committed(*take(zone))
    assert take(zone, head=head) == []
    with pytest.raises(SegmentConflict, match="other bytes were consumed under this name"):
        land(zone, "copy", OTHER)
    assert not land(zone, "copy", DATA), "the same bytes again are known"


def test_of_two_runs_that_remove_a_second_delivery_the_late_one_removes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is suspended before the removal; the other one ends, and a sender comes with other bytes."""
    radar, isl = LandingZone(str(tmp_path), "radar"), LandingZone(str(tmp_path), "isl")
    land(isl, "a", DATA)
    head = committed(*take(radar, isl))
    land(radar, "copy", DATA, seconds=2)
    head = committed(*take(radar, isl, head=head))
    remove, sealed = radar.discard_duplicate, []

    def late(name: str) -> None:
        intake.finish_last_commit([LandingZone(str(tmp_path), "radar")], head)
        try:
            sealed.append(land(radar, name, OTHER))
        except SegmentConflict:
            sealed.append(land(radar, "other name", OTHER))
        remove(name)

    monkeypatch.setattr(radar, "discard_duplicate", late)
    taken = take(radar, isl, head=head)
    assert sealed == [True]
    assert [s.data for s in taken] == [OTHER]


def test_the_same_bytes_in_another_zone_of_the_table_are_taken_once(tmp_path: Path) -> None:
    """F-dup: next to the first, and after its commit, since that had valid records."""
    radar, isl = LandingZone(str(tmp_path), "radar"), LandingZone(str(tmp_path), "isl")
    land(radar, "a", DATA)
    land(isl, "a", DATA, seconds=2)
    taken = take(radar, isl)
    assert [(s.zone, s.name) for s in taken] == [("radar", "a")], "the other waits for what becomes of this one"
    land(isl, "late", DATA, seconds=2)
    again = take(radar, isl, head=committed(*taken))
    assert [(s.zone, s.name, s.is_duplicate) for s in again] == [("isl", "a", True), ("isl", "late", True)]
    assert take(radar, isl, head=committed(*again)) == []
    assert (radar.pending_names(), isl.pending_names()) == ([], [])


def test_a_crash_before_the_clean_up_is_repaired_by_the_next_take(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    head = committed(*take(zone))
    assert take(zone, head=head) == []
    assert zone.pending_names() == []
    assert zone.consumed_segments.holds(described(DATA).sha256)


def test_a_crash_inside_the_clean_up_is_repaired_by_the_next_take(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    head = committed(*take(zone))
    (Path(str(zone.root)) / "pending" / "a.meta.json").unlink()
    assert take(zone, head=head) == []
    assert zone.pending_files() == []
    assert zone.consumed_segments.holds(described(DATA).sha256)


def test_a_crash_before_the_commit_takes_the_same_segments_again(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    assert take(zone) == take(zone)


def test_other_bytes_under_a_consumed_name_are_a_conflict_and_quarantined__spec_94(zone: LandingZone) -> None:
    """Kept and reported, never ingested by themselves; the same bytes again are a second delivery of the conflict."""
    land(zone, "catalogue.csv", DATA)
    head = committed(*take(zone))
    intake.finish_last_commit([zone], head)
    with pytest.raises(SegmentConflict, match="other bytes were consumed under this name"):
        land(zone, "catalogue.csv", OTHER)
    for expected in ("catalogue.csv: other bytes were consumed under this name", REPORTED):
        overwrite(zone, "catalogue.csv", OTHER)
        (taken,) = take(zone, head=head)
        assert (taken.data, taken.defect) == (OTHER, expected)
        head = committed(taken)
        assert take(zone, head=head) == []
        assert zone.pending_files() == []
    kept = [path.read_bytes() for path in Path(str(zone.root), "quarantine").iterdir()]
    assert sorted(kept) == sorted([OTHER, described(OTHER).to_json().encode()])


def test_a_conflict_is_acknowledged_whatever_step_was_killed__spec_94(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([s.ref(3) for s in take(zone)])
    overwrite(zone, "a", OTHER)
    (conflict,) = take(zone)
    for step in crashes():
        with step:
            zone.acknowledge([conflict.ref(1)])
    assert zone.pending_files() == []
    assert zone.load_consumed(conflict.ref(1)) == conflict


def test_a_name_is_marked_only_after_the_metadata_was_archived__spec_94() -> None:
    """A mark alone would make a conflict of the segment itself, once the commit that consumed it was undone."""
    early: list[str] = []

    def look(_kind: str, _path: str) -> None:
        marks, archive = (list(disk.below(f"/landing/radar/{place}")) for place in ("names", "archive"))
        early.extend(mark for mark in marks if not any(f".{Path(mark).name}.meta.json" in path for path in archive))

    disk = Disk(step=look)
    mount(disk)
    zone = LandingZone("sim:///landing", "radar")
    land(zone, "a", DATA)
    (taken,) = take(zone)
    zone.acknowledge([taken.ref(3)])
    assert disk.names.keys() >= {"/landing/radar/names/a"}
    assert early == []


def test_a_clean_up_that_is_repeated_makes_no_conflict_of_what_came_since__spec_94() -> None:
    """A power loss took the mark of the name alone, and a sender was promised the next file of this name."""
    disk = Disk()
    mount(disk)
    zone = LandingZone("sim:///landing", "radar")
    land(zone, "a", DATA)
    head = committed(*take(zone))
    intake.finish_last_commit([zone], head)
    disk.unlink("/landing/radar/names/a")
    land(zone, "a", OTHER)
    assert [(s.data, s.defect) for s in take(zone, head=head)] == [(OTHER, None)]


def test_a_mark_without_an_archived_segment_is_removed_for_good__spec_94() -> None:
    """No power loss brings it back; the name is free again. A name that is too long for the archive keeps its mark."""
    disk, long_name = Disk(), "n" * 200
    mount(disk)
    zone = LandingZone("sim:///landing", "radar")
    land(zone, long_name, OTHER)
    zone.acknowledge([s.ref(3) for s in take(zone)])
    zone.consumed_segments.name_mark("a").touch()
    disk.sync("/landing/radar/names")
    zone.consumed_segments.forget_unbacked_names()
    disk.lose_power("drop", Random(1))
    assert list(disk.below("/landing/radar/names")) == [f"/landing/radar/names/{long_name}"]
    land(zone, "a", DATA)
    assert [(s.name, s.defect) for s in take(zone)] == [("a", None)]


def test_other_bytes_that_a_dead_lander_left_under_a_consumed_name_are_refused__spec_94(zone: LandingZone) -> None:
    """It was killed before it looked whether the name was used. The next attempt must not accept a conflict."""
    land(zone, "a", DATA)
    zone.acknowledge([s.ref(3) for s in take(zone)])
    put(zone, "a", OTHER)
    with pytest.raises(NameUsed, match="other bytes were consumed under this name"):
        land(zone, "a", OTHER)
    assert zone.pending_files() == []


def test_a_file_is_no_conflict_with_itself_whatever_step_of_its_clean_up_was_killed__spec_94(zone: LandingZone) -> None:
    """Its sender, who has no answer yet, sends it again between the moves of metadata and data."""
    land(zone, "a", DATA)
    (taken,) = take(zone)
    for step in crashes():
        with step:
            zone.acknowledge([taken.ref(3)])
        land(zone, "a", DATA)
    assert zone.pending_files() == []
    assert zone.load_consumed(taken.ref(3)) == taken


def test_a_copy_that_another_run_removes_after_the_listing_is_no_dead_letter(zone: LandingZone) -> None:
    """The other run was overtaken while it removed a second delivery; the sender had sent the file a third time."""
    land(zone, "a", DATA)
    zone.acknowledge([s.ref(3) for s in take(zone)])
    overwrite(zone, "a", DATA)

    def strike(point: str) -> None:
        if point == "intake.listed":
            zone.discard_duplicate("a")

    failpoints.watch(strike)
    try:
        assert take(zone) == []
    finally:
        failpoints.watch(None)


def test_a_segment_that_is_put_back_gives_its_name_free__spec_94(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (taken,) = take(zone)
    zone.acknowledge([taken.ref(3)])
    zone.restore([taken.ref(3)])
    assert take(zone) == [taken]


def test_a_thousand_segments_that_wait_while_nothing_commits_are_all_taken_in_their_order__spec_5(
    zone: LandingZone,
) -> None:
    """Names run against the order of the seals; every batch is cut short by a crash before its commit, and repeated."""
    for n in range(1000):
        data = radar_segment(1, first_track=n)
        overwrite(zone, f"s{999 - n:03d}", data, seconds=float(n))
    head, order = Head(), []
    while taken := take(zone, head=head, max_segments=256):
        assert take(zone, head=head, max_segments=256) == taken
        order += [s.name for s in taken]
        head = committed(*taken)
    assert order == [f"s{999 - n:03d}" for n in range(1000)]
    assert zone.pending_files() == []


def test_a_defect_does_not_count_as_a_delivery_of_what_it_was_meant_to_be(zone: LandingZone) -> None:
    zone.seal("a", DATA[:-1], described(DATA))
    (torn,) = take(zone)
    assert torn.defect == "a: truncated: has 215 bytes, metadata says 216"
    head = committed(torn)
    assert take(zone, head=head) == []
    assert land(zone, "a", DATA), "the partner sends it again, whole"
    assert [(s.data, s.defect) for s in take(zone, head=head)] == [(DATA, None)]


def test_sound_bytes_with_wrong_metadata_are_a_defect_even_next_to_their_twin(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.seal("b", DATA, replace(described(DATA), sha256="0" * 64))
    assert [(s.name, s.defect is None) for s in take(zone)] == [("a", True), ("b", False)]


def test_every_defective_segment_is_reported_even_when_their_bytes_are_equal(zone: LandingZone) -> None:
    """Two files torn to nothing are two losses, and each must become a dead letter."""
    zone.seal("a", b"", described(DATA))
    zone.seal("b", b"", described(OTHER))
    taken = take(zone)
    assert [s.name for s in taken] == ["a", "b"]
    assert len({s.sha256 for s in taken}) == 2, "rows are keyed by (segment, record)"


def test_the_same_defect_delivered_again_is_reported_once(zone: LandingZone) -> None:
    zone.seal("a", b"torn", described(DATA))
    head = committed(*take(zone))
    intake.finish_last_commit([zone], head)
    zone.seal("a", b"torn", described(DATA))
    again = take(zone, head=head)
    assert [s.is_duplicate for s in again] == [True]
    assert take(zone, head=committed(*again)) == []
    assert zone.pending_names() == []


def consume_all(zone: LandingZone, head: Head) -> tuple[list[LoadedSegment], Head]:
    """Batch after batch of at most two segments, each committed and cleaned up."""
    consumed: list[LoadedSegment] = []
    while taken := take(zone, head=head, max_segments=2):
        consumed += taken
        head = committed(*taken)
    return consumed, head


@settings(max_examples=25)
@given(order=st.permutations(range(6)), arrivals=st.lists(st.integers(1, 3), max_size=6))
def test_in_whatever_order_names_arrive_each_is_consumed_once(order: list[int], arrivals: list[int]) -> None:
    """F-order: below all names seen, in reverse, between batches: membership decides, not a mark."""
    with tempfile.TemporaryDirectory() as folder:
        zone, head, consumed = LandingZone(folder, "radar"), Head(), []
        names = iter(order)
        for count in [*arrivals, 6]:
            for n in islice(names, count):
                assert land(zone, f"s{n}", radar_segment(1, first_track=n), seconds=n)
            taken, head = consume_all(zone, head)
            consumed += taken
        assert sorted(s.name for s in consumed) == [f"s{n}" for n in range(6)]
        assert [s.defect for s in consumed] == [None] * 6


CHANGES = {
    "overwritten": lambda path: path.write_bytes(OTHER),
    "appended to": lambda path: path.write_bytes(DATA + b"more"),
    "truncated": lambda path: path.write_bytes(DATA[:-1]),
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_changed_between_listing_and_reading_is_reported_and_never_taken_for_what_it_was(
    zone: LandingZone, change: str
) -> None:
    """F-conflict: what its metadata promises decides; the bytes found are kept, and the sender may repeat it."""
    land(zone, "a", DATA)
    path = Path(str(zone.root)) / "pending" / "a"
    failpoints.watch(lambda point: CHANGES[change](path) if point == "intake.listed" else None)
    try:
        (taken,) = take(zone)
    finally:
        failpoints.watch(None)
    assert taken.defect is not None
    assert take(zone, head=committed(taken)) == []
    assert zone.load_consumed(taken.ref(1)).data == taken.data
    assert not zone.consumed_segments.holds(described(DATA).sha256)
    assert land(zone, "a", DATA)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_changed_between_reading_and_clean_up_is_consumed_as_it_was_read(
    zone: LandingZone, change: str
) -> None:
    """F-conflict: the table holds what was read; a file that is there now is reported and not lost."""
    land(zone, "a", DATA)
    (taken,) = take(zone)
    CHANGES[change](Path(str(zone.root)) / "pending" / "a")
    rest = take(zone, head=committed(taken))
    assert (taken.data, taken.defect) == (DATA, None)
    assert [segment.defect is None for segment in rest] == ([] if change == "deleted" else [False])
    assert zone.consumed_segments.holds(described(DATA).sha256)
    assert not land(zone, "again", DATA), "and it is not consumed twice"


@pytest.mark.parametrize("length", [0, 1, 100, 215])
def test_a_torn_file_that_is_completed_later_is_consumed_once(zone: LandingZone, length: int) -> None:
    """F-torn: its beginning was reported as a defect; the whole is a segment."""
    zone.seal("a", DATA[:length], described(DATA))
    consumed, head = consume_all(zone, Head())
    assert [s.defect for s in consumed] == [f"a: truncated: has {length} bytes, metadata says 216"]
    for _ in range(2):
        land(zone, "a", DATA)
        taken, head = consume_all(zone, head)
        consumed += taken
    assert [s.data for s in consumed if s.defect is None] == [DATA]


def test_a_segment_of_which_every_record_was_refused_is_read_again_as_what_it_was(zone: LandingZone) -> None:
    """So a replay of the commit finds the same rows, under the same hash."""
    whole = radar_segment(1)
    land(zone, "cut", whole[:-1])
    taken = take(zone)
    first = decode_batch(RAW_RECORDS, taken, decode_segments)
    assert (first.counts["landed"], first.counts["dead"]) == (1, 1)
    assert first.segments[0].sha256 != taken[0].sha256
    zone.acknowledge(list(first.segments))
    again = decode_batch(RAW_RECORDS, [zone.load_consumed(each) for each in first.segments], decode_segments)
    assert again.segments == first.segments
    assert again.rows.equals(first.rows)

"""Landing zones: when a segment is there, what is wrong with it, and how it leaves."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pytest
from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.errors import SegmentConflict, SegmentLost
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing.segments import DUPLICATE
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.campaign.disk import Disk, mount
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.segments import described, land, put, radar_segment

DATA = radar_segment(3)
OTHER = radar_segment(3, first_track=100)


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def files(zone: LandingZone, place: str) -> dict[str, bytes]:
    folder = Path(str(zone.root)) / place
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())} if folder.exists() else {}


def overwrite(zone: LandingZone, name: str, data: bytes) -> None:
    """Put data and metadata into the zone past the rules of sealing, as a partner can."""
    put(zone, name, data)
    put(zone, f"{name}.meta.json", described(data).to_json().encode())


def ref(name: str, data: bytes = DATA) -> SegmentRef:
    return SegmentRef("radar", name, hashlib.sha256(data).hexdigest(), len(data), 3)


def consumed(name: str, data: bytes = DATA) -> dict[str, bytes]:
    """The archive's files of one sound segment."""
    sha256 = hashlib.sha256(data).hexdigest()
    return {sha256: data, f"{sha256}.{name}.meta.json": described(data).to_json().encode()}


def loaded(zone: LandingZone) -> tuple[bytes, str | None]:
    """Bytes and defect of the one segment that waits."""
    (segment,) = map(zone.read, zone.pending())
    return segment.data, segment.defect


def test_a_sealed_segment_is_pending_and_reads_back_whole(zone: LandingZone) -> None:
    assert zone.pending() == []
    assert land(zone, "a", DATA)
    (segment,) = zone.pending()
    assert (segment.name, segment.meta, segment.defect) == ("a", described(DATA), None)
    assert zone.pending_names() == ["a"]
    assert loaded(zone) == (DATA, None)


def test_data_without_metadata_is_not_there_yet(zone: LandingZone) -> None:
    put(zone, "a", DATA)
    assert (zone.pending(), zone.pending_names()) == ([], [])


def test_a_half_written_file_is_invisible(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (Path(str(zone.root)) / "pending" / ".b.tmp").write_bytes(b"half")
    assert zone.pending_names() == ["a"]


def test_segments_come_in_the_order_of_their_seals(zone: LandingZone) -> None:
    land(zone, "a", DATA, seconds=3)
    land(zone, "b", OTHER, seconds=2)
    assert [s.name for s in zone.pending()] == ["b", "a"]


def test_sealing_the_same_segment_again_changes_nothing(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    before = files(zone, "pending")
    assert not land(zone, "a", DATA)
    assert files(zone, "pending") == before


def test_sealing_what_was_consumed_is_refused_under_any_name(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    assert not land(zone, "a", DATA)
    assert not land(zone, "b", DATA)
    assert files(zone, "pending") == {}


@pytest.mark.parametrize(
    ("data", "defect"),
    [
        (DATA[:-1], "a: truncated: has 215 bytes, metadata says 216"),
        (b"", "a: truncated: has 0 bytes, metadata says 216"),
        (DATA[:-1] + b"x", f"a: checksum differs from the metadata's {hashlib.sha256(DATA).hexdigest()[:12]}…"),
    ],
)
def test_data_that_is_not_what_its_metadata_promises_is_a_defect(zone: LandingZone, data: bytes, defect: str) -> None:
    zone.seal("a", data, described(DATA))
    assert loaded(zone) == (data, defect)


def test_metadata_without_data_is_not_there_yet(zone: LandingZone) -> None:
    put(zone, "a.meta.json", described(DATA).to_json().encode())
    assert (zone.pending(), zone.pending_names()) == ([], [])


def test_data_that_vanishes_after_the_listing_is_a_defect(zone: LandingZone) -> None:
    """F-conflict: deleted between listing and reading."""
    land(zone, "a", DATA)
    (listed,) = zone.pending()
    (Path(str(zone.root)) / "pending" / "a").unlink()
    assert zone.read(listed).defect == "a: truncated: has 0 bytes, metadata says 216"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "a: metadata unreadable: not JSON"),
        (b"[]", "a: metadata unreadable: not a JSON object but a list"),
        (b"\xff\xfe", "a: metadata unreadable: not JSON"),
        (
            json.dumps({**asdict(described(DATA)), "sha256": "short"}).encode(),
            "a: metadata unreadable: sha256 is 'short'",
        ),
        (json.dumps({**asdict(described(DATA)), "records": -1}).encode(), "a: metadata unreadable: records is -1"),
        (described(DATA, "isl").to_json().encode(), "a: unknown feed 'isl' in the zone of radar"),
    ],
)
def test_metadata_that_cannot_be_used_is_a_defect_that_says_why(zone: LandingZone, text: bytes, reason: str) -> None:
    put(zone, "a", DATA)
    put(zone, "a.meta.json", text)
    (segment,) = zone.pending()
    data, defect = loaded(zone)
    assert (data, segment.meta) == (DATA, None)
    assert defect is not None
    assert defect.startswith(reason)


def test_acknowledging_archives_data_and_metadata_by_content_and_can_be_repeated(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    for _ in range(3):
        zone.acknowledge([ref("a")])
        assert files(zone, "pending") == {}
        assert files(zone, "archive") == consumed("a")
    assert zone.consumed_segments.holds(hashlib.sha256(DATA).hexdigest())


def test_a_clean_up_that_is_killed_at_any_step_is_finished_by_the_next_and_never_waits_again(zone: LandingZone) -> None:
    """CP-17, CP-18, CP-19: the metadata leaves first, so what was consumed is never seen as pending by halves."""
    land(zone, "a", DATA)
    land(zone, "b", OTHER)
    for step in crashes():
        with step:
            zone.acknowledge([ref("a"), ref("b", OTHER)])
        assert set(zone.pending_names()) <= {"a", "b"}
        assert all(zone.read(segment).defect is None for segment in zone.pending())
    assert files(zone, "pending") == {}
    assert files(zone, "archive") == consumed("a") | consumed("b", OTHER)


def test_a_seal_that_is_killed_at_any_step_is_finished_by_the_next(zone: LandingZone) -> None:
    """CP-04, CP-05, CP-06: a partial file is ignored, and data counts only once its metadata is there."""
    for step in crashes():
        assert [segment.defect for segment in zone.pending()] in ([], [None])
        with step:
            land(zone, "a", DATA)
    assert loaded(zone) == (DATA, None)
    assert not land(zone, "a", DATA)


def test_what_was_consumed_can_be_read_again_as_it_was_taken(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (taken,) = map(zone.read, zone.pending())
    zone.acknowledge([taken.ref(3)])
    assert zone.load_consumed(taken.ref(3)) == taken
    assert zone.consumed_segments.names() == {taken.sha256: "a"}


def test_a_defective_segment_goes_to_quarantine_with_its_metadata_and_can_be_read_again(zone: LandingZone) -> None:
    zone.seal("a", b"torn", described(DATA))
    (taken,) = map(zone.read, zone.pending())
    zone.acknowledge([taken.ref(1)])
    assert (files(zone, "pending"), files(zone, "archive")) == ({}, {})
    assert list(files(zone, "quarantine").values()) == [b"torn", described(DATA).to_json().encode()]
    assert zone.load_consumed(taken.ref(1)) == taken


@pytest.mark.parametrize("data", [DATA, b"torn"])
def test_a_restored_segment_waits_again_whatever_step_was_killed(zone: LandingZone, data: bytes) -> None:
    zone.seal("a", data, described(DATA))
    (taken,) = map(zone.read, zone.pending())
    zone.acknowledge([taken.ref(3)])
    for step in crashes():
        with step:
            zone.restore([taken.ref(3)])
    assert list(map(zone.read, zone.pending())) == [taken]
    assert files(zone, "archive") == files(zone, "quarantine") == {}


def test_an_archive_that_lost_or_changed_a_segment_says_so(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    archive = Path(str(zone.root)) / "archive"
    for spoil, words in (
        (lambda: (archive / f"{ref('a').sha256}.a.meta.json").unlink(), "the metadata of radar/a is missing"),
        (lambda: (archive / ref("a").sha256).write_bytes(b"x"), r"radar/a, which a commit consumed, has other bytes"),
        (lambda: (archive / ref("a").sha256).unlink(), "radar/a, which a commit consumed, is missing"),
    ):
        spoil()
        with pytest.raises(SegmentLost, match=words):
            zone.load_consumed(ref("a"))
    with pytest.raises(SegmentLost):
        zone.restore([ref("a")])


def test_segments_are_restored_all_or_none(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    with pytest.raises(SegmentLost):
        zone.restore([ref("a"), ref("b", OTHER)])
    assert files(zone, "pending") == {}


def test_a_segment_whose_name_is_taken_is_restored_under_its_hash_whatever_step_was_killed(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    overwrite(zone, "a", OTHER)
    for step in crashes():
        with step:
            zone.restore([SegmentRef("radar", name, sha, 0, 0) for sha, name in zone.consumed_segments.names().items()])
    assert {(s.name, zone.read(s).data) for s in zone.pending()} == {("a", OTHER), (ref("a").sha256, DATA)}


def test_a_defective_segment_is_known_by_its_name_and_waits_for_it_when_restored(zone: LandingZone) -> None:
    zone.seal("a", b"torn", described(DATA))
    (torn,) = (zone.read(segment).ref(1) for segment in zone.pending())
    zone.acknowledge([torn])
    land(zone, "a", OTHER)
    with pytest.raises(SegmentConflict, match="other bytes are pending"):
        zone.restore([torn])
    assert loaded(zone) == (OTHER, None)


def test_a_second_delivery_that_waits_does_not_keep_a_restored_segment_from_being_taken(zone: LandingZone) -> None:
    """What rests in the archive counts as consumed, so nothing of it may stay there."""
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    put(zone, "a", DATA)
    zone.restore([ref("a")])
    assert not zone.consumed_segments.holds(ref("a").sha256)
    assert loaded(zone) == (DATA, None)


def test_the_archive_knows_equal_bytes_by_the_name_under_which_they_were_consumed(
    zone: LandingZone, tmp_path: Path
) -> None:
    """One zone's copy may come back under another name than the other's, though one hash represents both."""
    other_zone = LandingZone(str(tmp_path), "isl")
    for each, name in ((zone, "a.seg"), (other_zone, "b.seg")):
        put(each, name, DATA)
        put(each, f"{name}.meta.json", described(DATA, each.feed).to_json().encode())
        each.acknowledge([SegmentRef(each.feed, name, ref("a").sha256, len(DATA), 3)])
    assert zone.consumed_segments.names() == {ref("a").sha256: "a.seg"}
    assert other_zone.consumed_segments.names() == {ref("a").sha256: "b.seg"}


def test_an_archive_of_an_earlier_version_knows_no_names_and_gives_segments_back_by_their_hash(
    zone: LandingZone,
) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    archive, sha256 = Path(str(zone.root)) / "archive", ref("a").sha256
    (archive / f"{sha256}.a.meta.json").rename(archive / f"{sha256}.meta.json")
    assert zone.consumed_segments.names() == {sha256: sha256}
    assert zone.load_consumed(ref("a")).data == DATA
    zone.restore([ref(sha256)])
    assert [segment.name for segment in zone.pending()] == [sha256]


def test_a_name_that_is_too_long_to_stand_next_to_the_hash_is_not_kept(zone: LandingZone) -> None:
    name = "n" * 200
    land(zone, name, DATA)
    zone.acknowledge([ref(name)])
    assert zone.consumed_segments.names() == {ref(name).sha256: ref(name).sha256}
    assert zone.load_consumed(ref(name)).data == DATA


def test_other_bytes_under_a_name_that_waits_are_refused_and_nothing_is_overwritten(zone: LandingZone) -> None:
    """F-conflict: the sender learns it, instead of hearing that these bytes had come before."""
    land(zone, "a", DATA)
    with pytest.raises(SegmentConflict, match="other bytes are pending under this name"):
        land(zone, "a", OTHER)
    put(zone, "lone", DATA)
    with pytest.raises(SegmentConflict, match="other bytes are pending under this name"):
        land(zone, "lone", OTHER)
    assert loaded(zone) == (DATA, None)


def test_consumed_data_that_vanished_before_the_clean_up_leaves_no_trace_of_a_loss(zone: LandingZone) -> None:
    """F-conflict: its records are in the table, so its lone metadata must not become a defect."""
    land(zone, "a", DATA)
    (Path(str(zone.root)) / "pending" / "a").unlink()
    zone.acknowledge([ref("a")])
    assert files(zone, "pending") == {}
    assert zone.consumed_segments.holds(ref("a").sha256)


def test_acknowledging_leaves_new_data_alone_that_came_under_an_old_name(zone: LandingZone) -> None:
    """A partner gives every day's file one name: yesterday's clean-up, repeated, must not take today's file."""
    land(zone, "catalogue.csv", DATA)
    zone.acknowledge([ref("catalogue.csv")])
    with pytest.raises(SegmentConflict, match="other bytes were consumed under this name"):
        land(zone, "catalogue.csv", OTHER)
    overwrite(zone, "catalogue.csv", OTHER)
    zone.acknowledge([ref("catalogue.csv")])
    assert loaded(zone) == (OTHER, None)
    assert files(zone, "archive") == consumed("catalogue.csv")


def test_a_clean_up_next_to_another_at_any_of_its_steps_keeps_the_archived_bytes() -> None:
    """A run that is overtaken misses data that the other run has just moved. It must not archive them as lost."""
    at = 1
    while True:
        archived, steps = overtaken(at)
        assert archived == DATA, at
        if steps < at:
            break
        at += 1
    assert at > 20


def overtaken(at: int) -> tuple[bytes, int]:
    """The archived bytes where another run cleans up at step ``at`` of the first run, and the steps of both."""
    steps, disk = 0, Disk()
    mount(disk)
    zone = LandingZone("sim:///landing", "radar")
    land(zone, "a", DATA)

    def overtake(_kind: str, _path: str) -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            zone.acknowledge([ref("a")])

    disk.step = overtake
    zone.acknowledge([ref("a")])
    return disk.file(f"/landing/radar/archive/{ref('a').sha256}").data, steps


def test_of_a_discarded_duplicate_the_metadata_goes_first_so_a_crash_leaves_no_loss_to_report(
    zone: LandingZone,
) -> None:
    """Metadata alone would be taken for a segment that lost its data."""
    overwrite(zone, "a", DATA)
    (found,) = map(zone.read, zone.pending())
    left = []
    for step in crashes():
        with step:
            zone.acknowledge([found.refused(DUPLICATE).ref(0)])
        left.append(set(files(zone, "pending")))
    assert left == [{"a"}, set()]
    assert files(zone, "archive") == {}


@pytest.mark.parametrize("claimed", [2, 4])
def test_another_number_of_records_than_promised_is_a_defect(zone: LandingZone, claimed: int) -> None:
    land(zone, "a", DATA, records=claimed)
    assert loaded(zone) == (DATA, f"a: metadata says {claimed} records, found 3")


def test_what_was_replaced_between_reading_and_clean_up_is_known_as_consumed_and_reported_as_a_defect(
    zone: LandingZone,
) -> None:
    """F-conflict: what was read is what the table holds; what lies there now is neither taken for it nor lost."""
    land(zone, "a", DATA)
    put(zone, "a", OTHER)
    zone.acknowledge([ref("a")])
    assert zone.consumed_segments.holds(hashlib.sha256(DATA).hexdigest())
    data, defect = loaded(zone)
    assert (data, str(defect)[:20]) == (OTHER, "a: checksum differs ")


def test_a_consumed_segment_that_cannot_be_looked_up_is_no_absent_one(zone: LandingZone) -> None:
    assert not zone.consumed_segments.holds("a" * 64)
    (Path(str(zone.root)) / "archive").mkdir(parents=True)
    with pytest.raises(OSError, match="too long"):
        zone.consumed_segments.holds("a" * 300)


def test_what_is_restored_is_on_disk_before_its_metadata_waits_mutant_14(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata alone would be taken for that of a consumed segment."""
    zone, steps = LandingZone(str(tmp_path), "radar"), list[str]()
    land(zone, "a", radar_segment(1))
    segment = zone.read(next(iter(zone.pending()))).ref(1)
    zone.acknowledge([segment])
    sync = durable.sync

    def noted(paths: Iterable[UPath]) -> None:
        steps.append("synced")
        sync(paths)

    monkeypatch.setattr(durable, "sync", noted)
    failpoints.watch(steps.append)
    try:
        zone.restore([segment])
    finally:
        failpoints.watch(None)
    moved, described_again = steps.index("landing.data_restored"), steps.index("landing.metadata_restored")
    assert "synced" in steps[moved:described_again]
    assert "synced" in steps[described_again:]


@pytest.mark.parametrize("meta", [None, DATA, OTHER], ids=["no_metadata", "its_metadata", "other_metadata"])
@pytest.mark.parametrize("data", [None, DATA, OTHER], ids=["no_data", "its_data", "other_data"])
def test_a_sealed_segment_waits_whole_whatever_lay_there(
    zone: LandingZone, data: bytes | None, meta: bytes | None
) -> None:
    """A crash, a power loss or a partner left it."""
    if data is not None:
        put(zone, "a", data)
    if meta is not None:
        put(zone, "a.meta.json", described(meta).to_json().encode())
    if data == OTHER:
        with pytest.raises(SegmentConflict):
            land(zone, "a", DATA)
        assert files(zone, "pending")["a"] == OTHER
        return
    assert land(zone, "a", DATA) == (meta != DATA)
    assert loaded(zone) == (DATA, None)

"""Old segments go when the table has their rows; what is delivered again is recognised still."""

import math
import time
from pathlib import Path

import pytest

from sda_platform.history.maintenance import maintain_all
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.errors import SegmentLost
from sda_platform.lake.manifest import SegmentRef, TableSnapshot
from sda_platform.lake.retention import Retention
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.landing.consumed_marks import mark_pruned
from sda_platform.landing.expiry import ExpiredSegments, expire_segments
from sda_platform.landing.listing import changed_s
from sda_platform_tests.support.crashes import crash_at
from sda_platform_tests.support.landed_deliveries import FEEDS, A, B, C, Platform
from sda_platform_tests.support.segments import described, put, radar_segment

LATER_S = time.time() + 10**8


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    """Segments a and b are old, c is of the newest commit; one segment was quarantined."""
    made = Platform(tmp_path)
    made.deliver("radar", "a", A)
    put(made.zones(["radar"])[0], "torn", B[:-7])
    put(made.zones(["radar"])[0], "torn.meta.json", described(B).to_json().encode())
    for name, data in (("b", B), ("c", C)):
        made.drain()
        made.deliver("radar", name, data)
    made.drain()
    return made


def expire(platform: Platform, before_s: float = LATER_S) -> ExpiredSegments:
    return expire_segments(platform.zones(FEEDS), platform.lake.log(RAW_RECORDS), before_s=before_s)


def kept_bytes(platform: Platform) -> dict[str, int]:
    """What has content below the places of consumed segments, by name."""
    radar = platform.root / "radar"
    files = [f for place in ("archive", "quarantine") for f in (radar / place).iterdir() if f.stat().st_size]
    return {file.name: file.stat().st_size for file in files}


def of(data: bytes, name: str) -> SegmentRef:
    return SegmentRef("radar", name, described(data).sha256, len(data), 3)


def test_old_segments_leave_an_empty_mark_and_those_of_the_newest_commit_stay__DL6_F5(platform: Platform) -> None:
    before = kept_bytes(platform)
    assert len(before) == 8
    done = expire(platform)
    newest = described(C).sha256
    assert set(kept_bytes(platform)) == {newest, f"{newest}.c.meta.json"}
    assert (done.segments, done.freed_bytes) == (3, len(A) + len(B) + len(B[:-7]))
    with pytest.raises(SegmentLost, match="radar/a, which a commit consumed"):
        platform.zones(["radar"])[0].load_consumed(of(A, "a"))
    assert expire(platform) == ExpiredSegments()
    assert list(mark_pruned(platform.zones(FEEDS), platform.lake.log(RAW_RECORDS))) == []


def test_a_second_delivery_of_an_expired_segment_doubles_nothing__D11(platform: Platform) -> None:
    expire(platform)
    valid, quarantined = platform.valid(), platform.counts()["quarantined"]
    platform.deliver("radar", "a", A)
    platform.deliver("radar", "a again", A)
    put(platform.zones(["radar"])[0], "torn", B[:-7])
    put(platform.zones(["radar"])[0], "torn.meta.json", described(B).to_json().encode())
    platform.drain()
    assert platform.valid() == valid
    assert (platform.counts()["duplicate"], platform.counts()["quarantined"]) == (3, quarantined)


def test_old_marks_of_second_deliveries_go_and_young_ones_stay(platform: Platform) -> None:
    platform.deliver("radar", "a again", A)
    platform.drain()
    platform.drain()
    mark = platform.zones(["radar"])[0].consumed_segments.name_mark("a again")
    expire(platform, before_s=time.time() - 3600)
    assert mark.exists()
    expire(platform)
    assert not mark.exists()


def test_what_came_at_the_very_time_stays_and_what_came_before_it_goes(platform: Platform) -> None:
    platform.deliver("radar", "a again", A)
    platform.drain()
    radar = platform.root / "radar"
    sound = radar / "archive" / f"{described(A).sha256}.a.meta.json"
    (defective,) = (file for file in (radar / "quarantine").iterdir() if not file.name.endswith(".meta.json"))
    again = Path(str(platform.zones(["radar"])[0].consumed_segments.name_mark("a again")))
    for file in sorted((sound, defective, again), key=lambda file: changed_s(file.stat())):
        at_s = changed_s(file.stat())
        expire(platform, before_s=at_s)
        assert changed_s(file.stat()) == at_s
        expire(platform, before_s=math.nextafter(at_s, math.inf))
        assert not file.exists() or not file.stat().st_size


def test_young_segments_stay(platform: Platform) -> None:
    before = kept_bytes(platform)
    assert expire(platform, before_s=time.time() - 3600) == ExpiredSegments()
    assert kept_bytes(platform) == before


def test_a_segment_stays_whose_rows_the_table_lacks(platform: Platform) -> None:
    archive = platform.root / "radar" / "archive"
    lost = radar_segment(3, first_track=900)
    sha256 = described(lost).sha256
    (archive / sha256).write_bytes(lost)
    (archive / f"{sha256}.lost.meta.json").write_text(described(lost).to_json())
    expire(platform)
    assert platform.zones(["radar"])[0].load_consumed(of(lost, "lost")).data == lost


def test_a_removal_that_is_killed_is_finished_by_the_next__DL6_A6(platform: Platform) -> None:
    for nth in (1, 2):
        with crash_at("landing.expired:radar", nth):
            expire(platform)
    assert expire(platform).segments == 2, "the first was finished by the second removal"
    newest = described(C).sha256
    assert set(kept_bytes(platform)) == {newest, f"{newest}.c.meta.json"}


def test_the_maintenance_removes_them_unless_a_reader_or_a_repair_may_need_them__DL4_I8(
    platform: Platform,
) -> None:
    now_ms = round(LATER_S * 1000)

    def night() -> int:
        done = maintain_all(
            platform.lake,
            (RAW_RECORDS,),
            now_ms=now_ms,
            retention=Retention(evidence_days=0),
            is_manual=True,
            zones_of=lambda _table: platform.zones(FEEDS),
        )
        return int(done["removed_segments"])

    with VersionLeases(platform.lake.uri).held([TableSnapshot(RAW_RECORDS.name, 0, 1)], "replay"):
        assert night() == 0
    assert night() == 3

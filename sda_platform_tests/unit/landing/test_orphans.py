"""Orphans: what no segment accounts for is left alone for the grace time, then told, then out of the way."""

import math
import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.tables import RECEIVED_CDMS
from sda_platform.definitions import defs
from sda_platform.formats.registry import ZONES
from sda_platform.ingest.checks import no_orphans
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.log_commits import Head
from sda_platform.landing import intake, orphans
from sda_platform.landing.listing import move_new
from sda_platform.landing.orphans import find_orphans, orphaned_names, unknown_zones
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.backlog import Backlog, backlog_of
from sda_platform.orchestration.resources import LandingResource
from sda_platform.setting_sections import IntakeSettings
from sda_platform_tests.support.segments import committed, described, land, put, radar_segment

DATA = radar_segment(3)
OTHER = radar_segment(3, first_track=100)
META = described(DATA).to_json().encode()
# A file is as old as its last change of content or name; only times to come can be set as a test needs them.
T0 = 4_000_000_000.0


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def place(zone: LandingZone, name: str, data: bytes, changed_s: float = T0) -> None:
    put(zone, name, data)
    os.utime(Path(str(zone.root)) / "pending" / name, (changed_s, changed_s))


def take(*zones: LandingZone, head: Head | None = None, before_s: float = math.inf) -> list[LoadedSegment]:
    return intake.take(zones, head or Head(), max_segments=100, max_bytes=10**6, orphaned_before_s=before_s)


def files(zone: LandingZone, folder: str) -> set[str]:
    path = Path(str(zone.root)) / folder
    return {p.name for p in path.iterdir()} if path.exists() else set()


def test_lone_files_are_orphans_once_they_have_not_changed_for_the_grace_time(zone: LandingZone) -> None:
    land(zone, "whole", OTHER)
    place(zone, "lone", DATA, T0)
    place(zone, "ghost.meta.json", META, T0 + 1)
    place(zone, ".half.7.tmp", b"half", T0 + 2)
    assert find_orphans(zone, T0 - 1) == []
    assert orphaned_names(zone, T0) == ["lone"]
    found = find_orphans(zone, T0 + 2)
    pending = zone.root / "pending"
    assert [orphan.description(T0 + 62) for orphan in found] == [
        f"{pending}/.half.7.tmp: partial file of a killed writer, 60 s old",
        f"{pending}/ghost.meta.json: metadata without data, 61 s old",
        f"{pending}/lone: data without metadata, 62 s old",
    ]


@pytest.mark.parametrize("name", ["a", "a.meta.json"])
def test_whichever_of_data_and_metadata_comes_first_has_the_grace_time_to_be_followed(
    zone: LandingZone, name: str
) -> None:
    place(zone, name, DATA if name == "a" else META)
    assert take(zone, before_s=T0 - 1) == []
    put(zone, "a" if name != "a" else "a.meta.json", META if name == "a" else DATA)
    assert [(s.data, s.defect) for s in take(zone)] == [(DATA, None)]


@pytest.mark.parametrize(
    ("name", "content", "defect"),
    [("a", DATA, "a: data without metadata"), ("a.meta.json", META, "a: metadata without data")],
)
def test_an_overdue_orphan_is_reported_once_and_its_bytes_are_kept_in_quarantine(
    zone: LandingZone, name: str, content: bytes, defect: str
) -> None:
    place(zone, name, content)
    (taken,) = take(zone)
    assert taken.defect == defect
    head = committed(taken)
    assert take(zone, head=head) == []
    assert files(zone, "pending") == set()
    kept = Path(str(zone.root)) / "quarantine" / (f"a.{taken.sha256[:12]}" + name[1:])
    assert kept.read_bytes() == content
    place(zone, name, content)
    again = take(zone, head=head)
    assert [s.is_duplicate for s in again] == [True], "the same orphan again was reported before"
    assert take(zone, head=committed(*again)) == []
    assert files(zone, "pending") == set()


def test_a_lone_file_that_is_completed_after_its_second_report_is_a_segment(zone: LandingZone) -> None:
    """Every plan cleans up after the newest commit again, and that one lists the file as reported before."""
    place(zone, "a", DATA)
    assert take(zone, head=committed(*take(zone))) == []
    place(zone, "a", DATA)
    head = committed(*take(zone))
    assert take(zone, head=head) == []
    land(zone, "a", DATA)
    (whole,) = take(zone, head=head)
    assert (whole.name, whole.data, whole.defect) == ("a", DATA, None)


def test_what_is_left_of_a_consumed_segment_is_removed_and_not_reported(zone: LandingZone, tmp_path: Path) -> None:
    """Data whose bytes some zone's archive has, and metadata of such data: a second delivery that was cut short."""
    isl = LandingZone(str(tmp_path), "isl")
    land(zone, "a", DATA)
    head = committed(*take(zone))
    assert take(zone, head=head) == []
    place(zone, "copy", DATA)
    place(isl, "copy", DATA)
    place(zone, "ghost.meta.json", META)
    rest = take(zone, isl, head=head)
    assert [s.is_duplicate for s in rest] == [True] * 3
    assert take(zone, isl, head=committed(*rest)) == []
    assert files(zone, "pending") | files(isl, "pending") == set()
    assert files(zone, "quarantine") == set()


def test_a_sender_may_repeat_what_was_quarantined_as_an_orphan(zone: LandingZone) -> None:
    place(zone, "a", DATA)
    head = committed(*take(zone))
    assert take(zone, head=head) == []
    assert land(zone, "a", DATA)
    assert [(s.data, s.defect) for s in take(zone, head=head)] == [(DATA, None)]


def test_an_orphan_that_is_completed_while_it_is_reported_is_kept_as_reported_and_consumed_as_a_segment(
    zone: LandingZone,
) -> None:
    """Its metadata came after the batch had read it and before the clean-up."""
    place(zone, "a", DATA)
    (told,) = take(zone)
    assert land(zone, "a", DATA)
    assert [(s.data, s.defect) for s in take(zone, head=committed(told))] == [(DATA, None)]
    assert zone.load_consumed(told.ref(1)) == told


def taken_by_a_slow_run(
    zone: LandingZone, head: Head, monkeypatch: pytest.MonkeyPatch, sealed: bytes = DATA
) -> list[LoadedSegment]:
    """What a run takes that stands still before its first move. Meanwhile another one moves all that is consumed, and
    a sender seals bytes under the name that is free again."""
    moved = "sda_platform.landing.zone.move_new"
    is_repeated: list[bool] = []

    def late(*paths: Any) -> bool:
        if not is_repeated:
            monkeypatch.setattr(moved, move_new)
            is_repeated.append(take(zone, head=head) == [] and land(zone, "a", sealed))
        return move_new(*paths)

    monkeypatch.setattr(moved, late)
    taken = take(zone, head=head)
    assert is_repeated == [True]
    return taken


@pytest.mark.parametrize(
    "waiting",
    [
        {"a": DATA},
        {"a": DATA[:-10]},
        {"a.meta.json": META},
        {"a": DATA[:-1] + b"x", "a.meta.json": META},
        {"a": b"", "a.meta.json": META},
    ],
    ids=["lone data", "lone torn data", "lone metadata", "torn data", "empty data"],
)
def test_a_segment_that_is_sent_again_before_a_slow_run_moves_its_defective_copy_stays_pending(
    zone: LandingZone, monkeypatch: pytest.MonkeyPatch, waiting: dict[str, bytes]
) -> None:
    for name, content in waiting.items():
        place(zone, name, content)
    told = take(zone)
    assert [(s.data, s.defect) for s in taken_by_a_slow_run(zone, committed(*told), monkeypatch)] == [(DATA, None)]
    assert [zone.load_consumed(each.ref(1)).data for each in told] == [waiting.get("a", b"")], (
        "what was reported is kept"
    )


def test_a_slow_run_leaves_other_bytes_alone_that_came_under_the_name_of_a_defective_segment(
    zone: LandingZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = DATA[:-1] + b"x"
    place(zone, "a", torn)
    place(zone, "a.meta.json", META)
    told = take(zone)
    taken = taken_by_a_slow_run(zone, committed(*told), monkeypatch, OTHER)
    assert [(s.data, s.defect) for s in taken] == [(OTHER, None)]
    assert [zone.load_consumed(each.ref(1)).data for each in told] == [torn]


def test_partial_files_of_dead_writers_are_swept_and_those_of_living_ones_left(zone: LandingZone) -> None:
    """CP-04: a partial file is never read."""
    place(zone, ".dead.1.tmp", b"half", T0)
    place(zone, ".alive.2.tmp", b"half", T0 + 1)
    assert take(zone, before_s=T0) == []
    assert files(zone, "pending") == {".alive.2.tmp"}


def test_a_partial_file_that_another_process_swept_meanwhile_is_no_error(
    zone: LandingZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(zone, ".dead.1.tmp", b"half", T0)
    found = find_orphans(zone, T0)
    assert take(zone, before_s=T0) == []
    monkeypatch.setattr(orphans, "find_orphans", lambda *_: found)
    assert orphans.take_orphans(zone, T0) == []


def test_a_clock_that_jumped_back_makes_no_orphan(zone: LandingZone) -> None:
    """F-clock: a file from the future waits."""
    place(zone, "a", DATA, 2e9)
    assert take(zone, before_s=1.9e9) == []
    assert files(zone, "pending") == {"a"}


def test_the_backlog_counts_segments_bytes_and_the_age_of_the_oldest(zone: LandingZone) -> None:
    assert backlog_of(zone, T0) == Backlog(0, 0, None)
    for name, data, came_s in (("a", DATA, T0 - 10), ("b", OTHER, T0 - 30)):
        land(zone, name, data)
        os.utime(Path(str(zone.root)) / "pending" / f"{name}.meta.json", (came_s, came_s))
    place(zone, "lone", DATA)
    assert backlog_of(zone, T0) == Backlog(2, 2 * len(DATA), 30)


def test_directories_of_unknown_feeds_are_reported(tmp_path: Path) -> None:
    assert unknown_zones(str(tmp_path / "nowhere"), ZONES) == []
    for name in (*ZONES, "lidar", ".lander"):
        (tmp_path / name).mkdir()
    (tmp_path / "README").write_text("a file is no zone")
    (orphan,) = unknown_zones(str(tmp_path), ZONES)
    assert (orphan.path.name, orphan.name) == ("lidar", None)
    assert orphan.reason == f"unknown feed 'lidar'; known are {', '.join(sorted(ZONES))}"


def test_the_check_is_red_while_an_orphan_lies_in_a_zone(zone: LandingZone, tmp_path: Path) -> None:
    landing = resource(tmp_path, orphan_grace_s=60.0)
    put(zone, "lone", DATA)
    assert outcome(no_orphans, landing).passed
    found = outcome(no_orphans, resource(tmp_path, orphan_grace_s=-1.0))
    assert not found.passed
    assert "lone: data without metadata" in str(found.description)


@pytest.mark.parametrize("check", [RAW_RECORDS.name, ELEMENT_SETS.name, RECEIVED_CDMS.name])
def test_the_check_is_red_while_a_segment_waits_for_longer_than_the_setting_allows(tmp_path: Path, check: str) -> None:
    feeds = {RAW_RECORDS.name: "isl", ELEMENT_SETS.name: "elements", RECEIVED_CDMS.name: "messages"}
    (backlog,) = (
        c
        for c in defs.asset_checks or ()
        if {k.name for k in c.check_keys} == {"backlog"} and check in str(c.check_keys)
    )
    zone = LandingZone(str(tmp_path), feeds[check])
    land(zone, "a", DATA)
    assert outcome(backlog, resource(tmp_path, backlog_max_age_s=3600.0)).passed
    found = outcome(backlog, resource(tmp_path, backlog_max_age_s=0.0))
    assert not found.passed
    assert str(found.description).startswith(f"{zone.feed}: 1 segment waits (216 bytes), the oldest for ")


def resource(root: Path, **intake: float) -> LandingResource:
    return LandingResource(root=str(root), **IntakeSettings(**intake).model_dump())


def outcome(check: dg.AssetsDefinition, landing: LandingResource) -> Any:
    return check(landing=landing)

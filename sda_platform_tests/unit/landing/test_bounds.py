"""The bounds of landing, each at its very edge: the last value that is allowed, and the first that is not."""

import io
import shutil
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from upath import UPath

from sda_platform.lake.log_commits import Head
from sda_platform.landing import intake
from sda_platform.landing.consumed import is_kept, quarantined_name
from sda_platform.landing.contents import _members
from sda_platform.landing.decode_attempts import DecodeAttempts
from sda_platform.landing.listing import changed_s
from sda_platform.landing.owners import Owners
from sda_platform.landing.partner_bounds import BoundExceeded, PartnerBounds
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.segments import land, radar_segment

MIB, GIB = 2**20, 2**30
DATA = radar_segment(3)


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def expands(file_bytes: int) -> Callable[[int], None]:
    return lambda size: PartnerBounds().check_expansion(file_bytes, size)


def holds(size: int) -> Callable[[int], None]:
    return lambda records: PartnerBounds().check_records(size, records, 0)


@pytest.mark.parametrize(
    ("check", "most", "reason"),
    [
        (expands(1), 16 * MIB, "expands to more than 16,777,217 bytes; 100 times its size"),
        (expands(MIB), 100 * MIB, "expands to more than 104,857,601 bytes; 100 times its size"),
        (expands(GIB), 8 * GIB, "expands to more than 8,589,934,593 bytes; 100 times its size"),
        (holds(1), 100_000, "has 100,001 records in 1 bytes, fewer than 16 for each"),
        (holds(16 * 200_000), 200_000, "has 200,001 records in 3,200,000 bytes, fewer than 16 for each"),
        (lambda n: PartnerBounds(records=5).check_records(99, 1, n), 5, "has more than 5 records; land it in parts"),
    ],
)
def test_what_a_partners_file_may_cost(check: Callable[[int], None], most: int, reason: str) -> None:
    check(most)
    with pytest.raises(BoundExceeded) as refusal:
        check(most + 1)
    assert str(refusal.value).startswith(reason)


def test_what_must_stay_free_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: SimpleNamespace(free=1000))
    place, bounds = UPath(tmp_path / "a" / "place" / "to be made"), PartnerBounds(least_free_bytes=400)
    bounds.check_room(place, 600)
    with pytest.raises(OSError, match="only 1,000 bytes are free, of which 400 are kept for live records"):
        bounds.check_room(place, 601)
    PartnerBounds().check_room(place, 10**9)


@pytest.mark.parametrize(
    ("most_segments", "most_bytes", "taken"),
    [(3, 10**6, 3), (2, 10**6, 2), (9, 3 * 96 * 2, 2), (9, 3 * 96 * 2 - 1, 1), (9, 1, 1), (1, 1, 1)],
)
def test_a_batch_has_so_many_segments_and_bytes_at_most_and_one_in_any_case(
    zone: LandingZone, most_segments: int, most_bytes: int, taken: int
) -> None:
    for number in range(3):  # each record counts as 96 bytes
        land(zone, str(number), radar_segment(3, first_track=100 * number))
    found = intake.take([zone], Head(), max_segments=most_segments, max_bytes=most_bytes)
    assert [segment.name for segment in found] == [str(number) for number in range(taken)]


@pytest.mark.parametrize("letter", ["n", "é"])
def test_names_are_kept_as_long_as_the_file_system_allows(letter: str) -> None:
    size = len(letter.encode())
    assert (is_kept(letter * (180 // size)), is_kept(letter * (180 // size) + "n")) == (True, False)
    longest = letter * (200 // size)
    assert quarantined_name(longest) == longest
    shortened = quarantined_name(longest + "n")
    assert len(shortened.encode()) in (199, 200), "whole characters"
    beginning, _, mark = shortened.partition("~")
    assert (longest.startswith(beginning), len(mark)) == (True, 16)
    assert shortened != quarantined_name(longest + "m")


def test_what_was_consumed_after_a_time_is_listed(zone: LandingZone, tmp_path: Path) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([zone.read(each).ref(3) for each in zone.pending()])
    times = [changed_s(file.stat()) for file in (tmp_path / "radar" / "archive").iterdir()]
    assert [each.name for each in zone.consumed(min(times) - 1e-3)] == ["a"]
    assert list(zone.consumed(max(times))) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (DecodeAttempts(tried=8), DecodeAttempts(tried=8, kills=1)),
        (DecodeAttempts(tried=8, kills=1), DecodeAttempts(tried=8, kills=2, limit=4)),
        (DecodeAttempts(tried=9, limit=20), DecodeAttempts(tried=9, kills=1, limit=4)),
        (DecodeAttempts(tried=1, kills=4, only="x", alone=1), DecodeAttempts(1, 5, 2, "x", 1)),
        (DecodeAttempts(tried=3, kills=4, alone=2), DecodeAttempts(1, 5, 0, "", 3)),
    ],
)
def test_each_death_of_a_decoder_halves_what_is_tried_from_the_second_on(
    before: DecodeAttempts, after: DecodeAttempts
) -> None:
    assert replace(before, is_open=True)._after_a_death() == after


@pytest.mark.parametrize(("limit", "following"), [(None, None), (1, 2), (4095, 8190), (4096, None)])
def test_each_batch_that_was_decoded_doubles_the_limit_until_there_is_none(
    tmp_path: Path, limit: int | None, following: int | None
) -> None:
    note = UPath(tmp_path / "notes" / "note.json")
    DecodeAttempts(limit=limit, kills=7, alone=2, only="x").end(note)
    assert DecodeAttempts.load(note, Owners()) == DecodeAttempts(limit=following)
    assert (DecodeAttempts(limit=limit).bounded(3), DecodeAttempts().bounded(3)) == (min(limit or 3, 3), 3)


@pytest.mark.parametrize(("alone", "is_refused"), [(2, False), (3, True)])
def test_a_segment_is_refused_at_which_three_decoders_died_alone(
    zone: LandingZone, alone: int, is_refused: bool
) -> None:
    for name in "ab":
        land(zone, name, radar_segment(1, first_track=ord(name)))
    segments = [zone.read(each) for each in zone.pending()]
    only = f"radar/a@{segments[0].sha256}"
    defects = [each.defect for each in DecodeAttempts(alone=alone, only=only).judged(segments)]
    assert [defect is not None for defect in defects] == [is_refused, False]
    assert not is_refused or "3 times at this segment alone" in str(defects[0])


@pytest.mark.parametrize("count", [0, 1, 10_000, 10_001])
def test_an_archive_has_as_many_files_as_can_be_listed(count: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(count):
            archive.writestr(zipfile.ZipInfo(f"{number}.tle"), b"")
    refused: Any = pytest.raises(zipfile.BadZipFile, match=f"it has {count} files, must have 1 to 10,000")
    with zipfile.ZipFile(file) as archive, nullcontext() if 1 <= count <= 10_000 else refused:
        assert len(_members(archive)) == count

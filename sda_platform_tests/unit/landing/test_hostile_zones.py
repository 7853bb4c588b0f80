"""What a partner may put into a zone by carelessness or on purpose: it is that file's problem, and no other's (D3)."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from upath import UPath

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.errors import SegmentConflict
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef
from sda_platform.landing import intake
from sda_platform.landing.listing import bytes_at, bytes_in, shown_name, stored_name
from sda_platform.landing.orphans import find_orphans, orphaned_names
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.sensors import request_landing
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.segments import committed, described, land, put, radar_segment

GOOD, DATA = radar_segment(3), radar_segment(3, first_track=100)
META = described(DATA).to_json().encode()
MUNICH = os.fsdecode(b"m\xfcnchen.radar")
FUTURE_S = 4_000_000_000.0


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    """A zone in which one sound segment waits."""
    zone = LandingZone(str(tmp_path), "radar")
    land(zone, "good", GOOD)
    return zone


def pending(zone: LandingZone) -> Path:
    return Path(str(zone.root)) / "pending"


def take(zone: LandingZone, head: Head | None = None, *, before_s: float = FUTURE_S) -> list[LoadedSegment]:
    return intake.take([zone], head or Head(), max_segments=100, max_bytes=10**6, orphaned_before_s=before_s)


def told(zone: LandingZone) -> str:
    return "; ".join(orphan.description(FUTURE_S) for orphan in find_orphans(zone, FUTURE_S))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def directories(folder: Path) -> None:
    for name in ("a", "a.meta.json"):
        (folder / name).mkdir()


ODD: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "a directory": (lambda p: (p / "lost+found").mkdir(), ["lost+found: no regular file"]),
    "a hidden directory": (lambda p: (p / ".stfolder").mkdir(), [".stfolder: no regular file"]),
    "a directory with the name of a segment": (
        directories,
        ["a: no regular file", "a.meta.json: no regular file"],
    ),
    "a pipe, which nobody writes to": (lambda p: os.mkfifo(p / "pipe"), ["pipe: no regular file"]),
    "a link to nothing": (lambda p: (p / "link").symlink_to("nowhere"), ["link: no regular file"]),
    "a link to a file": (lambda p: (p / "link").symlink_to(p / "good"), ["link: no regular file"]),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_regular_file_is_reported_and_stops_nothing__D3(zone: LandingZone, odd: str) -> None:
    make, reported = ODD[odd]
    make(pending(zone))
    before = names(pending(zone)) - {"good", "good.meta.json"}
    (taken,) = take(zone)
    assert (taken.name, taken.defect) == ("good", None)
    assert take(zone, committed(taken)) == []
    assert names(pending(zone)) == before, "nobody but a person removes it"
    assert all(words in told(zone) for words in reported)


def test_a_directory_in_the_place_of_data_makes_its_metadata_an_orphan__D3(zone: LandingZone) -> None:
    (pending(zone) / "a").mkdir()
    put(zone, "a.meta.json", META)
    taken = take(zone)
    assert {s.name: s.defect for s in taken} == {"good": None, "a": "a: metadata without data"}
    assert take(zone, committed(*taken)) == []
    assert names(pending(zone)) == {"a"}


def test_a_hidden_segment_is_no_partial_file__D3(zone: LandingZone) -> None:
    land(zone, ".hidden", DATA)
    assert sorted((s.name, s.defect) for s in take(zone)) == [(".hidden", None), ("good", None)]


@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_name_that_is_not_utf_8_is_written_with_escapes_everywhere__D3(zone: LandingZone, has_metadata: bool) -> None:
    write(pending(zone) / MUNICH, DATA)
    if has_metadata:
        write(pending(zone) / f"{MUNICH}.meta.json", META)
    taken = take(zone)
    defect = None if has_metadata else r"m\xfcnchen.radar: data without metadata"
    assert {s.name: s.defect for s in taken} == {"good": None, r"m\xfcnchen.radar": defect}
    head = committed(*taken)
    assert take(zone, head) == []
    assert names(pending(zone)) == set()
    for segment in taken:
        assert zone.load_consumed(segment.ref(3)) == segment
    zone.restore([s.ref(3) for s in taken])
    assert {s.name for s in take(zone)} == {s.name for s in taken}


@pytest.mark.parametrize("name", [os.fsencode(MUNICH), b"plain", "münchen".encode(), b"back\\slash", b"\xff\xfe\n"])
def test_a_shown_name_is_text_that_leads_back_to_its_file__D3(name: bytes) -> None:
    shown = shown_name(os.fsdecode(name))
    assert shown.encode().decode() == shown
    assert os.fsencode(stored_name(shown)) == name


@pytest.mark.parametrize("length", [200, 232, 233, 245, 246, 250, 255])
@pytest.mark.parametrize("metadata", [None, b"{}"])
def test_a_name_of_any_length_is_taken_and_cleared_away__D3(
    zone: LandingZone, length: int, metadata: bytes | None
) -> None:
    name = "x" * length
    write(pending(zone) / name, DATA)
    if metadata is not None and length <= 245:
        write(pending(zone) / f"{name}.meta.json", metadata)
    taken = take(zone)
    assert sorted(s.name for s in taken) == ["good", name]
    assert take(zone, committed(*taken)) == []
    assert names(pending(zone)) == set()
    assert all(zone.load_consumed(s.ref(3 if s.defect is None else 1)) == s for s in taken)


def test_names_that_quarantine_shortens_stay_apart__D3(zone: LandingZone) -> None:
    for end in "ab":
        write(pending(zone) / ("x" * 240 + end), b"torn")
    taken = take(zone)
    zone.acknowledge([s.ref(3 if s.defect is None else 1) for s in taken])
    assert len(names(Path(str(zone.root)) / "quarantine")) == 2
    assert all(zone.load_consumed(s.ref(1)) == s for s in taken if s.defect)


@contextlib.contextmanager
def as_ordinary_user(root: Path) -> Iterator[None]:
    """Root reads every file; if the tests run as root, the block runs as the user nobody, who owns the files."""
    if os.geteuid() != 0:
        yield
        return
    for each in [root, *root.rglob("*")]:
        os.chown(each, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("unreadable", [["a"], ["a.meta.json"], ["a", "a.meta.json"], ["lone"]])
def test_a_file_without_read_permission_waits_and_is_reported_until_it_has_it__D3(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, unreadable: list[str]
) -> None:
    root = tmp_path_factory.mktemp("landing")
    monkeypatch.chdir(root)  # the folders above are closed to other users
    zone = LandingZone(".", "radar")
    land(zone, "good", GOOD)
    land(zone, "a", DATA)
    if unreadable == ["lone"]:
        put(zone, "lone", b"?")
    for name in unreadable:
        (pending(zone) / name).chmod(0)
    with as_ordinary_user(root):
        expected = {"good", "a"} if unreadable == ["lone"] else {"good"}
        taken = take(zone, before_s=0.0)
        assert {s.name for s in taken} == expected
        head = committed(*taken)
        assert take(zone, head) == []
        assert f"{unreadable[0]}: cannot be read by this platform" in told(zone)
        assert [*zone.pending_names(), *orphaned_names(zone, FUTURE_S)] == [], "no run is asked for it"
        for name in unreadable:
            (pending(zone) / name).chmod(0o644)
        assert [s.name for s in take(zone, head)] == (["lone"] if unreadable == ["lone"] else ["a"])


def test_the_sensor_asks_for_a_run_whatever_lies_in_its_zones__D3(zone: LandingZone) -> None:
    write(pending(zone) / MUNICH, b"x")
    write(pending(zone) / ("x" * 250), b"x")
    (pending(zone) / ".stfolder").mkdir()
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance)
        asked = request_landing(context, [zone], OBSERVATIONS_TO_ALERTS, orphan_grace_s=60.0, wall_s=FUTURE_S)
    assert isinstance(asked, dg.SensorResult)


def test_a_permission_that_is_missing_may_be_given_later__D3() -> None:
    assert disposition_of(PermissionError(13, "Permission denied", "x")) is Disposition.TRANSIENT


@pytest.mark.parametrize("first", ["a", "a.meta.json"])
def test_a_file_whose_modification_time_was_kept_has_the_whole_grace_time__D10(zone: LandingZone, first: str) -> None:
    """As `rsync -t`, `cp -p` and archives do; what counts is when the file came to be here."""
    taken = take(zone)
    head = committed(*taken)
    content = {"a": DATA, "a.meta.json": META}
    write(pending(zone) / first, content.pop(first))
    os.utime(pending(zone) / first, (1, 1))
    came_s = (pending(zone) / first).stat().st_ctime
    assert take(zone, head, before_s=came_s - 60.0) == []
    ((second, data),) = content.items()
    write(pending(zone) / second, data)
    os.utime(pending(zone) / second, (1, 1))
    assert [(s.name, s.defect) for s in take(zone, head, before_s=came_s - 60.0)] == [("a", None)]
    (waiting,) = zone.waiting(["a"])
    assert waiting.came_s >= came_s, "and it has not waited since 1970"


def test_an_interrupted_clean_up_leaves_no_partial_file_at_rest__D15(zone: LandingZone) -> None:
    """What was read and is gone, or torn, is written to its place at rest; nothing sweeps partial files there."""
    write(pending(zone) / "torn", DATA[:-1])
    taken = take(zone)
    (pending(zone) / "good").unlink()
    (pending(zone) / "torn").unlink()
    refs = [SegmentRef("radar", s.name, s.sha256, len(s.data), 3, s.defect) for s in taken]
    for step in crashes():
        with step:
            zone.acknowledge(refs)
        for place in ("archive", "quarantine"):
            assert not [name for name in names(Path(str(zone.root)) / place) if name.endswith(".tmp")]
    assert take(zone, committed(*taken)) == []
    assert names(pending(zone)) == set()


def test_of_two_landers_with_one_name_and_other_bytes_exactly_one_wins__D19(tmp_path: Path) -> None:
    zone, mine, others = LandingZone(str(tmp_path), "radar"), radar_segment(3), radar_segment(4)
    answers: dict[str, bool] = {}

    def rival(point: str) -> None:
        if point != "durable.synced" or answers:
            return
        if not (process := os.fork()):
            failpoints.watch(None)
            os._exit(0 if land(zone, "x", others) else 1)
        answers["rival"] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0

    failpoints.watch(rival)
    try:
        with pytest.raises(SegmentConflict, match="other bytes are pending under this name"):
            land(zone, "x", mine)
    finally:
        failpoints.watch(None)
    assert answers == {"rival": True}
    assert [(s.data, s.defect) for s in take(zone)] == [(others, None)]
    assert not [name for name in names(pending(zone)) if name.endswith(".tmp")]


@pytest.mark.parametrize("scheme", ["local", "memory"])
def test_a_file_is_created_once_and_never_overwritten__D19(tmp_path: Path, scheme: str) -> None:
    path = UPath(tmp_path / "a") if scheme == "local" else UPath(f"memory://{tmp_path.name}-create/a")
    assert durable.create(path, b"1")
    assert not durable.create(path, b"2")
    assert path.read_bytes() == b"1"


def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_read_mutant_9(zone: LandingZone, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(GOOD)
    (listed,) = zone.pending()
    data = pending(zone) / "good"
    data.unlink()
    data.symlink_to(secret)
    assert bytes_at(UPath(data)) is None
    assert bytes_in(UPath(pending(zone)), "good") is None
    assert zone.read(listed).data == b""

"""Lake and landing zones in a real object store: conditional puts exclude writers, and a lost answer loses nothing.

``RACE_COMMITS`` sets for how many commits the engines race; `make soak RACE=5000` does so for thousands.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.history.compaction import StoppedForAlerts, compact
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import durable, local_copies, storage
from sda_platform.lake import object_store as object_store_options
from sda_platform.lake.errors import Misconfigured, VersionGone
from sda_platform.lake.local_copies import LocalCopies
from sda_platform.lake.log import TableLog
from sda_platform.lake.staging import Staging
from sda_platform.lake.storage import location, names_after, require_conditional_put
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.lake.verdicts import Verdicts
from sda_platform.landing.orphans import find_orphans, unknown_zones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import recover
from sda_platform.recovery.verification import broken_chain
from sda_platform.registry import landing_zones
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.session import attach
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.world import NOW_S, World
from sda_platform_tests.support.connect_server import connect_server
from sda_platform_tests.support.credential_service import CredentialService, credential_service
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.forgetful_proxy import forgetful_proxy
from sda_platform_tests.support.object_store_server import (
    BUCKET,
    KEY,
    NEXT_KEY,
    NEXT_SECRET,
    OTHER_BUCKET,
    SECRET,
    ObjectStore,
    object_store,
)
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.racing import raced
from sda_platform_tests.support.racing_writer import ids_of
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import START_NS, after, described, radar_segment
from sda_platform_tests.support.store_faults import STORE_FAULTS

CONTROL_COMMITS = 10
MOST_RACES = 5
"""On a busy machine two writers may take turns for so few commits: then they race again."""
COMMITS = int(os.environ.get("RACE_COMMITS", CONTROL_COMMITS))
pytestmark = pytest.mark.timeout(900 + 5 * COMMITS)
_ROUNDS, _WRITERS = 4, 6
_SIGNED_WITH = re.compile(rb"Credential=([^/]+)/")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A store that this process and those that it starts reach by their environment."""
    with object_store(tmp_path_factory.mktemp("store")) as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture(scope="module")
def network(store: ObjectStore) -> Iterator[CuttingProxy]:
    """The network between the store and whoever is started with its address; it can be cut."""
    with CuttingProxy(int(store.address.rpartition(":")[2])) as opened:
        yield opened


@pytest.fixture
def beyond(network: CuttingProxy, monkeypatch: pytest.MonkeyPatch) -> CuttingProxy:
    """The same, between the store and this process."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{network.port}")
    return network


@pytest.fixture
def root(store: ObjectStore, request: pytest.FixtureRequest) -> str:
    """A place of its own in the bucket for each test."""
    assert store.address
    return f"s3://{BUCKET}/{re.sub('[^a-z0-9_]+', '-', request.node.name)}"


@contextmanager
def recorded(network: CuttingProxy) -> Iterator[list[bytes]]:
    """The requests that pass meanwhile."""
    requests: list[bytes] = []
    network.on_request = requests.append
    try:
        yield requests
    finally:
        network.on_request = lambda _data: None


def data_files(requests: Sequence[bytes]) -> list[bytes]:
    """Those for data files of a table."""
    return [request for request in requests if b".parquet" in request.partition(b"\r\n")[0]]


def sealed(zone: LandingZone, name: str, records: int = 3) -> bytes:
    data = radar_segment(records)
    zone.seal(name, data, described(data))
    return data


def test_a_store_without_conditional_puts_is_refused_at_the_start(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_conditional_put(f"s3://{BUCKET}/tried")
    assert unknown_zones(f"s3://{BUCKET}/tried", []) == [], "what the trial leaves is no zone that nobody reads"
    with object_store(tmp_path / "open", is_open=True) as unguarded, forgetful_proxy(unguarded.address) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        with pytest.raises(Misconfigured, match="does not refuse a conditional put"):
            require_conditional_put(f"s3://{BUCKET}/lake")
    assert store.address != address


def test_the_platform_needs_rights_on_its_own_objects_only(store: ObjectStore, root: str) -> None:
    """All tests of this module run with them; the policy is deploy/bucket-policy.json."""
    zone = LandingZone(root, "radar")
    sealed(zone, "a.radar")
    other = location(f"s3://{OTHER_BUCKET}/lake")
    with pytest.raises(PermissionError):
        durable.put_if_absent(other / "a", b"1")
    with pytest.raises(PermissionError):
        (other / "a").read_bytes()
    with pytest.raises(PermissionError):
        other.fs.mkdir(f"{BUCKET}-made-now")
    assert zone.pending_names() == ["a.radar"]
    assert store.environment["AWS_ACCESS_KEY_ID"] == KEY


def test_of_several_puts_of_one_object_one_succeeds(root: str) -> None:
    with ThreadPoolExecutor(_WRITERS) as pool:
        for number in range(_ROUNDS):
            path = location(root) / str(number)
            put = pool.map(lambda n, path=path: durable.put_if_absent(path, str(n).encode()), range(_WRITERS))
            won = [n for n, is_mine in enumerate(put) if is_mine]
            assert [str(n).encode() for n in won] == [path.read_bytes()]


def test_a_segment_that_another_process_seals_is_listed(root: str) -> None:
    """Clients keep their first listing by default: a sensor would never see a second segment."""
    seen = LandingZone(root, "radar")
    sealed(LandingZone(root, "radar"), "a.radar")
    assert seen.pending_names() == ["a.radar"]
    (location(root) / "radar" / "pending" / "").fs.invalidate_cache()
    sealed(LandingZone(root, "radar"), "b.radar", 4)
    assert seen.pending_names() == ["a.radar", "b.radar"]
    assert find_orphans(seen, time.time() + 60) == []


def test_a_listing_has_more_than_one_page(root: str) -> None:
    zone = LandingZone(root, "radar")
    with ThreadPoolExecutor(_WRITERS) as pool:
        names = [f"{number:05d}" for number in range(1_050)]
        list(pool.map(lambda name: durable.write(zone.pending_path(name), b"1"), names))
    assert sorted(zone.pending_files()) == names
    assert list(names_after(zone.pending_path("00010").parent, "00010")) == names[11:]


def test_the_newest_version_of_a_log_takes_one_listing_however_many_follow_its_checkpoint(
    root: str, beyond: CuttingProxy
) -> None:
    """A request for each of them would take seconds across a real network."""
    lake = lake_at(root)
    for number in range(12):
        commit(lake, OBSERVATIONS, [{"observation_id": str(number)}])
    with recorded(beyond) as requests:
        assert lake_at(root).log(OBSERVATIONS).version() == 11
    assert [b"list-type" in request for request in requests] == [True]
    with recorded(beyond) as requests:
        assert lake.log(OBSERVATIONS).version() == 11
        assert lake.log(RAW_RECORDS).version() == -1
    assert [b"list-type" in request for request in requests] == [True, True], "one of each, be it there or not"


def test_a_zone_without_segments_takes_one_listing(root: str, beyond: CuttingProxy) -> None:
    zone = LandingZone(root, "radar")
    durable.write(zone.pending_path("1").parent / "below" / "2", b"1")
    for written, found in ((None, []), ("1", ["1"])):
        if written:
            durable.write(zone.pending_path(written), b"1")
        with recorded(beyond) as requests:
            assert list(zone.pending_files()) == found
        assert [b"list-type" in request for request in requests] == [True]


def test_the_texts_of_commits_are_read_once(root: str, beyond: CuttingProxy) -> None:
    lake = lake_at(root)
    for number in range(3):
        commit(lake, OBSERVATIONS, [{"observation_id": str(number)}])
    log = lake_at(root).log(OBSERVATIONS)
    first = log.commits()
    with recorded(beyond) as requests:
        assert log.commits() == first
    assert len(requests) < len(first)


def test_a_run_reads_each_small_data_file_once_and_finds_a_new_one(
    root: str, beyond: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read through Arrow takes three requests a file, and the parts of a run read a file a dozen times."""
    writer, copies = lake_at(root), LocalCopies()
    for number in range(3):
        commit(writer, OBSERVATIONS, [{"observation_id": str(number)}])
    log = TableLog(OBSERVATIONS, f"{root}/{OBSERVATIONS.name}", copies)
    with recorded(beyond) as requests:
        assert log.rows(where=ds.field(COMMIT_SEQUENCE) == 3).column("observation_id").to_pylist() == ["2"]
    assert len(data_files(requests)) == 1, "one file, and nothing of those that the filter leaves out"
    with recorded(beyond) as requests:
        everything = log.rows()
        assert log.some_rows_of((2, 3), 5).num_rows == 1
    assert len(data_files(requests)) == 2
    assert everything == writer.log(OBSERVATIONS).rows()
    commit(writer, OBSERVATIONS, [{"observation_id": "3"}])
    with recorded(beyond) as requests:
        assert sorted(log.rows(["observation_id"]).column(0).to_pylist()) == ["0", "1", "2", "3"]
    assert len(data_files(requests)) == 1
    monkeypatch.setattr(local_copies, "_MOST_BYTES_OF_A_FILE", 0)
    from_store = TableLog(OBSERVATIONS, log.uri, LocalCopies())
    with recorded(beyond) as requests:
        assert from_store.rows() == log.rows()
        assert from_store.rows() == log.rows()
    assert len(data_files(requests)) > 2 * 4, "what is large is read where it is"
    copies.remove()
    with pytest.raises(FileNotFoundError):
        log.rows()


def test_small_files_are_compacted_in_the_store__DL6_F2(root: str) -> None:
    lake = lake_at(root)
    for number in range(4):
        commit(lake, OBSERVATIONS, [{"observation_id": str(number)}])
    log = lake.log(OBSERVATIONS)
    before = log.rows().sort_by("observation_id")
    with pytest.raises(StoppedForAlerts):
        compact(lake, OBSERVATIONS, lambda: True)
    assert (compact(lake, OBSERVATIONS), compact(lake, OBSERVATIONS)) == (4, 0)
    assert log.live_files().num_rows == 1
    assert log.rows().sort_by("observation_id").equals(before)


def test_copies_need_no_room_and_those_of_a_killed_run_are_removed(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_at(root)
    commit(lake, OBSERVATIONS, [{"observation_id": "1"}])
    left = tmp_path / "sda-copies-old"
    (left / "deeper").mkdir(parents=True)
    os.utime(left, (0.0, 0.0))
    expected = lake.log(OBSERVATIONS).rows()
    for place in (tmp_path / "absent", tmp_path):
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        copies = LocalCopies()
        assert TableLog(OBSERVATIONS, f"{root}/{OBSERVATIONS.name}", copies).rows() == expected
    (kept,) = tmp_path.glob("sda-copies-*")
    assert kept != left
    copies.remove()
    assert list(tmp_path.glob("sda-copies-*")) == []


def test_a_data_file_that_is_missing_is_reported_where_a_run_copies_it(root: str) -> None:
    lake = lake_at(root)
    commit(lake, OBSERVATIONS, [{"observation_id": "1"}])
    log = TableLog(OBSERVATIONS, f"{root}/{OBSERVATIONS.name}", LocalCopies())
    (file,) = (location(log.uri) / name for name in log.live_files().column("path").to_pylist())
    file.unlink()
    with pytest.raises(VersionGone, match="version 0 cannot be read any more"):
        log.rows(version=0)
    with pytest.raises(FileNotFoundError):
        log.rows()


def test_files_that_may_be_absent_are_read_together(root: str) -> None:
    files = [location(root) / name for name in ("absent", "there", "empty")]
    for file, content in zip(files[1:], (b"1", b""), strict=True):
        durable.write(file, content)
    assert storage.contents_of(files) == [None, b"1", b""]


def test_a_put_whose_answer_was_lost_seals_once(root: str, beyond: CuttingProxy) -> None:
    """The client repeats the put, and the store refuses the repetition: the segment is sealed nevertheless."""
    zone, path = LandingZone(root, "radar"), location(root) / "lost"
    for at in (0, 10):
        beyond.cut(for_good=False)
        beyond.cut_next("answer", at)
        durable.put_if_absent(path, b"1")
        assert path.read_bytes() == b"1"
        beyond.cut(for_good=False)
        beyond.cut_next("answer", at)
        data = sealed(zone, f"after-{at}.radar", 3 + at)
        assert zone.is_whole(f"after-{at}.radar")
        assert zone.pending_path(f"after-{at}.radar").read_bytes() == data
    assert beyond.cuts == [0, 0, 10, 10]


@pytest.mark.parametrize("fault", sampled(STORE_FAULTS, "cut off", "failing"))
def test_a_store_that_does_not_work_fails_a_run_for_now_and_not_for_good(
    root: str, beyond: CuttingProxy, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Otherwise a cut of the network would stop a table, or report its files as damaged."""
    monkeypatch.setattr(object_store_options, "_REQUEST_S", 1)
    storage._arrow_store.cache_clear()  # another test's client waits for longer
    zone, log = LandingZone(root, "radar"), lake_at(root).log(OBSERVATIONS)
    copied = TableLog(OBSERVATIONS, log.uri, LocalCopies())
    sealed(zone, "a.radar")
    commit(lake_at(root), OBSERVATIONS, [{"observation_id": "1"}])
    assert copied.open() is not None
    opened = log.open()
    assert opened is not None
    STORE_FAULTS[fault](beyond)
    try:
        seal = partial(durable.put_if_absent, location(root) / "new", b"1")
        rows, read = partial(copied.rows, version=0), log.dataset(opened).to_table
        verdict = partial(Verdicts(root).read, log, 0)
        for failing in (zone.pending_names, seal, log.head, log.open, log.rows, rows, read, verdict):
            with pytest.raises(Exception) as failure:
                failing()
            assert disposition_of(failure.value) is Disposition.TRANSIENT, repr(failure.value)
    finally:
        beyond.mend()
    assert zone.pending_names() == ["a.radar"]
    assert log.head().sequence == 1


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CredentialService]:
    with credential_service(KEY, SECRET, tmp_path_factory.mktemp("pod") / "token") as service:
        yield service


def handed_out(patch: pytest.MonkeyPatch, credentials: CredentialService) -> None:
    """Let processes that start, and clients that are made, get their credentials from the service."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.delenv(name)
    for name, value in credentials.environment.items():
        patch.setenv(name, value)


def recorder(keys: set[bytes]) -> Callable[[bytes], None]:
    """Enters the access key of each request into ``keys``."""
    return lambda request: keys.update(_SIGNED_WITH.findall(request))


def test_new_credentials_are_used_by_every_client_of_a_run(
    store: ObjectStore, credentials: CredentialService, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of s3fs, delta-rs and Arrow; those that are handed out hold for seconds."""
    handed_out(monkeypatch, credentials)
    with CuttingProxy(int(store.address.rpartition(":")[2])) as ours:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{ours.port}")
        zone, lake = LandingZone(root, "radar"), lake_at(root)
        log = lake.log(OBSERVATIONS)
        for count, (key, secret) in enumerate(((KEY, SECRET), (NEXT_KEY, NEXT_SECRET)), start=1):
            credentials.key, credentials.secret = key, secret
            uses: dict[str, Callable[[], object]] = {
                "s3fs": partial(sealed, zone, f"{key}.radar", count),
                "delta-rs": partial(commit, lake, OBSERVATIONS, [{"observation_id": key}]),
                "arrow": lambda: log.rows(["observation_id"]),
            }
            for client, use in uses.items():
                used: set[bytes] = set()
                ours.on_request = recorder(used)
                use()
                assert used == {key.encode()}, client
    assert set(zone.pending_names()) == {f"{KEY}.radar", f"{NEXT_KEY}.radar"}
    credentials.key, credentials.secret = KEY, SECRET


def test_a_staged_table_is_written_read_and_swept(root: str) -> None:
    rows = pa.table({"number": list(range(1_000))})
    for _ in range(2):
        staging = Staging(root)
        address = staging.put(rows)
        assert address.startswith(f"{root}/_staging/")
        staging.clear()
        assert not location(address).exists()


def require_once(root: str, reports: list[dict[str, int]], commits: int = COMMITS) -> None:
    """Each commit is in the log and its rows are in the table, once, and one writer holds it for its own."""
    log = lake_at(root).log(OBSERVATIONS)
    found = log.commits(None)
    assert [each.sequence for each in found] == list(range(commits, 0, -1))
    assert broken_chain(found) == []
    stored = sorted(log.rows(["observation_id"]).column("observation_id").to_pylist())
    assert stored == [name for sequence in range(1, commits + 1) for name in ids_of(sequence)]
    assert sum(each["won"] for each in reports) == commits - 1


def test_two_writers_race_in_the_store_and_no_commit_is_doubled_spec_86_87(tmp_path: Path, root: str) -> None:
    for attempt in range(MOST_RACES):
        reports = raced(tmp_path, ["conditional-put"] * 2, COMMITS, lake=f"{root}/{attempt}")
        require_once(f"{root}/{attempt}", reports)
        if sum(each["lost"] for each in reports):
            return
    pytest.fail("they never met")


def test_the_race_shows_an_engine_that_ignores_conflicts_in_the_store_spec_86(tmp_path: Path, root: str) -> None:
    for attempt in range(MOST_RACES):
        lake = f"{root}/{attempt}"
        reports = raced(tmp_path, ["unchecked"] * 2, CONTROL_COMMITS, lake=lake)
        sequences = [each.sequence for each in lake_at(lake).log(OBSERVATIONS).commits(None)]
        if len(sequences) > len(set(sequences)):
            with pytest.raises(AssertionError):
                require_once(lake, reports, CONTROL_COMMITS)
            return
        assert len(sequences) == CONTROL_COMMITS
    pytest.fail("they never met")


@pytest.fixture(scope="module")
def engine(
    network: CuttingProxy, credentials: CredentialService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A Spark Connect server with the jars for S3, and credentials that are handed out."""
    try:
        jar_paths(with_s3=True)
    except JarsMissing as missing:
        pytest.skip(str(missing))
    with ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:  # of the engine alone: the other clients keep theirs
            patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{network.port}")
            handed_out(patch, credentials)
            server = connect_server(tmp_path_factory.mktemp("engine"), lake_uri=f"s3://{BUCKET}/lake")
            address = running.enter_context(server)
        yield address


def test_spark_and_delta_rs_race_in_the_store_and_no_commit_is_doubled_spec_86_87(
    engine: str, tmp_path: Path, root: str
) -> None:
    require_once(root, raced(tmp_path, [engine, "conditional-put"], COMMITS, lake=root))


def copied(source: Path, target: str) -> None:
    """Copy the files below ``source`` into the store, as `aws s3 cp --recursive` does."""
    for file in (each for each in source.rglob("*") if each.is_file()):
        (location(target) / file.relative_to(source).as_posix()).write_bytes(file.read_bytes())


def test_a_lake_that_moves_into_the_store_goes_on_there_and_takes_each_record_once(
    engine: str, tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Platform(tmp_path, attach(engine, "before"), START_NS, remote=engine)
    data, chosen = sealed(before.zone("radar"), "a.radar"), [RAW_RECORDS.name, OBSERVATIONS.name]
    before.run("observations_to_alerts", only=chosen)
    copied(tmp_path / "lake", f"{root}/lake")
    copied(tmp_path / "landing", f"{root}/landing")
    session = attach(engine, "tests", lake_uri=f"{root}/lake")
    platform = Platform(tmp_path, session, START_NS, remote=engine, store=root)
    assert platform.rows(OBSERVATIONS, "observation_id").num_rows == 3
    platform.zone("radar").seal("again.radar", data, replace(described(data)))
    sealed(platform.zone("radar"), "b.radar", 5)
    monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 0)  # Arrow writes the data files there
    platform.run("observations_to_alerts", only=chosen)
    assert platform.zone("radar").pending_names() == []
    assert platform.rows(RAW_RECORDS, "segment_name").num_rows == 3 + 5
    zones = landing_zones(platform.settings.landing_uri)
    found = recover(platform.lake, [RAW_RECORDS, OBSERVATIONS], zones, depth=Depth.COLUMNS, repair=False)
    assert [problem for each in found for problem in each.problems] == []
    assert before.lake.head(RAW_RECORDS).sequence == 1


def test_the_engine_uses_new_credentials_while_runs_go_on(
    engine: str, network: CuttingProxy, credentials: CredentialService, tmp_path: Path, root: str
) -> None:
    """Its SDK keeps credentials for at least a second, so the old ones must stay valid for a while."""
    session = attach(engine, "tests", lake_uri=f"{root}/lake")
    platform = Platform(tmp_path, session, START_NS, remote=engine, store=root)
    used: set[bytes] = set()
    network.on_request = recorder(used)

    def uses_only(key: str) -> bool:
        used.clear()
        session.read.format("delta").load(platform.lake.log(RAW_RECORDS).uri).select("segment_name").toArrow()
        return used == {key.encode()}

    try:
        for records, (key, secret) in enumerate(((KEY, SECRET), (NEXT_KEY, NEXT_SECRET)), start=3):
            credentials.key, credentials.secret = key, secret
            sealed(platform.zone("radar"), f"{key}.radar", records)
            platform.run("observations_to_alerts", only=[RAW_RECORDS.name])
            assert eventually(partial(uses_only, key), 30.0), used
    finally:
        credentials.key, credentials.secret = KEY, SECRET
        network.on_request = lambda _data: None
    assert platform.rows(RAW_RECORDS, "segment_name").num_rows == 3 + 4


@pytest.mark.parametrize("fault", sampled(["cut off", "overloaded"], "cut off"))
def test_a_run_whose_engine_loses_the_store_is_repeated_and_nothing_is_doubled(
    engine: str, network: CuttingProxy, tmp_path: Path, root: str, fault: str
) -> None:
    """As the oracle of the fault campaign sees it, which reads the store past the network of the engine."""
    session = attach(engine, "tests", lake_uri=f"{root}/lake")
    platform = Platform(tmp_path, session, after(NOW_S), remote=engine, store=root)
    world, landing = World(seed=8, is_for_store=True), platform.settings.landing_uri
    world.deliver(world.next_stretch(), landing)
    waiting = {feed: platform.zone(feed).pending_names() for feed in ("radar", "isl", "optical")}
    STORE_FAULTS[fault](network)
    try:
        failed = platform.run("observations_to_alerts", must_succeed=False, only=[RAW_RECORDS.name])
    finally:
        network.mend()
    (run,) = platform.instance.get_runs()
    assert not failed.success
    assert run.tags[FAILURE_TAG] == Disposition.TRANSIENT, run.tags[REASON_TAG]
    assert {feed: platform.zone(feed).pending_names() for feed in waiting} == waiting
    network.delay(0.05)
    try:
        platform.run("observations_to_alerts", only=[RAW_RECORDS.name, DEAD_LETTERS.name])
    finally:
        network.mend()
    assert platform.lake.log(RAW_RECORDS).head().sequence == 1
    assert platform.rows(RAW_RECORDS, "segment_name").num_rows > 0
    tables = [RAW_RECORDS, DEAD_LETTERS]
    found = (
        oracle.identity(platform.lake, world.written),
        oracle.content(platform.lake, world.written),
        oracle.log(platform.lake, tables),
        oracle.files(platform.lake, tables),
        oracle.acknowledged(platform.lake, landing),
        oracle.at_rest(platform.instance, landing),
    )
    assert found == ([],) * len(found)

"""Clients of one Spark Connect server that die, stop or share it while it executes: each statement commits under its
own identity, whatever other statements the engine executes for the same or another platform."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.engine_client import TABLES, Client, Write, row_of
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.sampling import sampled

pytestmark = pytest.mark.timeout(600)
FIRST = 1
Start = Callable[..., Client]


METADATA_CHANGE = pytest.param(
    "append", lambda table: table.alter.set_table_properties({"sda.note": "x"}, False), "DELTA_METADATA_CHANGED",
    id="properties",
)  # fmt: skip
PROTOCOL_CHANGE = pytest.param(
    "overwrite", lambda table: table.alter.add_feature(TableFeatures.AppendOnly, True), "DELTA_PROTOCOL_CHANGED",
    id="protocol",
)  # fmt: skip


@pytest.fixture(params=sampled(["append", "overwrite"], "overwrite"))
def write(request: pytest.FixtureRequest) -> Write:
    """How the clients write: both ways where a killed client's statement commits, one of them elsewhere.

    In one process, `test_commits` and `test_lost_commits` hold both ways to the same rules.
    """
    chosen: Write = request.param
    return chosen


@pytest.fixture
def lake(tmp_path: Path, write: Write) -> Lake:
    """A lake whose table has one commit, with one row."""
    return new_lake(tmp_path / "lake", write)


@pytest.fixture
def start(address: str, tmp_path: Path, write: Write) -> Iterator[Start]:
    """Starts clients, and ends those that are left."""
    started: list[Client] = []

    def begin(run_id: str, *ids: int, lake: Path = tmp_path / "lake", stop_at: str = "") -> Client:
        started.append(Client(address, lake, run_id, write, ids, stop_at=stop_at))
        return started[-1]

    yield begin
    for client in started:
        client.end()


def new_lake(root: Path, write: Write) -> Lake:
    lake = lake_at(root)
    commit(lake, TABLES[write], [row_of(TABLES[write], FIRST)])
    return lake


def content(lake: Lake, write: Write) -> dict[int, tuple[str, set[int]]]:
    """By commit sequence: the run that its manifest names, and the ids of the rows that have this sequence."""
    table = TABLES[write]
    log = lake.log(table)
    assert broken_chain(log.commits()) == []
    rows = log.rows([table.key[0], COMMIT_SEQUENCE]).to_pylist()
    return {
        c.sequence: (c.manifest.run_id, {int(r[table.key[0]]) for r in rows if r[COMMIT_SEQUENCE] == c.sequence})
        for c in log.commits()
    }


def test_a_statement_whose_client_was_killed_commits_under_its_own_manifest__D1(
    start: Start, lake: Lake, write: Write
) -> None:
    """The next run plans the same sequence, and executes when the statement of the dead one lands."""
    killed = start("killed", 101, 102).hold()
    killed.kill()
    following = start("following", 201, 202, 203).hold()
    killed.release()
    assert eventually(lambda: lake.head(TABLES[write]).sequence == 2, 60.0)
    following.release()
    assert following.report() == ["conflict", "receipt 3"]
    expected = {1: ("test", {FIRST}), 2: ("killed", {101, 102}), 3: ("following", {201, 202, 203})}
    assert content(lake, write) == expected
    assert [c.rows_written for c in lake.log(TABLES[write]).commits()][:2] == [3, 2]


@pytest.mark.parametrize("write", ["overwrite"], indirect=True)
def test_a_statement_whose_client_was_killed_changes_nothing_once_it_was_overtaken__D1(
    start: Start, lake: Lake, write: Write
) -> None:
    table = Path(lake.log(TABLES[write]).uri)
    killed = start("killed", 101, 102).hold()
    killed.kill()
    following = start("following", 201).hold()
    following.release()
    assert following.report() == ["receipt 2"]
    (unfinished,) = [file for file in table.glob("*.parquet") if not is_whole(file)]
    killed.release()
    assert eventually(lambda: is_whole(unfinished), 60.0)
    last = start("last", 301).hold()
    last.release()
    assert last.report() == ["receipt 3"]
    assert content(lake, write) == {1: ("test", {FIRST}), 2: ("following", {201}), 3: ("last", {301})}


def is_whole(file: Path) -> bool:
    """Whether the data file has its end; one that was only begun has at most the four bytes of its beginning."""
    return file.stat().st_size > 4 and file.read_bytes()[-4:] == b"PAR1"


@pytest.mark.parametrize("write", ["append"], indirect=True)
def test_a_client_that_stood_still_before_its_statement_commits_nothing_without_identity__D1(
    start: Start, lake: Lake, write: Write
) -> None:
    zombie = start("zombie", 101, stop_at="commit.planned")
    zombie.await_stop()
    other = start("other", 201).hold()
    other.release()
    assert other.report() == ["receipt 2"]
    zombie.go_on()
    assert zombie.report() == ["conflict", "receipt 3"]
    assert content(lake, write) == {1: ("test", {FIRST}), 2: ("other", {201}), 3: ("zombie", {101})}
    assert lake.log(TABLES[write]).version() == 2


@pytest.mark.parametrize("write", ["overwrite"], indirect=True)
def test_two_platforms_on_one_engine_write_only_their_own_manifests__D1(
    start: Start, tmp_path: Path, lake: Lake, write: Write
) -> None:
    other = new_lake(tmp_path / "other", write)
    ours, theirs = start("ours", 11, 12).hold(), start("theirs", 21, lake=tmp_path / "other").hold()
    ours.release()
    assert ours.report() == ["receipt 2"]
    theirs.release()
    assert theirs.report() == ["receipt 2"]
    assert content(lake, write) == {1: ("test", {FIRST}), 2: ("ours", {11, 12})}
    assert content(other, write) == {1: ("test", {FIRST}), 2: ("theirs", {21})}


@pytest.mark.parametrize(
    ("write", "change", "condition"),
    sampled([METADATA_CHANGE, PROTOCOL_CHANGE], METADATA_CHANGE),
    indirect=["write"],
)
def test_a_change_of_the_table_next_to_a_write_is_a_reason_to_try_again__D22(
    start: Start, lake: Lake, write: Write, change: Callable[[DeltaTable], None], condition: str
) -> None:
    client = start("run", 101).hold()
    change(DeltaTable(lake.log(TABLES[write]).uri))
    client.release()
    assert client.report() == [f"transient {condition}"]
    assert content(lake, write) == {1: ("test", {FIRST})}

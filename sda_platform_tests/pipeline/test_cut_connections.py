"""The network between a run and the engine is cut during a commit: nothing is lost or doubled, and no run hangs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.engine_client import TABLES, Client, row_of

pytestmark = pytest.mark.timeout(600)
TABLE = TABLES["append"]
FIRST = 1


@pytest.fixture
def proxy(address: str) -> Iterator[CuttingProxy]:
    """The network between a client and that server."""
    with CuttingProxy(int(address.rpartition(":")[2])) as opened:
        yield opened


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake whose table has one commit, with one row."""
    created = lake_at(tmp_path / "lake")
    commit(created, TABLE, [row_of(TABLE, FIRST)])
    return created


def through(proxy: CuttingProxy, lake: Lake, run_id: str, *ids: int, stop_at: str = "") -> Client:
    return Client(f"sc://127.0.0.1:{proxy.port}", Path(lake.uri), run_id, "append", ids, stop_at=stop_at)


def content(lake: Lake) -> dict[int, set[int]]:
    """The rows of each commit, by its sequence; the chain must hold."""
    log = lake.log(TABLE)
    assert broken_chain(log.commits()) == []
    rows = log.rows([TABLE.key[0], COMMIT_SEQUENCE]).to_pylist()
    assert len(rows) == len({row[TABLE.key[0]] for row in rows})
    return {
        each.sequence: {int(row[TABLE.key[0]]) for row in rows if row[COMMIT_SEQUENCE] == each.sequence}
        for each in log.commits()
    }


def test_a_run_recovers_a_connection_that_was_cut_while_the_engine_executed(lake: Lake, proxy: CuttingProxy) -> None:
    client = through(proxy, lake, "cut", 101, 102).hold()
    proxy.cut(for_good=False)
    client.release()
    assert client.report() == ["receipt 2"]
    assert content(lake) == {1: {FIRST}, 2: {101, 102}}


def test_a_run_whose_network_is_gone_before_its_statement_fails_as_transient(lake: Lake, proxy: CuttingProxy) -> None:
    client = through(proxy, lake, "cut", 101, stop_at="commit.planned")
    client.await_stop()
    proxy.cut(for_good=True)
    client.go_on()
    assert [line.split()[0] for line in client.report()] == ["transient"]
    proxy.mend()
    following = through(proxy, lake, "following", 201).hold()
    following.release()
    assert following.report() == ["receipt 2"]
    assert content(lake) == {1: {FIRST}, 2: {201}}


def test_a_run_whose_network_is_gone_while_the_engine_executes_fails_and_its_statement_counts_once(
    lake: Lake, proxy: CuttingProxy
) -> None:
    client = through(proxy, lake, "cut", 101, 102).hold()
    proxy.cut(for_good=True)
    assert [line.split()[0] for line in client.report()] == ["transient"]
    proxy.mend()
    following = through(proxy, lake, "following", 201).hold()
    client.release()  # the engine completes the statement of the run that failed
    following.release()
    report = following.report()
    cut_landed = {1: {FIRST}, 2: {101, 102}, 3: {201}}
    overtaken = {1: {FIRST}, 2: {201}}
    assert (report, content(lake)) in ((["conflict", "receipt 3"], cut_landed), (["receipt 2"], overtaken))

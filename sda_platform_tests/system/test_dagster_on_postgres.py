"""Dagster's records in a real Postgres server, by the ``dagster.yaml`` of a start: kept over restarts, cuts and a
change of the leader.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as db
from dagster_postgres.event_log import PostgresEventLogStorage
from sqlalchemy.pool import NullPool

from sda_platform.runtime import platform_home
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.postgres_storage import CREATION
from sda_platform.runtime.supervisor import Platform
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.overlapping_runs import evaluations, newest_evaluation, newest_write, overlap
from sda_platform_tests.support.postgres_replicas import moving_postgres
from sda_platform_tests.support.postgres_server import PASSWORD, PostgresServer, postgres_with_empty_database
from sda_platform_tests.support.running_platform import eventually

pytestmark = pytest.mark.timeout(300)
_CURSOR = {"sensor": "42"}
OPENS = "import sys; from sda_platform.runtime.postgres_storage import PostgresStorage; PostgresStorage(sys.argv[1])"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_with_empty_database() as started:
        yield started


@pytest.fixture
def network(server: PostgresServer) -> Iterator[CuttingProxy]:
    """The network between Dagster and the server."""
    with CuttingProxy(int(server.url.rpartition(":")[2].partition("/")[0])) as opened:
        yield opened


@pytest.fixture
def instance(
    server: PostgresServer, network: CuttingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """The instance of a platform whose start has found the setting."""
    address = f"127.0.0.1:{network.port}"
    at = server.url.rpartition("@")[2].partition("/")[0]
    monkeypatch.setenv(platform_home.POSTGRES_VARIABLE, with_driver(server.url).replace(at, address))
    platform_home.prepare(tmp_path, "127.0.0.1:1", os.environ)
    with dg.DagsterInstance.from_config(str(platform_home.dagster_home(tmp_path))) as opened:
        yield opened
    written = (platform_home.dagster_home(tmp_path) / "dagster.yaml").read_text()
    assert os.environ[platform_home.POSTGRES_VARIABLE] not in written, "the password stays in the environment"


def with_driver(url: str) -> str:
    """A server's address as the setting has it."""
    return url.replace("postgresql://", platform_home.POSTGRES_SCHEME)


def run(instance: dg.DagsterInstance, meanwhile: Callable[[], None] = lambda: None) -> str:
    """Materialize an asset, and do ``meanwhile`` while it is made. Returns the run's id."""

    @dg.asset
    def made() -> None:
        meanwhile()

    result = dg.materialize([made], instance=instance)
    assert result.success
    return result.run_id


def materialized_by(instance: dg.DagsterInstance) -> str | None:
    event = instance.get_latest_materialization_event(dg.AssetKey("made"))
    return event.run_id if event else None


def test_runs_events_and_cursors_survive_the_death_of_the_server(
    instance: dg.DagsterInstance, server: PostgresServer
) -> None:
    assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
    earlier = {record.run_id for record in instance.get_runs()}
    first = run(instance)
    instance.run_storage.set_cursor_values(_CURSOR)
    server.stop("immediate")
    server.start()
    assert {record.run_id for record in instance.get_runs()} - earlier == {first}
    assert instance.run_storage.get_cursor_values(set(_CURSOR)) == _CURSOR
    second = run(instance)
    assert {record.run_id: record.status for record in instance.get_runs() if record.run_id not in earlier} == {
        first: dg.DagsterRunStatus.SUCCESS,
        second: dg.DagsterRunStatus.SUCCESS,
    }
    assert materialized_by(instance) == second


def test_of_overlapping_runs_the_last_to_write_is_the_one_whose_checks_are_shown(instance: dg.DagsterInstance) -> None:
    first = overlap(instance)
    assert newest_write(instance) == first
    assert newest_evaluation(instance) == (first, "SUCCEEDED")
    assert evaluations(instance) == 2


def test_a_connection_that_is_cut_during_a_run_loses_no_event(
    instance: dg.DagsterInstance, network: CuttingProxy
) -> None:
    cut = run(instance, lambda: network.cut(for_good=False))
    assert materialized_by(instance) == cut
    found = instance.get_run_by_id(cut)
    assert found is not None and found.status is dg.DagsterRunStatus.SUCCESS


def test_a_leader_that_dies_during_a_run_is_followed_by_its_standby_and_no_event_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moving_postgres() as servers:
        monkeypatch.setenv(platform_home.POSTGRES_VARIABLE, with_driver(servers.url))
        platform_home.prepare(tmp_path, "127.0.0.1:1", os.environ)

        def fail_over() -> None:
            servers.lose_leader()
            servers.promote()

        with dg.DagsterInstance.from_config(str(platform_home.dagster_home(tmp_path))) as instance:
            before = run(instance)
            instance.run_storage.set_cursor_values(_CURSOR)
            struck = run(instance, fail_over)
            after = run(instance)
            found = {record.run_id: record.status for record in instance.get_runs()}
            assert found == dict.fromkeys((before, struck, after), dg.DagsterRunStatus.SUCCESS)
            assert instance.run_storage.get_cursor_values(set(_CURSOR)) == _CURSOR
            kinds = [[record.dagster_event_type for record in instance.all_logs(each)] for each in (before, struck)]
            assert kinds[0] == kinds[1], "each event of the run, before and after the change of the leader"


def test_an_address_without_a_driver_is_refused_at_the_start(tmp_path: Path) -> None:
    """SQLAlchemy 2.1 would take a driver that the extra does not install."""
    environment = {**os.environ, platform_home.POSTGRES_VARIABLE: f"postgresql://me:{PASSWORD}@host/db"}
    with pytest.raises(PlatformError, match=r"must begin with postgresql\+psycopg2://") as refusal:
        Platform(tmp_path, environment=environment).start()
    assert PASSWORD not in str(refusal.value)


def test_services_that_start_at_once_make_the_tables_one_after_the_other() -> None:
    with postgres_with_empty_database() as empty:
        engine = db.create_engine(with_driver(empty.url), poolclass=NullPool)
        waiting = db.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        with engine.begin() as first:
            first.execute(db.text(f"SELECT pg_advisory_xact_lock({CREATION})"))
            command = [sys.executable, "-c", OPENS, with_driver(empty.url)]
            others = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
            assert eventually(lambda: first.execute(waiting).scalar_one() == len(others), 60.0)
            assert db.inspect(first).get_table_names() == []
        errors = [each.communicate()[1][-300:] for each in others]
        assert [each.returncode for each in others] == [0] * len(others), errors
        assert "event_logs" in db.inspect(engine).get_table_names()

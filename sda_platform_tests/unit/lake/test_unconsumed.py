"""Commits that no one has read get a run, whatever became of Dagster's memory of the runs before."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import sda_platform.definitions  # noqa: F401  # declares the jobs and promises of the tables
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.fusion import assets as fusion  # noqa: F401
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.manifest import TableWindow
from sda_platform.observability.red_tables import acknowledge
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG
from sda_platform.orchestration.sensors import request_unconsumed
from sda_platform.orchestration.table_checks import review_declared
from sda_platform_tests.support.delta_tables import commit, lake_at


class Ticker:
    """The alerts pool's sensor on an instance and a lake of its own."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.instance, self.lake, self.wall_s = instance, lake_at(home), 2e9

    def tick(self) -> dg.RunRequest | str:
        context = dg.build_sensor_context(instance=self.instance)
        readers = (RAW_RECORDS, OBSERVATIONS, FUSED_TRACKS)
        tables = (*readers, ORBITAL_CATALOG, TIME_TAG_BIASES)
        answer = request_unconsumed(context, self.lake, OBSERVATIONS_TO_ALERTS, readers, tables, wall_s=self.wall_s)
        return answer if isinstance(answer, dg.RunRequest) else answer.skip_message or ""

    def request(self) -> dg.RunRequest:
        answer = self.tick()
        assert isinstance(answer, dg.RunRequest), answer
        return answer

    def run(self, status: dg.DagsterRunStatus, **tags: str) -> str:
        run_id = str(uuid.uuid4())
        self.instance.add_run(dg.DagsterRun(job_name="observations_to_alerts", run_id=run_id, status=status, tags=tags))
        return run_id

    def land(self) -> None:
        commit(self.lake, RAW_RECORDS, [{"record_number": 0}])

    def observe(self) -> None:
        """Have the observations consume every raw record, and the tracks these."""
        for source, reader in ((RAW_RECORDS, OBSERVATIONS), (OBSERVATIONS, FUSED_TRACKS)):
            head = self.lake.head(source)
            commit(self.lake, reader, windows=[TableWindow(source.name, 0, head.sequence, -1, head.version)])


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


@pytest.fixture
def behind(ticker: Ticker) -> Ticker:
    """The observations have read one batch, and a second one waits for them."""
    ticker.land()
    ticker.observe()
    ticker.land()
    return ticker


def test_an_empty_lake_and_one_without_arrears_are_left_alone(ticker: Ticker) -> None:
    assert ticker.tick() == "every commit was consumed"
    ticker.land()
    ticker.observe()
    assert ticker.tick() == "every commit was consumed"


def test_work_that_dagster_remembers_no_run_of_is_done_all_the_same__F_state(behind: Ticker) -> None:
    request = behind.request()
    assert request.tags == {
        "sda/pool": "alerts",
        "sda/batch": str(request.run_key).partition(":")[0],
        "sda/attempt": "1",
    }
    behind.observe()
    assert behind.tick() == "every commit was consumed"


def test_a_table_that_has_no_commit_yet_is_not_forgotten__F_state(ticker: Ticker) -> None:
    """The run that was to make its first commit was killed, and Dagster's record of that run is lost."""
    ticker.land()
    assert ticker.request().run_key
    ticker.observe()
    assert ticker.tick() == "every commit was consumed"


def test_what_a_table_only_looks_up_gives_it_nothing_to_do(ticker: Ticker) -> None:
    commit(ticker.lake, ORBITAL_CATALOG, [{"norad_id": 25544}])
    assert ticker.tick() == "every commit was consumed"


@pytest.mark.parametrize("pool", ["alerts", "catalog"])
def test_a_run_that_is_under_way_has_its_turn_first(behind: Ticker, pool: str) -> None:
    run_id = behind.run(dg.DagsterRunStatus.STARTED, **{"sda/pool": pool})
    waiting = "commits up to 2 of raw_records for observations wait"
    assert behind.tick() == f"{waiting}; run {run_id[:8]} is under way and will read them"


def test_a_failed_run_of_a_zone_is_for_that_zones_sensor(behind: Ticker) -> None:
    run_id = behind.run(dg.DagsterRunStatus.FAILURE, **{"sda/pool": "alerts", "sda/zone": "radar", "sda/batch": "b"})
    assert behind.tick() == f"run {run_id[:8]} failed, which is for the sensor of its zone"


def test_a_killed_run_is_followed_by_another_and_a_permanent_failure_is_not(behind: Ticker) -> None:
    first = behind.request()
    behind.run(dg.DagsterRunStatus.FAILURE, **first.tags)
    second = behind.request()
    assert second.run_key == str(first.run_key).replace(":1", ":2")
    behind.run(dg.DagsterRunStatus.FAILURE, **second.tags, **{FAILURE_TAG: "permanent"})
    said = behind.tick()
    assert isinstance(said, str)
    assert said.startswith("commits up to 2 of raw_records for observations wait; run ")
    assert "permanent, so not repeated" in said


STOPPED_BY_RED = (
    {"dagster/failure_reason": "STEP_FAILURE"},
    {FAILURE_TAG: "permanent", REASON_TAG: "TableIsRed: observations does not read on: …"},
)


@pytest.mark.parametrize("stopped", STOPPED_BY_RED, ids=["by its check", "by its plan"])
def test_a_red_table_is_not_asked_for_again_and_again_but_once_it_is_acknowledged_red_03(
    behind: Ticker, stopped: dict[str, str]
) -> None:
    """Rows of a segment that no manifest names: the skip reason states so, at each tick."""
    behind.lake.reads_unverified = False
    review_declared(behind.lake, RAW_RECORDS)
    behind.run(dg.DagsterRunStatus.FAILURE, **{"sda/pool": "alerts", "sda/zone": "radar", "sda/batch": "b"}, **stopped)
    for _ in range(3):
        behind.wall_s += 3600.0
        said = str(behind.tick())
        assert said.startswith("every commit was consumed; not to be read: raw_records sequence 1: ")
        assert "sda lake accept raw_records" in said
    acknowledge(behind.lake, "raw_records", "known")
    assert behind.request().tags["sda/pool"] == "alerts"

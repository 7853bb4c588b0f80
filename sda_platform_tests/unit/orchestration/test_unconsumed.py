"""The sensors of unconsumed commits: they stand back for a run that will read them, and for no other."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import sda_platform.definitions  # noqa: F401  # the packages declare there which job makes which table
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orchestration.declarations import served_by
from sda_platform.orchestration.jobs import (
    ALERTS_TO_SUBSCRIBER,
    CATALOG_TO_ALERTS,
    OBSERVATIONS_TO_ALERTS,
    ORBIT_DETERMINATION,
    PLATFORM_METRICS,
    Job,
)
from sda_platform.orchestration.sensors import request_unconsumed
from sda_platform.registry import TABLES
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.run_records import failed_run, recorded_run


class Ticker:
    """The sensor of the catalogue's job, on an instance and a lake of its own with one new ephemeris."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.instance, self.lake, self.wall_s = instance, lake_at(home / "lake"), 2e9
        commit(self.lake, REFINED_EPHEMERIDES, [{"norad_id": 25544}])

    def tick(self) -> dg.RunRequest | str:
        context, job = dg.build_sensor_context(instance=self.instance), CATALOG_TO_ALERTS
        answer = request_unconsumed(context, self.lake, job, served_by(job), TABLES, wall_s=self.wall_s)
        return answer if isinstance(answer, dg.RunRequest) else answer.skip_message or ""


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


def test_a_commit_that_no_run_will_read_gets_one(ticker: Ticker) -> None:
    request = ticker.tick()
    assert isinstance(request, dg.RunRequest)
    assert request.tags["sda/pool"] == "catalog"


@pytest.mark.parametrize("job", [OBSERVATIONS_TO_ALERTS, ALERTS_TO_SUBSCRIBER, ORBIT_DETERMINATION, PLATFORM_METRICS])
def test_runs_of_jobs_without_the_reader_do_not_hold_it_back(ticker: Ticker, job: Job) -> None:
    recorded_run(ticker.instance, job, dg.DagsterRunStatus.STARTED)
    assert isinstance(ticker.tick(), dg.RunRequest)


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED])
def test_a_run_of_the_job_will_read_it(ticker: Ticker, status: dg.DagsterRunStatus) -> None:
    run_id = recorded_run(ticker.instance, CATALOG_TO_ALERTS, status)
    assert f"run {run_id[:8]} is under way and will read them" in str(ticker.tick())


def test_a_run_of_chosen_assets_reads_it_if_the_reader_is_one_of_them(ticker: Ticker) -> None:
    recorded_run(ticker.instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.STARTED, tables=("orbital_catalog",))
    assert isinstance(ticker.tick(), dg.RunRequest), "the job's name says nothing of what was chosen"
    recorded_run(ticker.instance, "__ASSET_JOB", dg.DagsterRunStatus.STARTED, tables=(CONJUNCTION_CANDIDATES.name,))
    assert "is under way and will read them" in str(ticker.tick())


def test_what_failed_for_its_zone_is_for_the_sensor_of_the_zone(ticker: Ticker) -> None:
    run_id = failed_run(ticker.instance, CATALOG_TO_ALERTS, "OSError: full", tags={"sda/zone": "elements"})
    assert ticker.tick() == f"run {run_id[:8]} failed, which is for the sensor of its zone"


def test_a_failure_is_followed_by_a_pause_and_another_attempt(ticker: Ticker) -> None:
    first = ticker.tick()
    assert isinstance(first, dg.RunRequest)
    failed_run(ticker.instance, CATALOG_TO_ALERTS, "OSError: full", tags=first.tags)
    second = ticker.tick()
    assert isinstance(second, dg.RunRequest)
    assert (first.run_key or "").removesuffix(":1") == (second.run_key or "").removesuffix(":2")


def test_where_everything_is_consumed_nothing_is_requested(tmp_path: Path) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        ticker = Ticker(tmp_path, instance)
        ticker.lake = lake_at(tmp_path / "another")
        assert ticker.tick() == "every commit was consumed"

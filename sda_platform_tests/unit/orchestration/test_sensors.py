"""Landing sensors: one run per batch, new attempts after what may pass, and a reason for every skip."""

import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS, ORBIT_DETERMINATION, Job
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG
from sda_platform.orchestration.sensors import request_landing
from sda_platform_tests.support.segments import land, put, radar_segment


class Ticker:
    """A landing sensor on an instance of its own, of the radars' zone unless told; ``wall_s`` is its wall clock."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.zone = LandingZone(str(root), "radar")
        self.zones = [self.zone]
        self.instance = instance
        self.wall_s = time.time()

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        context = dg.build_sensor_context(instance=self.instance)
        return request_landing(context, self.zones, OBSERVATIONS_TO_ALERTS, orphan_grace_s=60.0, wall_s=self.wall_s)

    def request(self) -> dg.RunRequest:
        result = self.tick()
        assert isinstance(result, dg.SensorResult), result
        (request,) = result.run_requests or ()
        return request

    def run_key(self) -> str:
        return str(self.request().run_key)

    def skip(self) -> str:
        result = self.tick()
        assert isinstance(result, dg.SkipReason), result
        return str(result.skip_message)

    def run(
        self, status: dg.DagsterRunStatus, tags: Mapping[str, str] | None = None, job: Job = OBSERVATIONS_TO_ALERTS
    ) -> str:
        run_id = str(uuid.uuid4())
        origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("sda"), "sda"), job.name)
        self.instance.add_run(
            dg.DagsterRun(job_name=job.name, run_id=run_id, status=status, tags=tags or {}, remote_job_origin=origin)
        )
        return run_id

    def clear(self, name: str) -> None:
        """Take the segment away, as a run does once it is consumed."""
        for each in (f"{name}.meta.json", name):
            self.zone.pending_path(each).unlink()

    def run_requested(self, status: dg.DagsterRunStatus, **tags: str) -> str:
        """The run that the sensor requests now, ended with ``status``; and time for a pause to pass."""
        run_id = self.run(status, {**self.request().tags, **tags})
        self.wall_s += 61.0
        return run_id


@pytest.fixture
def ticker(tmp_path: Path) -> Any:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


def seal(ticker: Ticker, name: str, track: int = 0) -> None:
    assert land(ticker.zone, name, radar_segment(1, first_track=track))


def test_an_empty_zone_is_skipped_with_that_reason(ticker: Ticker) -> None:
    assert ticker.skip() == "radar: no sealed segment is pending"


def test_data_whose_metadata_has_not_come_starts_nothing(ticker: Ticker) -> None:
    put(ticker.zone, "a", b"data")
    assert ticker.skip() == "radar: no sealed segment is pending"


def test_an_overdue_orphan_starts_a_run_even_when_nothing_else_waits(ticker: Ticker) -> None:
    put(ticker.zone, "a", b"data")
    ticker.wall_s += 61.0
    assert ticker.run_key().endswith(":1")


def test_what_waits_becomes_one_run_of_the_pool_that_says_where_it_comes_from(ticker: Ticker) -> None:
    seal(ticker, "a")
    seal(ticker, "b", 1)
    result = ticker.tick()
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or ()
    batch = request.tags["sda/batch"]
    assert request.run_key == f"{batch}:1"
    assert {k: v for k, v in request.tags.items() if k.startswith("sda/")} == {
        "sda/pool": "alerts",
        "sda/zone": "radar",
        "sda/batch": batch,
        "sda/attempt": "1",
    }
    (arrived,) = list(result.asset_events)
    assert arrived.asset_key == dg.AssetKey(["landing", "radar"])
    assert arrived.metadata["backlog_segments"].value == 2


def test_what_comes_to_several_zones_at_once_is_one_run_that_each_of_them_records(
    ticker: Ticker, tmp_path: Path
) -> None:
    links = LandingZone(str(tmp_path), "isl")
    ticker.zones.append(links)
    seal(ticker, "a")
    alone = ticker.run_key()
    assert land(links, "a", radar_segment(1))
    result = ticker.tick()
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or ()
    assert request.tags["sda/zone"] == "radar+isl"
    assert request.run_key != alone, "the same name in another zone is another segment"
    assert {event.asset_key.path[-1] for event in result.asset_events or ()} == {"radar", "isl"}


def test_a_tick_that_is_repeated_before_its_run_exists_asks_under_the_same_key__CP22(ticker: Ticker) -> None:
    seal(ticker, "a")
    assert ticker.run_key() == ticker.run_key()


def test_what_is_consumed_while_the_sensor_looks_is_no_batch(ticker: Ticker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LandingZone, "pending_names", lambda _zone: ["gone"])
    assert ticker.skip() == "radar: no sealed segment is pending"


def test_another_batch_is_another_key(ticker: Ticker) -> None:
    seal(ticker, "a")
    first = ticker.run_key()
    seal(ticker, "b", 1)
    assert ticker.run_key().split(":")[0] != first.split(":")[0]


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.NOT_STARTED]
)
def test_a_run_of_the_job_that_has_not_begun_will_take_what_waits(ticker: Ticker, status: dg.DagsterRunStatus) -> None:
    run_id = ticker.run(status)
    seal(ticker, "a")
    assert ticker.skip() == f"radar: 1 segment (a) pending; run {run_id[:8]} will take them"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
def test_a_working_run_will_take_only_the_batch_it_was_started_for(ticker: Ticker, status: dg.DagsterRunStatus) -> None:
    seal(ticker, "a")
    batch = ticker.run_key().split(":")[0]
    run_id = ticker.run(status, {"sda/batch": batch})
    assert f"run {run_id[:8]} will take them" in ticker.skip()
    seal(ticker, "b", 1)
    assert ticker.run_key().endswith(":1"), "it listed the zone before b came"


def test_a_queued_run_of_another_job_changes_nothing(ticker: Ticker) -> None:
    ticker.run(dg.DagsterRunStatus.QUEUED, {"sda/pool": OBSERVATIONS_TO_ALERTS.pool}, ORBIT_DETERMINATION)
    seal(ticker, "a")
    assert ticker.run_key()


@pytest.mark.parametrize("tags", [{}, {FAILURE_TAG: "transient", REASON_TAG: "EngineUnavailable: nobody listens"}])
def test_a_killed_run_and_a_transient_failure_are_followed_by_another_attempt_under_a_new_key(
    ticker: Ticker, tags: dict[str, str]
) -> None:
    seal(ticker, "a")
    batch = ticker.run_key().split(":")[0]
    keys = []
    for _ in range(7):
        keys.append(ticker.run_key())
        ticker.run_requested(dg.DagsterRunStatus.FAILURE, **tags)
    assert keys == [f"{batch}:{n}" for n in range(1, 8)], "it never gives up: a backlog drains without a hand"


@pytest.mark.parametrize("clock_behind_s", [0.0, 5.0])
def test_the_next_attempt_waits_and_says_why_and_how_long(ticker: Ticker, clock_behind_s: float) -> None:
    seal(ticker, "a")
    run_id = ticker.run_requested(dg.DagsterRunStatus.FAILURE)
    ticker.wall_s -= 61.0 + clock_behind_s
    said = ticker.skip()
    assert said.startswith(f"radar: 1 segment (a) pending; run {run_id[:8]}: its worker was killed; attempt 2 in ")
    ticker.wall_s += 61.0 + clock_behind_s
    assert ticker.run_key().endswith(":2")


@pytest.mark.parametrize("kind", ["permanent", "invariant"])
def test_a_permanent_failure_is_reported_and_not_repeated_until_another_segment_comes(
    ticker: Ticker, kind: str
) -> None:
    seal(ticker, "a")
    run_id = ticker.run_requested(dg.DagsterRunStatus.FAILURE, **{FAILURE_TAG: kind, REASON_TAG: "SchemaMismatch: x"})
    ticker.wall_s += 86_400.0
    assert ticker.skip() == (
        f"radar: 1 segment (a) pending; run {run_id[:8]}: SchemaMismatch: x; {kind}, so not repeated: "
        "fix the cause, then start the job by hand"
    )
    seal(ticker, "b", 1)
    assert ticker.run_key().endswith(":2"), "a new file is a new batch, and the second attempt at what failed"


def test_a_red_check_that_blocks_is_not_repeated(ticker: Ticker) -> None:
    seal(ticker, "a")
    ticker.run_requested(dg.DagsterRunStatus.FAILURE, **{"dagster/failure_reason": "STEP_FAILURE"})
    assert "a check that blocks is red; invariant, so not repeated" in ticker.skip()


def test_a_run_that_failed_after_it_emptied_the_zone_is_asked_for_again(ticker: Ticker) -> None:
    seal(ticker, "a")
    batch = ticker.run_key().split(":")[0]
    ticker.run_requested(dg.DagsterRunStatus.FAILURE, **{FAILURE_TAG: "transient"})
    ticker.clear("a")
    assert ticker.run_key() == f"{batch}:2"
    ticker.run_requested(dg.DagsterRunStatus.SUCCESS)
    assert ticker.skip() == "radar: no sealed segment is pending"


def test_a_failed_run_is_repeated_although_another_job_of_its_pool_ran_afterwards(ticker: Ticker) -> None:
    seal(ticker, "a")
    batch = ticker.run_key().split(":")[0]
    ticker.run_requested(dg.DagsterRunStatus.FAILURE, **{FAILURE_TAG: "transient"})
    ticker.clear("a")
    ticker.run(dg.DagsterRunStatus.SUCCESS, {"sda/pool": OBSERVATIONS_TO_ALERTS.pool}, ORBIT_DETERMINATION)
    assert ticker.run_key() == f"{batch}:2"


def test_the_failed_run_of_another_job_is_not_repeated(ticker: Ticker) -> None:
    ticker.run(dg.DagsterRunStatus.FAILURE, {"sda/zone": "elements", "sda/batch": "b"}, CATALOG_TO_ALERTS)
    assert ticker.skip() == "radar: no sealed segment is pending"


def test_a_file_that_comes_every_day_under_one_name_is_asked_for_every_day(ticker: Ticker) -> None:
    """Neither the run key of an earlier day nor its attempts may count against today's file."""
    keys = []
    for day in range(7):
        assert land(ticker.zone, "catalogue.csv", radar_segment(1, first_track=day), seconds=86_400 * day)
        keys.append(ticker.run_key())
        ticker.run_requested(dg.DagsterRunStatus.SUCCESS)
        ticker.clear("catalogue.csv")
        assert ticker.skip() == "radar: no sealed segment is pending"
    assert len(set(keys)) == len(keys)
    assert {key.split(":")[1] for key in keys} == {"1"}


def test_many_segments_are_reported_by_their_first_names(ticker: Ticker) -> None:
    for n in range(5):
        seal(ticker, f"s{n}", n)
    ticker.run(dg.DagsterRunStatus.QUEUED)
    assert ticker.skip().startswith("radar: 5 segments (s0, s1, s2, …) pending")

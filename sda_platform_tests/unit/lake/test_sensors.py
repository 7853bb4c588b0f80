"""Landing sensors: one run per batch, a new attempt after a failure, and a reason for every skip."""

import uuid
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from sda_platform.ingest.sensors import landing_sensor
from sda_platform.lake.landing import LandingZone
from sda_platform.lake.resource import LandingResource
from sda_platform.lake.sensors import MAX_ATTEMPTS, Cursor
from sda_platform_tests.segments import land, put, radar_segment


class Ticker:
    """The radar sensor on an instance of its own; keeps the cursor, as the daemon does."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.zone = LandingZone(str(root), "radar")
        self.instance = instance
        self.cursor: str | None = None
        self._landing = LandingResource(root=str(root))
        job = dg.define_asset_job("hot", selection="*")
        self._sensor = landing_sensor("radar", job, "hot", 2)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"landing": self._landing}
        )
        result: Any = self._sensor(context)
        self.cursor = getattr(result, "cursor", None) or context.cursor
        return result

    def run_key(self) -> str:
        result = self.tick()
        assert isinstance(result, dg.SensorResult), result
        (request,) = result.run_requests or ()
        return str(request.run_key)

    def skip(self) -> str:
        result = self.tick()
        assert isinstance(result, dg.SkipReason), result
        return str(result.skip_message)

    def run(self, status: dg.DagsterRunStatus, **tags: str) -> str:
        run_id = str(uuid.uuid4())
        origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("sda"), "sda"), "hot")
        self.instance.add_run(
            dg.DagsterRun(job_name="hot", run_id=run_id, status=status, tags=tags, remote_job_origin=origin)
        )
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


def test_what_waits_becomes_one_run_of_the_lane_that_says_where_it_comes_from(ticker: Ticker) -> None:
    seal(ticker, "a")
    seal(ticker, "b", 1)
    result = ticker.tick()
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or ()
    batch = request.tags["sda/batch"]
    assert request.run_key == f"{batch}:1"
    assert request.job_name == "hot"
    assert {k: v for k, v in request.tags.items() if k.startswith("sda/")} == {
        "sda/lane": "hot",
        "sda/zone": "radar",
        "sda/batch": batch,
        "sda/attempt": "1",
    }
    (arrived,) = result.asset_events or ()
    assert arrived.asset_key == dg.AssetKey(["landing", "radar"])
    assert arrived.metadata["pending_segments"].value == 2
    assert Cursor.parse(result.cursor) == Cursor(batch, 1)


def test_the_same_batch_has_the_same_key_after_the_cursor_is_lost(ticker: Ticker) -> None:
    seal(ticker, "a")
    first = ticker.run_key()
    for lost in (None, "", "{", "[]", '{"version": 2}'):
        ticker.cursor = lost
        assert ticker.run_key() == first


def test_another_batch_is_another_key(ticker: Ticker) -> None:
    seal(ticker, "a")
    first = ticker.run_key()
    seal(ticker, "b", 1)
    assert ticker.run_key().split(":")[0] != first.split(":")[0]


@pytest.mark.parametrize(
    "status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.NOT_STARTED]
)
def test_a_run_of_the_lane_that_has_not_begun_will_take_what_waits(ticker: Ticker, status: dg.DagsterRunStatus) -> None:
    run_id = ticker.run(status, **{"sda/lane": "hot"})
    seal(ticker, "a")
    assert ticker.skip() == f"radar: 1 segment (a) pending; run {run_id[:8]} will take them"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
def test_a_working_run_will_take_only_the_batch_it_was_started_for(ticker: Ticker, status: dg.DagsterRunStatus) -> None:
    seal(ticker, "a")
    batch = ticker.run_key().split(":")[0]
    run_id = ticker.run(status, **{"sda/lane": "hot", "sda/batch": batch})
    assert f"run {run_id[:8]} will take them" in ticker.skip()
    seal(ticker, "b", 1)
    assert ticker.run_key().endswith(":1"), "it listed the zone before b came"


def test_a_queued_run_of_another_lane_changes_nothing(ticker: Ticker) -> None:
    ticker.run(dg.DagsterRunStatus.QUEUED, **{"sda/lane": "catalog"})
    seal(ticker, "a")
    assert ticker.run_key()


def test_a_failed_run_is_followed_by_a_second_attempt_under_a_new_key(ticker: Ticker) -> None:
    seal(ticker, "a")
    batch, attempt = ticker.run_key().split(":")
    ticker.run(dg.DagsterRunStatus.FAILURE, **{"sda/lane": "hot", "sda/batch": batch})
    assert (ticker.run_key(), attempt) == (f"{batch}:2", "1")


def test_a_batch_that_fails_again_and_again_stops_and_says_so(ticker: Ticker) -> None:
    seal(ticker, "a")
    keys = [ticker.run_key() for _ in range(MAX_ATTEMPTS)]
    assert [key.split(":")[1] for key in keys] == ["1", "2", "3", "4", "5"]
    assert ticker.skip().startswith(
        "radar: 1 segment (a) pending, but 5 runs left them there: look at the last run's error"
    )
    seal(ticker, "b", 1)
    assert ticker.run_key().endswith(":1"), "a new file is a new batch"


def test_a_file_that_comes_every_day_under_one_name_is_asked_for_every_day(ticker: Ticker) -> None:
    """Neither the run key of an earlier day nor its attempts may count against today's file."""
    keys = []
    for day in range(MAX_ATTEMPTS + 2):
        assert land(ticker.zone, "catalogue.csv", radar_segment(1, first_track=day), seconds=86_400 * day)
        keys.append(ticker.run_key())
        ticker.zone.discard_duplicate("catalogue.csv")
        assert ticker.skip() == "radar: no sealed segment is pending"
    assert len(set(keys)) == len(keys)
    assert {key.split(":")[1] for key in keys} == {"1"}


def test_many_segments_are_told_by_their_first_names(ticker: Ticker) -> None:
    for n in range(5):
        seal(ticker, f"s{n}", n)
    ticker.run(dg.DagsterRunStatus.QUEUED, **{"sda/lane": "hot"})
    assert ticker.skip().startswith("radar: 5 segments (s0, s1, s2, …) pending")

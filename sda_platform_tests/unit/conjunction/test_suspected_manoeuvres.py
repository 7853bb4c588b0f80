"""The sensors of screenings: a run for suspected manoeuvres that are new, not too often, and for other settings."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.conjunction.planning import SETTINGS
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.sensors import request_screening, request_screening_anew
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.run_records import recorded_run
from sda_platform_tests.support.segments import START_NS, after


class Ticker:
    """The sensor on an instance and a lake of its own, whose last screening was at the start."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.home, self.instance = home, instance
        commit(lake_at(home / "lake"), TRACKS, [{"norad_id": 1, "state": "confirmed"}])
        self.screened(1, 0.0)

    def screened(self, tracks: int, at_s: float) -> None:
        snapshot = TableSnapshot(TRACKS.name, tracks - 1, tracks)
        commit(lake_at(self.home / "lake", now_ns=after(at_s)), CONJUNCTION_CANDIDATES, [], snapshots=(snapshot,))

    def suspect(self, norad_id: int, at_s: float, *, state: str = "confirmed", live_since_s: float = 0.0) -> None:
        times = {"manoeuvre_time_ns": after(at_s), "state_since_ns": after(live_since_s)}
        row = {"norad_id": norad_id, "state": state, **times}
        commit(lake_at(self.home / "lake"), TRACKS, [row])

    def tick(self, at_s: float) -> dg.RunRequest | str:
        context = dg.build_sensor_context(instance=self.instance)
        answer = request_screening(context, lake_at(self.home / "lake", now_ns=after(at_s)), wall_s=2e9)
        return answer if isinstance(answer, dg.RunRequest) else answer.skip_message or ""


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


def test_before_a_first_screening_and_without_news_nothing_is_requested(ticker: Ticker, tmp_path: Path) -> None:
    context = dg.build_sensor_context(instance=ticker.instance)
    empty = request_screening(context, lake_at(tmp_path / "other", now_ns=START_NS))
    assert isinstance(empty, dg.SkipReason) and empty.skip_message == "nothing was screened yet"
    assert ticker.tick(100.0) == "no track is new"


def test_a_track_without_a_suspicion_or_one_that_is_lost_is_no_reason(ticker: Ticker) -> None:
    commit(lake_at(ticker.home / "lake"), TRACKS, [{"norad_id": 2, "state": "confirmed", "manoeuvre_time_ns": None}])
    ticker.suspect(3, 60.0, state="lost")
    assert ticker.tick(100.0) == "no track with a suspected manoeuvre is new"


def test_a_suspicion_gets_a_run_of_the_catalogue(ticker: Ticker) -> None:
    ticker.suspect(2, 60.0)
    request = ticker.tick(100.0)
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == "manoeuvres 1-2:1"
    assert request.tags["sda/pool"] == "catalog"
    ticker.screened(2, 100.0)
    assert ticker.tick(101.0) == "no track is new"


def test_a_path_is_screened_again_less_and_less_often(ticker: Ticker) -> None:
    ticker.suspect(2, 60.0)
    assert ticker.tick(20.0) == "1 objects with a suspected manoeuvre: screened again in 10 s"
    assert isinstance(ticker.tick(31.0), dg.RunRequest)
    ticker.screened(2, 1000.0)
    ticker.suspect(2, 60.0)
    assert ticker.tick(1060.0) == "1 objects with a suspected manoeuvre: screened again in 190 s"
    assert isinstance(ticker.tick(1320.0), dg.RunRequest)


def test_an_object_that_left_its_set_before_its_first_window_is_screened_as_soon_as_its_track_is_live(
    ticker: Ticker,
) -> None:
    """Its manoeuvre is dated by the element set, half a day ago."""
    ticker.suspect(2, -43_200.0, live_since_s=60.0)
    assert isinstance(ticker.tick(100.0), dg.RunRequest)


def test_a_run_that_waits_will_screen_them(ticker: Ticker) -> None:
    ticker.suspect(2, 60.0)
    queued = dg.DagsterRun(job_name="catalog_to_alerts", run_id="12345678", status=dg.DagsterRunStatus.NOT_STARTED)
    ticker.instance.add_run(queued)
    assert ticker.tick(100.0) == "1 objects with a suspected manoeuvre: run 12345678 will screen them"


def test_other_settings_than_those_of_the_last_screening_get_a_run_at_once(ticker: Ticker, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("norad_id,name,operator\n25544,ISS,NASA\n")
    screening, lake = ScreeningResource(fleet=str(fleet)), lake_at(ticker.home / "lake")
    commit(lake, CONJUNCTION_CANDIDATES, [], settings={SETTINGS: screening.recorded()})

    def tick() -> dg.RunRequest | str:
        context = dg.build_sensor_context(instance=ticker.instance)
        answer = request_screening_anew(context, lake, screening, wall_s=2e9)
        return answer if isinstance(answer, dg.RunRequest) else answer.skip_message or ""

    assert tick() == "the last screening was under these settings"
    fleet.write_text("norad_id,name,operator\n25544,ISS,NASA\n20580,HST,NASA\n")
    request = tick()
    assert isinstance(request, dg.RunRequest) and request.tags["sda/pool"] == "catalog"
    queued = recorded_run(ticker.instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.QUEUED, tags=request.tags)
    assert tick() == f"the settings changed: run {queued[:8]} will screen everything"
    fleet.write_text("no list")
    assert "the settings cannot be used" in str(tick())

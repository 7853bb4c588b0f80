"""The whole platform, by its front doors: files land, sensors fire, alerts arrive, people look, and nothing hurts it.

One platform is up for the module (a cold engine takes half a minute). It goes through stages, which are fixtures:
element sets land, observations land, bad input lands, a worker is killed. A test asks for the stage that it is about.
So the tests run in any order and alone. Where there is no browser, only the tests of the pages of the UI skip.
"""

import csv
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.alert.current import CurrentAlert
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_CANDIDATES, SCREENED_FROM
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.fleet import protected_fleet
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import EngineUnavailable
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import (
    CATALOG_TO_ALERTS,
    GROUND_SEGMENT,
    OBSERVATIONS_TO_ALERTS,
    PLATFORM_METRICS,
    SCHEDULED_JOBS,
    TELEMETRY_TO_FRAMES,
)
from sda_platform.orchestration.zone_asset import landing_sensor_name
from sda_platform.published import CATALOGUE, published, url_of
from sda_platform.recovery.verification import current_keys
from sda_platform.registry import TABLES
from sda_platform.runtime import platform_home
from sda_platform.serving.health_client import fetch_health
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform.spark.channel import host_and_port, token_file, without_token_file
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.session import probe
from sda_platform.units import SECOND_NS
from sda_platform_tests.support import sockets
from sda_platform_tests.support.browser import Page, opened
from sda_platform_tests.support.driver_ports import outcome_without_secret
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook
from sda_platform_tests.support.listening import listeners_of
from sda_platform_tests.support.running_platform import RunningPlatform, eventually
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.second_user import as_another_user
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, land, radar_segment

pytestmark = [pytest.mark.timeout(1200), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

TRUTH = Path(__file__).parents[1] / "data/screening/fleet_events_24h_5km_2024-11-01.csv"
# A bound for a machine that is busy with other work; `benchmarks/latency.py` measures how fast the platform is.
TIMEOUT_S = 300.0
DAY_NS = 24 * 3600 * SECOND_NS
LETTERS = {
    ("torn.radar", -1),
    ("altered.radar", -1),
    ("unsealed.radar", -1),
    ("night", 0),
    ("night", 1),
    ("refused", 0),
}
"""Segment, by the beginning of its name, and record number of what lands badly."""


@cache
def published_events() -> tuple[dict[str, str], ...]:
    """Every approach of the fleet below 5 km on the day."""
    with TRUTH.open() as file:
        return tuple(csv.DictReader(file))


@cache
def objects() -> tuple[int, ...]:
    """The fleet, all that comes close to it, and as many again that do not."""
    met = {int(event[name]) for event in published_events() for name in ("norad_lo", "norad_hi")}
    return tuple(sorted({m.norad_id for m in protected_fleet()} | met | set(catalogue_ids()[::150])))


@cache
def world() -> tuple[SimulatedSegment, ...]:
    """What radars and links send of these objects while they pass through three windows."""
    segments = simulate(
        "nominal", start_time_ns=START_NS, duration_s=80, seed=7, objects=objects(), catalogue=catalogue_of(objects())
    )
    return tuple(segment for segment in segments if segment.feed in ("radar", "isl"))


@pytest.fixture(scope="module")
def reports() -> Iterator[FailureWebhook]:
    with failure_webhook() as server:
        yield server


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, reports: FailureWebhook) -> Iterator[RunningPlatform]:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    running = RunningPlatform(
        tmp_path_factory.mktemp("platform") / "home",
        START_NS,
        {"SDA_FAILURE_WEBHOOK": reports.url, "SDA_SERVING": "true", "SDA_ORPHAN_GRACE_S": "15"},
    )
    yield running
    status, left = running.interrupt(within_s=20), running.processes()
    running.kill()
    assert (status, left) == (0, set()), f"Ctrl-C ends it and leaves no process; {running.output}"
    assert "no process is left" in running.output


@pytest.fixture(scope="module")
def page(platform: RunningPlatform) -> Iterator[Page]:
    with opened(platform.url) as tab:
        yield tab


@dataclass(frozen=True)
class Stage:
    """What a stage left behind, recorded at its end."""

    runs: set[tuple[str, dg.DagsterRunStatus]]
    """The job and the status of every run so far."""
    alerts: dict[str, CurrentAlert]
    """The active alerts at the subscriber, by id."""
    journal: set[str]
    """Ids of the alerts that hold by the table."""
    raw: pa.Table
    """The key of each row of `raw_records`."""
    observed: list[str]
    """The ids of `observations`."""

    @classmethod
    def of(cls, platform: RunningPlatform) -> "Stage":
        """Wait until nothing is left to do, and record."""
        assert eventually(platform.is_idle, TIMEOUT_S)
        return cls(
            {(run.job_name, run.status) for run in platform.runs()},
            {alert.event_id: alert for alert in platform.alerts()},
            set(current_keys(platform.lake.log(CONJUNCTION_ALERTS)).column("event_id").to_pylist()),
            platform.rows(RAW_RECORDS, "segment_sha256", "record_number"),
            platform.rows(OBSERVATIONS, "observation_id").column("observation_id").to_pylist(),
        )

    def require_each_record_once(self, until_s: float) -> None:
        """Every record of the world so far is a raw record; every sound one's observation is there, once."""
        landed = [s.meta.sha256 for s in segments(0, until_s) for _ in range(s.meta.records)]
        raw = self.raw.filter(pc.is_in(self.raw.column("segment_sha256"), pa.array(set(landed))))
        assert raw.num_rows == len(landed)
        assert raw.group_by(raw.column_names).aggregate([]).num_rows == len(landed)
        assert len(self.observed) == len(set(self.observed))
        assert set(self.observed) == valid_ids(until_s)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partner") / "partner.csv"
    path.write_bytes(catalogue_of(objects()))
    return path


@pytest.fixture(scope="module")
def screened(platform: RunningPlatform, catalogue: Path) -> Stage:
    """Element sets have landed, and their alerts are at the subscriber."""
    assert f"{len(objects())} records" in platform.sda("land", catalogue)
    assert eventually(lambda: len(platform.alerts()) > 0, TIMEOUT_S)
    return Stage.of(platform)


@pytest.fixture(scope="module")
def observed(platform: RunningPlatform, screened: Stage) -> Stage:
    """Radars and links have observed these objects."""
    assert screened.alerts
    platform.observe(segments(0, 70))
    assert eventually(lambda: any(alert.from_tracks for alert in platform.alerts()), TIMEOUT_S)
    return Stage.of(platform)


@pytest.fixture(scope="module")
def harmed(platform: RunningPlatform, observed: Stage, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Broken segments, a file of nonsense and an impossible orbit have landed."""
    assert observed.alerts
    known = platform.rows(DEAD_LETTERS, "error").num_rows
    sound = radar_segment(20, first_track=900, seconds=20)
    radar = platform.zone("radar")
    land(radar, "torn.radar", sound[:-31], bytes=len(sound), records=20)
    land(radar, "altered.radar", sound + radar_segment(1, seconds=21), sha256="0" * 64)
    (radar.root / "pending" / "unsealed.radar").write_bytes(sound)
    (platform.home / "landing" / "lidar").mkdir()
    place = tmp_path_factory.mktemp("bad")
    (place / "night.jsonl").write_text('{"obs_id": nonsense}\n{"obs_id": "1", "timestamp_ns": 1}\n')
    (place / "refused.csv").write_bytes(decayed_element_set())
    for name in ("night.jsonl", "refused.csv"):
        landed = platform.ask("land", place / name)
        assert landed.returncode == 1 and "refused" in landed.stdout, "what is refused is listed, and lands"
    assert eventually(lambda: platform.rows(DEAD_LETTERS, "error").num_rows >= known + len(LETTERS), TIMEOUT_S)
    return Stage.of(platform)


@dataclass(frozen=True)
class Killed:
    """The run whose worker was killed, and what the platform then made of it."""

    run_id: str
    reports: list[tuple[str, dict[str, Any]]]
    """Key and content of what the failure webhook received about runs."""
    others: set[dg.DagsterRunStatus]
    """Statuses of all other runs."""
    stage: Stage


@pytest.fixture(scope="module")
def killed(platform: RunningPlatform, harmed: Stage, reports: FailureWebhook) -> Killed:
    """A worker was killed after the first commit of its run."""
    assert harmed.alerts
    earlier = {run.run_id for run in platform.runs()}
    platform.observe(segments(70, 120))
    victim = within(TIMEOUT_S, lambda: first_new_run(platform, "observations_to_alerts", earlier))
    worker = within(TIMEOUT_S, lambda: worker_of(platform, victim, "raw_records"))
    assert worker in platform.processes()
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: status_of(platform, victim) == dg.DagsterRunStatus.FAILURE, TIMEOUT_S)
    assert eventually(lambda: platform.rows(OBSERVATIONS, "observation_id").num_rows == len(valid_ids(120)), TIMEOUT_S)
    # Changes of vitals are posted to the same receiver; they have keys of their own.
    assert eventually(lambda: victim in dict(reports.received), TIMEOUT_S)
    of_runs = [(key, report) for key, report in reports.received if "vital" not in report]
    stage = Stage.of(platform)
    return Killed(victim, of_runs, {run.status for run in platform.runs() if run.run_id != victim}, stage)


def test_element_sets_that_land_become_alerts_at_the_subscriber(
    platform: RunningPlatform, screened: Stage, catalogue: Path
) -> None:
    assert screened.runs == {("catalog_to_alerts", dg.DagsterRunStatus.SUCCESS)}
    assert screened.alerts.keys() == screened.journal
    assert "nothing to do" in platform.sda("land", catalogue)


def test_the_console_shows_the_alerts_leads_to_each_and_follows_new_commits(
    platform: RunningPlatform, screened: Stage
) -> None:
    address = published(platform.home, CATALOGUE)
    with opened(f"http://{address}", (1600, 900)) as tab:
        tab.goto("/?level=red&level=yellow")
        tab.sees("running", "This page follows new commits")
        rows = tab.run("() => [...document.querySelectorAll('tr[id]')].map((row) => row.id)")
        assert rows == [f"c-{alert_id}" for alert_id in screened.alerts], "highest level first, as in the list"
        first = next(iter(screened.alerts))
        tab.goto(f"/conjunctions/{first}")
        tab.sees(first, "What changed and why", "TCA +0.00 s")
        assert tab.run("() => [...document.images].length") == 3
        tab.type("Your name", "ann")
        tab.type("Comment", "called the operator")
        tab.press("Acknowledge revision")
        tab.sees("acknowledged revision", "called the operator")
        assert (tab.dialogs, tab.elsewhere) == (0, [])


@pytest.mark.usefixtures("screened")
def test_another_user_of_the_machine_reaches_neither_the_files_nor_the_engine__S10(platform: RunningPlatform) -> None:
    made = [platform.home]
    for part in ("dagster", "engine", "logs", "lake", "serving"):
        made += (platform.home / part).rglob("*")
    assert [str(each) for each in made if each.exists() and each.stat().st_mode & 0o077] == []
    address = str(platform_home.read_state(platform.home)["addresses"]["engine"])
    path = token_file(address)
    assert path is not None
    assert as_another_user(path.read_text) == "PermissionError"
    code_server = str(platform_home.read_state(platform.home)["addresses"]["code_server"]).removeprefix("unix:")
    assert as_another_user(lambda: socket.socket(socket.AF_UNIX).connect(code_server)) == "PermissionError"
    wrong = platform.home.parent / "wrong-token"
    wrong.write_text("guessed" * 8)
    wrong.chmod(0o600)
    bare = without_token_file(address)
    refused = {
        engines_outcome(bare),
        engines_outcome(address.replace(quote(str(path), safe=""), quote(str(wrong), safe=""))),
    }
    (engine,) = [each for each in platform.processes() if is_engine(each)]
    own = {port for _, port in listeners_of(engine)} - {host_and_port(address)[1]}
    found = {
        "no token, wrong token": " ".join(refused),
        "no secret, at the driver's own ports": " ".join({outcome_without_secret(port) for port in own}),
        "the token": engines_outcome(address),
    }
    assert found == sockets.stated(sockets.ENGINE)


def is_engine(process: int) -> bool:
    """Whether a process is the Spark Connect server."""
    return b"SparkConnectServer" in Path(f"/proc/{process}/cmdline").read_bytes()


def engines_outcome(remote: str) -> str:
    """What the threat model calls what the engine at ``remote`` answers to a statement."""
    try:
        probe(remote)
    except EngineUnavailable as error:
        return "refused" if "refuses this process" in str(error) else str(error)
    return "executes"


def test_the_catalogue_is_served_as_it_was_committed(platform: RunningPlatform) -> None:
    url = url_of(platform.home, CATALOGUE)
    assert url is not None
    assert eventually(lambda: not fetch_health(url)["is_behind"], TIMEOUT_S)
    served = fetch_health(url)["catalogue"]
    assert served["objects"] == platform.rows(ORBITAL_CATALOG, "norad_id").num_rows
    assert f"catalogue at {url}: version {served['version']}" in platform.sda("status")
    with platform.instance as instance:
        key = dg.AssetKey("catalog_index")
        assert eventually(lambda: instance.get_latest_materialization_event(key) is not None, TIMEOUT_S)


@pytest.mark.usefixtures("screened")
def test_the_fleets_candidates_are_the_approaches_that_were_published(platform: RunningPlatform) -> None:
    log = platform.lake.log(CONJUNCTION_CANDIDATES)
    commit = log.head().commit
    assert commit is not None
    begin, end = commit.manifest.watermarks[SCREENED_FROM], START_NS + DAY_NS
    facts = ["norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km"]
    rows = current_keys(log, facts).select(facts).to_pylist()
    found = sorted(
        (*sorted((row["norad_id_1"], row["norad_id_2"])), row["tca_time_ns"], row["miss_distance_km"]) for row in rows
    )
    found = [event for event in found if event[2] < end]
    expected = [event for event in sorted(map(as_found, published_events())) if event[2] >= begin]
    assert [event[:2] for event in found] == [event[:2] for event in expected]
    assert max(abs(f[2] - e[2]) for f, e in zip(found, expected, strict=True)) < 10_000_000
    assert max(abs(f[3] - e[3]) for f, e in zip(found, expected, strict=True)) < 0.005


def test_observations_of_an_object_change_its_alerts(
    platform: RunningPlatform, screened: Stage, observed: Stage
) -> None:
    observed.require_each_record_once(until_s=70)
    assert platform.rows(FUSED_TRACKS, "fit_id").num_rows > 0
    updated = [alert for alert in observed.alerts.values() if alert.from_tracks and alert.event_id in screened.alerts]
    assert updated
    assert all(alert.revision > screened.alerts[alert.event_id].revision for alert in updated)
    assert observed.alerts.keys() == observed.journal


def test_the_lineage_page_shows_every_table_and_landing_zone(page: Page) -> None:
    # One group at a time: of the whole graph, the page draws only what the window shows.
    for group in sampled(sorted({table.group for table in TABLES}), "catalog", "conjunction", "ingest"):
        members = [table for table in TABLES if table.group == group]
        page.goto(f"/asset-groups?expanded=global@global:{group}")
        page.sees(*(table.name for table in members), *(zone for table in members for zone in table.zones))
    assert page.dialogs == 0


@pytest.mark.usefixtures("observed")
def test_the_page_of_the_alerts_shows_what_was_consumed_and_written(platform: RunningPlatform, page: Page) -> None:
    page.goto(f"/assets/conjunction_alerts?view=events&time={last_write_ms(platform, 'conjunction_alerts')}")
    page.sees("Materialized in run", "consumed", "conjunction_assessments v", "rows_written", "dagster/row_count")
    page.sees("preview", "as_of_mission_time", "2024-11-01T00:")
    assert page.dialogs == 0


@pytest.mark.usefixtures("observed")
def test_the_page_of_the_alerts_shows_checks_that_passed(page: Page) -> None:
    page.goto("/assets/conjunction_alerts?view=checks")
    page.sees("exactly_once", "contract", "data_is_fresh", "Passed")
    assert "Failed" not in page.text


def test_whatever_lands_badly_is_reported_and_harms_nothing_else(platform: RunningPlatform, harmed: Stage) -> None:
    rows = platform.rows(DEAD_LETTERS, "segment_name", "record_number", "error_kind", "error").to_pylist()
    told = {(r["segment_name"].partition("-")[0], r["record_number"]): r for r in rows}
    assert told.keys() >= LETTERS
    assert "truncated" in told["torn.radar", -1]["error"]
    assert "checksum" in told["altered.radar", -1]["error"]
    assert "data without metadata" in told["unsealed.radar", -1]["error"]
    assert told["night", 0]["error_kind"] == "bad_json"
    assert told["night", 1]["error_kind"] == "missing_field"
    assert told["refused", 0]["error_kind"] == "propagation_refused"
    assert {status for _, status in harmed.runs} == {dg.DagsterRunStatus.SUCCESS}


@pytest.mark.usefixtures("harmed")
def test_the_status_counts_what_landed_badly_and_nothing_waits(platform: RunningPlatform) -> None:
    assert eventually(platform.is_idle, TIMEOUT_S)
    status = platform.status()
    assert status["tables"]["dead_letters"]["rows"] == platform.rows(DEAD_LETTERS, "error").num_rows
    assert [orphan for orphan in status["orphans"] if "lidar" in orphan and "unknown feed" in orphan]
    assert all(zone["backlog"]["segments"] == 0 for zone in status["zones"].values())
    assert all(table["backlog"] == 0 for table in status["tables"].values()), status["tables"]


@pytest.mark.usefixtures("harmed")
def test_each_sensor_says_why_it_started_nothing(platform: RunningPlatform) -> None:
    with platform.instance as instance:
        states = [s for s in instance.all_instigator_state() if s.instigator_type.value == "SENSOR"]
        ticks = {s.instigator_name: instance.get_ticks(s.instigator_origin_id, s.selector_id, limit=50) for s in states}
    own = {
        "run_failures", "waiting_alerts", "observations_to_alerts_unconsumed", "catalog_to_alerts_unconsumed",
        "suspected_manoeuvres", "screening_settings", "catalog_index", "collector_sources", "vitals",
    }  # fmt: skip
    zones = {
        OBSERVATIONS_TO_ALERTS: RAW_RECORDS.zones,
        CATALOG_TO_ALERTS: ("elements", "ephemerides", "edits", "messages", "acknowledgements", "satellites"),
        TELEMETRY_TO_FRAMES: ("telemetry",),
        GROUND_SEGMENT: ("ground", "membership", "game_days"),
        PLATFORM_METRICS: ("metrics",),
    }
    assert ticks.keys() == {*own, *map(landing_sensor_name, zones)}
    for job, feeds in zones.items():
        skipped = [tick.skip_reason or "" for tick in ticks[landing_sensor_name(job)]]
        assert [reason for reason in skipped if reason.endswith(": no sealed segment is pending")]
        assert {frozenset(reason.partition(":")[0].split("+")) for reason in skipped if reason} == {frozenset(feeds)}
    every = [tick for found in ticks.values() for tick in found]
    assert not [tick.error for tick in every if tick.error]
    assert not [tick for tick in every if tick.status.value == "SKIPPED" and not tick.skip_reason]


@pytest.mark.usefixtures("harmed")
def test_every_check_that_blocks_has_always_passed(platform: RunningPlatform) -> None:
    outcomes = check_outcomes(platform)
    jobs = (*SCHEDULED_JOBS, TELEMETRY_TO_FRAMES, GROUND_SEGMENT, PLATFORM_METRICS)
    unfed = {table.name for job in jobs for table in tables_of(job)}
    assert {name for name, blocks, _ in outcomes if blocks} == {
        f"{table.name}:{check}" for table in TABLES if table.name not in unfed for check in ("exactly_once", "contract")
    }
    assert [name for name, blocks, passed in outcomes if blocks and not passed] == []
    assert {passed for name, _, passed in outcomes if name == "alert_deliveries:subscriber_agrees"} == {True}
    assert False in {passed for name, _, passed in outcomes if name == "raw_records:no_orphans"}


def test_a_worker_killed_after_its_first_commit_costs_neither_the_pool_nor_a_record(
    platform: RunningPlatform, killed: Killed
) -> None:
    assert killed.others == {dg.DagsterRunStatus.SUCCESS}
    assert [(key, report["url"]) for key, report in killed.reports] == [
        (killed.run_id, f"{platform.url}/runs/{killed.run_id}")
    ]
    killed.stage.require_each_record_once(until_s=120)
    assert [name for name, blocks, passed in check_outcomes(platform) if blocks and not passed] == []
    assert killed.stage.alerts.keys() == killed.stage.journal


def as_found(event: dict[str, str]) -> tuple[int, int, int, float]:
    tca = int(np.datetime64(event["tca_utc"].rstrip("Z"), "ns").astype(np.int64))
    return int(event["norad_lo"]), int(event["norad_hi"]), tca, float(event["miss_km"])


def segments(from_s: float, until_s: float) -> list[SimulatedSegment]:
    """Those that reach their zones within this part of the day."""
    return [s for s in world() if after(from_s) < s.available_time_ns <= after(until_s)]


def valid_ids(until_s: float) -> set[str]:
    """Ids of the observations that sound records landed so far carry."""
    ids = {i for s in segments(0, until_s) for i in s.truth.column("observation_id").to_pylist()}
    return ids - {None}


def decayed_element_set() -> bytes:
    """A real element set bent until its perigee lies inside the Earth: well formed, and refused by SGP4."""
    header, line = catalogue_of(objects()[-1:]).decode().splitlines()
    values = dict(zip(header.split(","), line.split(","), strict=True)) | {"ECCENTRICITY": ".5", "MEAN_ANOMALY": "0"}
    return f"{header}\n{','.join(values.values())}\n".encode()


def check_outcomes(platform: RunningPlatform) -> list[tuple[str, bool, bool]]:
    """Every execution of a check in a run that no schedule started: ``asset:check``, whether it blocks, and passed."""
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    with platform.instance as instance:
        entries = [entry for run in platform.runs() for entry in instance.all_logs(run.run_id, of_type=kind)]
    found = [entry.get_dagster_event().asset_check_evaluation_data for entry in entries]
    return [(f"{e.asset_key.to_user_string()}:{e.check_name}", bool(e.blocking), e.passed) for e in found]


def last_write_ms(platform: RunningPlatform, asset: str) -> int:
    """When the newest materialization of ``asset`` that wrote rows happened, ms: a run without news may follow it."""
    with platform.instance as instance:
        records = instance.fetch_materializations(dg.AssetKey(asset), limit=20).records
    told = ((record.timestamp, record.asset_materialization) for record in records)
    return next(int(when * 1000) for when, what in told if what and what.metadata["rows_written"].value)


def first_new_run(platform: RunningPlatform, job: str, earlier: set[str]) -> str | None:
    new = [run.run_id for run in platform.runs() if run.job_name == job and run.run_id not in earlier]
    return new[-1] if new else None


def status_of(platform: RunningPlatform, run_id: str) -> dg.DagsterRunStatus | None:
    return next((run.status for run in platform.runs() if run.run_id == run_id), None)


def worker_of(platform: RunningPlatform, run_id: str, committed: str) -> int | None:
    """Process id of the run's worker, once it has materialized the asset ``committed``."""
    with platform.instance as instance:
        entries = instance.all_logs(run_id)
    events = [entry.get_dagster_event() for entry in entries if entry.is_dagster_event]
    if not any(e.is_step_materialization and e.asset_key == dg.AssetKey(committed) for e in events):
        return None
    told = [event.engine_event_data.metadata for event in events if event.is_engine_event]
    return next(int(str(facts["pid"].value)) for facts in told if "pid" in facts)


def within(timeout_s: float, ask: Callable[[], Any]) -> Any:
    """The first answer of ``ask`` that is not None."""
    answers: list[Any] = []

    def answered() -> bool:
        answers.extend(answer for answer in [ask()] if answer is not None)
        return bool(answers)

    assert eventually(answered, timeout_s, pause_s=0.1)
    return answers[0]

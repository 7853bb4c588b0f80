"""The vitals: judged from facts alone, remembered through restarts, each change notified once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.fusion.sources import Silence
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.assets import evaluation, vitals_sensor
from sda_platform.observability.vitals.evaluation import VITALS, Reading, Side, VitalState, evaluate
from sda_platform.observability.vitals.facts import (
    CollectorFacts,
    DaemonFacts,
    DeliveryFacts,
    DiskFacts,
    Facts,
    ProcessFacts,
    RunFacts,
    WatermarkFacts,
)
from sda_platform.observability.vitals.history import Lasting, VitalHistory
from sda_platform.observability.vitals.lake_facts import unconsumed_s, watermark_facts
from sda_platform.observability.vitals.observing import observe
from sda_platform.observability.vitals.watch import Watch
from sda_platform.orchestration.backlog import Backlog
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.runtime import platform_home
from sda_platform.runtime.watchdog import Watchdog, current_facts, health
from sda_platform.setting_sections import VitalsSettings
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook

RULES = VitalsSettings()
NOW_NS = 1_730_419_200 * NANOSECONDS_PER_SECOND
SILENT = Silence("radar-3", NOW_NS - 700 * NANOSECONDS_PER_SECOND, never_reported=False)
WELL = Facts(
    NOW_NS,
    collectors=CollectorFacts(),
    engine_answers=True,
    daemon=DaemonFacts(10.0),
    processes=[ProcessFacts("engine", True, 0)],
    runs=[RunFacts("1" * 36, "observations_to_alerts", "alerts", "started", 20.0)],
    disks=[DiskFacts("/lake", 50, 100)],
)


def red(facts: Facts) -> dict[str, Reading]:
    return {each.vital: each for each in evaluate(facts, RULES) if each.state is VitalState.RED}


def test_a_platform_that_works_is_green_and_one_that_does_not_run_is_unknown() -> None:
    assert {each.state for each in evaluate(WELL, RULES)} == {VitalState.GREEN}
    states = {each.vital: each.state for each in evaluate(Facts(NOW_NS), RULES)}
    unknown = {name for name, state in states.items() if state is VitalState.UNKNOWN}
    assert unknown == {"collectors_answer", "engine_answers", "daemon_beats", "processes_run", "pools_move"}


@pytest.mark.parametrize(
    ("changed", "vital", "side", "text"),
    [
        ({"silences": [SILENT]}, "sources_report", Side.SOURCES, "radar-3 silent for 700 s"),
        (
            {"silences": [SILENT], "collectors": CollectorFacts("the collector does not answer")},
            "sources_report",
            Side.COLLECTORS,
            "the collector does not answer",
        ),
        (
            {"silences": [SILENT], "backlogs": {"radar": Backlog(3, 10, 5.0)}},
            "sources_report",
            Side.PLATFORM,
            "3 segments wait",
        ),
        ({"collectors": CollectorFacts(None, ["x has failed"])}, "collectors_answer", Side.COLLECTORS, "x has failed"),
        (
            {"backlogs": {"isl": Backlog(1, 10, 301.0)}},
            "backlog_is_taken",
            Side.PLATFORM,
            "zone isl: 1 segment",
        ),
        (
            {"watermark": WatermarkFacts(61.0, 0.0, "isl")},
            "watermark_advances",
            Side.SOURCES,
            "not advanced for 61 s; isl holds it back",
        ),
        ({"watermark": WatermarkFacts(61.0, 61.0, "isl")}, "watermark_advances", Side.PLATFORM, "waited 61 s"),
        ({"orphans": ["a: data without metadata"]}, "no_orphans_wait", Side.SOURCES, "data without metadata"),
        ({"growing_letters": ["bad_json"]}, "dead_letters_do_not_grow", Side.SOURCES, "bad_json"),
        ({"red_tables": ["tracks sequence 3"]}, "tables_are_sound", Side.PLATFORM, "tracks sequence 3"),
        (
            {"delivery": DeliveryFacts(61.0, "SubscriberUnavailable: it is away")},
            "subscriber_is_level",
            Side.SUBSCRIBER,
            "it is away",
        ),
        ({"delivery": DeliveryFacts(61.0)}, "subscriber_is_level", Side.PLATFORM, "no run delivers"),
        ({"engine_answers": False}, "engine_answers", Side.PLATFORM, "executes no statement"),
        ({"daemon": DaemonFacts(76.0)}, "daemon_beats", Side.PLATFORM, "no heartbeat for 76 s"),
        ({"daemon": DaemonFacts(None)}, "daemon_beats", Side.PLATFORM, "has written no heartbeat"),
        ({"daemon": DaemonFacts(None, "no such table")}, "daemon_beats", Side.PLATFORM, "be read: no such table"),
        ({"processes": [ProcessFacts("engine", False, 2)]}, "processes_run", Side.PLATFORM, "engine does not run"),
        (
            {"processes": [ProcessFacts("daemon", True, 6, is_exhausted=True)]},
            "processes_run",
            Side.PLATFORM,
            "daemon ends again and again, restarted 6 times",
        ),
        (
            {"runs": [RunFacts("abcdefgh-", "catalog_to_alerts", "catalog", "started", 1801.0)]},
            "pools_move",
            Side.PLATFORM,
            "pool catalog: run abcdefgh of catalog_to_alerts has been started for 1,801 s",
        ),
        (
            {"runs": [RunFacts("abcdefgh-", "catalog_to_alerts", "catalog", "queued", 601.0)]},
            "pools_move",
            Side.PLATFORM,
            "queued for 601 s",
        ),
        ({"disks": [DiskFacts("/lake", 4, 100)]}, "disk_has_space", Side.MACHINE, "4.0% of the disk is free"),
    ],
)
def test_each_vital_turns_red_by_itself_and_names_the_side_at_fault__DP3_G3(
    changed: dict[str, Any], vital: str, side: Side, text: str
) -> None:
    ((name, reading),) = [(n, r) for n, r in red(replace(WELL, **changed)).items() if n == vital]
    assert (name, reading.side) == (vital, side)
    assert text in reading.text
    assert set(red(replace(WELL, **changed))) <= {vital, "collectors_answer"}


@pytest.mark.parametrize("vital", VITALS, ids=lambda vital: vital.name)
def test_every_vital_says_what_holds_while_it_is_green(vital: Any) -> None:
    assert vital.meaning.endswith(".") and len(vital.name) < 30


def reading(state: VitalState, text: str = "") -> list[Reading]:
    return [Reading("daemon_beats", state, Side.PLATFORM if text else "", text)]


def test_a_history_notices_red_and_recovery_once_each() -> None:
    found = VitalHistory().after(reading(VitalState.GREEN), 1.0)
    assert not found.pending
    found = found.after(reading(VitalState.RED, "stopped"), 2.0).after(reading(VitalState.RED, "still stopped"), 3.0)
    assert [str(notice) for notice in found.pending] == ["red: daemon_beats (platform): stopped"]
    assert found.vitals["daemon_beats"].since_s == 2.0
    found = found.after(reading(VitalState.UNKNOWN), 4.0)
    assert found.red, "what is not known now is no recovery"
    found = found.after(reading(VitalState.GREEN), 5.0)
    assert [(n.state, n.text) for n in found.pending] == [("red", "stopped"), ("green", "still stopped")]
    assert len({notice.id for notice in found.pending}) == 2


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be written durably."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sda_platform.lake.durable.write", full)


@pytest.fixture
def webhook() -> Iterator[FailureWebhook]:
    with failure_webhook() as server:
        yield server


def test_a_notice_survives_an_absent_webhook_and_a_restart_and_is_sent_once(
    tmp_path: Path, webhook: FailureWebhook
) -> None:
    logged: list[str] = []

    def round_of(state: VitalState, text: str, at_s: float) -> VitalHistory:
        watch = Watch(tmp_path, ReportWebhook(webhook.url), logged.append)  # each time as after a restart
        return watch.round(lambda: reading(state, text), lambda: at_s)

    webhook.statuses.extend([503])
    assert [n.text for n in round_of(VitalState.RED, "stopped", 1.0).pending] == ["stopped"]
    assert not round_of(VitalState.RED, "stopped", 2.0).pending
    round_of(VitalState.RED, "stopped", 3.0)
    round_of(VitalState.GREEN, "", 4.0)
    assert [(report["vital"], report["state"], report["side"]) for _, report in webhook.received] == [
        ("daemon_beats", "red", "platform"),
        ("daemon_beats", "green", "platform"),
    ]
    assert len({key for key, _ in webhook.received}) == 2
    assert logged == ["red: daemon_beats (platform): stopped", "recovered: daemon_beats; it was red: stopped"]


def test_a_disk_that_takes_no_history_is_reported_once_all_the_same(
    tmp_path: Path, webhook: FailureWebhook, full_disk: None
) -> None:
    (tmp_path / "vitals.lock").mkdir()  # no more can the lock be opened
    watch = Watch(tmp_path, ReportWebhook(webhook.url), lambda _line: None)
    for at_s in (1.0, 2.0, 3.0):
        watch.round(lambda: reading(VitalState.RED, "full"), lambda now=at_s: now)  # type: ignore[misc]
    assert [report["text"] for _, report in webhook.received] == ["full"]


def test_the_pages_of_the_watchdog_show_the_last_round_although_the_disk_is_full(
    tmp_path: Path, full_disk: None
) -> None:
    watchdog = Watchdog(Settings(home=tmp_path))
    pages = watchdog.pages()
    assert (pages["/health"]().status, pages["/metrics"]().content) == (503, b""), "there was no round yet"
    watchdog.round()
    assert set(json.loads(pages["/health"]().content)["vitals"]) == {each.name for each in VITALS}
    assert b'vital_red{side="",vital="tables_are_sound"} 0.0' in pages["/metrics"]().content


def test_records_of_dagster_that_cannot_be_read_hide_no_other_vital(tmp_path: Path) -> None:
    (tmp_path / "landing" / "rador").mkdir(parents=True)
    runs = platform_home.dagster_home(tmp_path) / "history" / "runs.db"
    runs.parent.mkdir(parents=True)
    runs.write_bytes(b"no database" * 1000)
    with platform_home.take_lock(tmp_path):
        platform_home.write_state(tmp_path, {"processes": {"collector": {"pid": None, "restarts": 0}}})
        found = red(current_facts(Settings(home=tmp_path)))
    assert {"no_orphans_wait", "processes_run", "daemon_beats"} <= set(found)
    assert "Dagster's records cannot be read: " in found["daemon_beats"].text


def test_health_is_503_while_something_is_red_or_the_evaluation_is_late() -> None:
    first = health(VitalHistory(), 100.0, 60.0)
    assert first.status == 503
    content = json.loads(first.content)
    assert (content["evaluated"], content["problems"]) == (None, ["the vitals have not been evaluated yet"])
    found = VitalHistory().after(reading(VitalState.GREEN), 100.0)
    assert health(found, 110.0, 60.0).status == 200
    assert health(found, 281.0, 60.0).status == 503
    late = health(found.after(reading(VitalState.RED, "stopped"), 110.0), 111.0, 60.0)
    assert late.status == 503 and b"daemon_beats (platform): stopped" in late.content


def test_a_watermark_stalls_when_commits_come_and_it_does_not_advance__DP3_G3(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    for as_of_s, mark_s in ((0, 5), (10, 7), (40, 7), (90, 7)):
        marks = {PIPELINE: mark_s, "radar": mark_s + 9, "isl": mark_s}
        commit(lake, FUSED_TRACKS, [], watermarks=marks, as_of_ns=as_of_s * NANOSECONDS_PER_SECOND)
    found = watermark_facts(lake, 100 * NANOSECONDS_PER_SECOND)
    assert (found.stalled_s, found.slowest) == (80.0, "isl")
    commit(lake, OBSERVATIONS, [], as_of_ns=30 * NANOSECONDS_PER_SECOND)
    assert unconsumed_s(lake, OBSERVATIONS, FUSED_TRACKS, 100 * NANOSECONDS_PER_SECOND) == 70.0


def test_the_facts_of_a_lake_are_read_without_an_engine(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = lake_at(Path(settings.lake_uri))
    commit(lake, CONJUNCTION_ALERTS, [], as_of_ns=lake.clock.now_ns() - 100 * NANOSECONDS_PER_SECOND)
    (tmp_path / "landing" / "rador").mkdir(parents=True)
    with dg.DagsterInstance.ephemeral() as instance:
        facts = observe(settings, instance)
    assert set(red(facts)) >= {"no_orphans_wait", "subscriber_is_level", "daemon_beats"}
    assert "unknown feed 'rador'" in red(facts)["no_orphans_wait"].text


def test_the_sensor_shows_each_change_once_and_evaluates_where_no_watchdog_does(tmp_path: Path) -> None:
    sensor, cursor = vitals_sensor(Settings(home=tmp_path)), None
    counts = []
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(2):
            context = dg.build_sensor_context(instance, cursor=cursor)
            result = sensor.evaluate_tick(context)
            counts.append(len(result.asset_events))
            cursor = result.cursor
    assert counts == [len(VITALS), 0]
    assert history.load(tmp_path).at_s > 0


def test_the_sensor_notices_once_what_the_disk_does_not_take(
    tmp_path: Path, webhook: FailureWebhook, full_disk: None
) -> None:
    (tmp_path / "landing" / "rador").mkdir(parents=True)
    sensor = vitals_sensor(Settings(home=tmp_path, failure_webhook=webhook.url))
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(2):
            sensor.evaluate_tick(dg.build_sensor_context(instance))
    assert [report["vital"] for _, report in webhook.received] == ["no_orphans_wait"]


@pytest.mark.parametrize("side", [*Side, ""])
def test_a_red_vital_that_was_just_evaluated_is_an_event_that_dagster_can_store(side: str) -> None:
    event = evaluation(Lasting(Reading("disk_has_space", VitalState.RED, side, "full"), 1.0))
    again = dg.deserialize_value(dg.serialize_value(event), dg.AssetCheckEvaluation)
    assert again.metadata.get("side_at_fault", dg.TextMetadataValue("")) == dg.TextMetadataValue(str(side))

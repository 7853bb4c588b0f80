"""The vitals: judged from facts alone, remembered through restarts, each change notified once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner

from sda_platform import json_lines
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.assets import current_history, evaluation, vitals_sensor
from sda_platform.observability.vitals.evaluation import VITALS, advice, evaluate
from sda_platform.observability.vitals.facts import (
    CollectorFacts,
    DaemonFacts,
    DiskFacts,
    Facts,
    ProcessFacts,
    RunFacts,
)
from sda_platform.observability.vitals.faults import Fault, Reading, Side, VitalState, red
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.observability.vitals.lake_facts import unconsumed_s, watermark_facts
from sda_platform.observability.vitals.notices import Lasting
from sda_platform.observability.vitals.observing import observe
from sda_platform.observability.vitals.past_faults import PastFault, past_faults
from sda_platform.observability.vitals.watch import Receivers, Watch
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.runtime import platform_home
from sda_platform.runtime.processes import free_port
from sda_platform.runtime.watchdog import Watchdog, current_facts, health
from sda_platform.setting_sections import VitalsSettings
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook

RULES = VitalsSettings()
NOW_NS = 1_730_419_200 * SECOND_NS
WELL = Facts(
    NOW_NS,
    collectors=CollectorFacts(),
    engine_answers=True,
    daemon=DaemonFacts(10.0),
    processes=[ProcessFacts("engine", True, 0)],
    runs=[RunFacts("1" * 36, "observations_to_alerts", "alerts", "started", 20.0)],
    failing=[],
    disks=[DiskFacts("/lake", 50, 100)],
)


def red_of(facts: Facts) -> dict[str, Reading]:
    return {each.vital: each for each in evaluate(facts, RULES) if each.state is VitalState.RED}


def test_a_platform_that_works_is_green_and_one_that_does_not_run_is_unknown() -> None:
    assert {each.state for each in evaluate(WELL, RULES)} == {VitalState.GREEN}
    states = {each.vital: each.state for each in evaluate(Facts(NOW_NS), RULES)}
    unknown = {name for name, state in states.items() if state is VitalState.UNKNOWN}
    assert unknown == {
        "collectors_answer",
        "engine_answers",
        "daemon_beats",
        "processes_run",
        "pools_move",
        "runs_succeed",
    }


@pytest.mark.parametrize("vital", VITALS, ids=lambda vital: vital.name)
def test_every_vital_says_what_holds_while_it_is_green(vital: Any) -> None:
    assert vital.meaning.endswith(".") and vital.remedy.endswith(".") and len(vital.name) < 30


@pytest.mark.parametrize("vital", VITALS, ids=lambda vital: vital.name)
def test_every_vital_says_what_to_do_and_names_pages_that_exist(vital: Any) -> None:
    said = advice(vital.name)
    assert len(said.split()) > 5 and "](" not in said and "../" not in said
    pages = re.findall(r"docs/[\w/-]+\.md", said)
    assert len(pages) == vital.remedy.count("](") and all((Path(__file__).parents[3] / page).exists() for page in pages)


def fault(subject: str, side: Side = Side.PLATFORM, text: str = "", lasted_s: float | None = None) -> Fault:
    return Fault(subject, side, text or f"{subject} is wrong", lasted_s)


def reading(state: VitalState, text: str = "") -> list[Reading]:
    if state is VitalState.UNKNOWN:
        return [Reading("daemon_beats", state)]
    return [red("daemon_beats", [fault("daemon", text=text)] if state is VitalState.RED else [])]


def shown(found: VitalHistory) -> list[str]:
    return [f"{notice.state} {', '.join(notice.subjects)} ({notice.side})" for notice in found.pending]


def test_a_fault_is_notified_once_when_it_begins_and_once_when_it_is_over() -> None:
    found = VitalHistory().after(reading(VitalState.GREEN), 1.0)
    assert not found.pending
    found = found.after(reading(VitalState.RED, "stopped"), 2.0).after(reading(VitalState.RED, "still stopped"), 3.0)
    page = "see docs/reference/vitals.md#daemon_beats"
    assert [str(notice) for notice in found.pending] == [f"begun: daemon_beats (platform): stopped; {page}"]
    assert found.vitals["daemon_beats"].since_s == 2.0
    found = found.after(reading(VitalState.UNKNOWN), 4.0)
    assert found.red, "what is not known now is no recovery"
    found = found.after(reading(VitalState.GREEN), 5.0)
    assert [(n.state, n.text) for n in found.pending] == [("begun", "stopped"), ("over", "still stopped")]
    assert len({notice.id for notice in found.pending}) == 2


def test_the_second_fault_of_a_red_vital_rings_as_the_first_did() -> None:
    telescope, radars = fault("optical-maui", Side.SOURCES), [fault(f"radar-{n}", Side.SOURCES) for n in range(14)]
    telemetry, alerts = fault("telemetry_frames sequence 9"), fault("conjunction_alerts sequence 77")
    found = VitalHistory().after([red("sources_report", [telescope]), red("tables_are_sound", [telemetry])], 1.0)
    found = found.after(
        [red("sources_report", [telescope, *radars]), red("tables_are_sound", [telemetry, alerts])], 2.0
    )
    radar_names = ", ".join(each.subject for each in radars)
    assert shown(found) == [
        "begun optical-maui (sources)",
        "begun telemetry_frames sequence 9 (platform)",
        f"begun {radar_names} (sources)",
        "begun conjunction_alerts sequence 77 (platform)",
    ]
    found = found.after([red("sources_report", radars), red("tables_are_sound", [telemetry, alerts])], 3.0)
    assert shown(found)[4:] == ["over optical-maui (sources)"], "the others last, and are not notified again"


def test_many_faults_are_one_short_notice_with_each_in_its_details() -> None:
    links = [fault(f"isl-{n}", Side.SOURCES, lasted_s=60.0 * n) for n in range(2, 29)]
    grouped = red("sources_report", [*links, fault("radar-1", Side.PLATFORM)], "sources silent")
    (satellites, radar) = VitalHistory().after([grouped], 1.0).pending
    assert satellites.text == "27 sources silent, longest isl-28 28 min"
    assert (len(satellites.details), radar.text) == (27, "radar-1 is wrong")
    assert str(grouped) == "sources_report (sources): 27 sources silent, longest isl-28 28 min; radar-1 is wrong"
    assert red("x", [fault("a"), fault("b")], "things").text == "2 things, such as a"


def test_a_fault_whose_side_changes_rings_for_the_other_side() -> None:
    found = VitalHistory().after([red("subscriber_is_level", [fault("deliveries", Side.PLATFORM)])], 1.0)
    found = found.after([red("subscriber_is_level", [fault("deliveries", Side.SUBSCRIBER)])], 2.0)
    found = found.after([red("subscriber_is_level", [])], 3.0)
    assert shown(found) == [
        "begun deliveries (platform)", "begun deliveries (subscriber)", "over deliveries (subscriber)",
    ]  # fmt: skip


def test_a_fault_that_lasts_is_notified_again_with_growing_pauses_and_then_to_the_second_receiver_too() -> None:
    found, hour_s = VitalHistory(), 3600.0
    for minutes in range(0, 24 * 60, 10):
        found = found.after(reading(VitalState.RED, "stopped"), minutes * 60.0, repeat_s=4 * hour_s)
    found = found.after(reading(VitalState.GREEN), 24 * hour_s)
    assert [(n.at_s / hour_s, n.state, n.repeats, n.escalates) for n in found.pending] == [
        (0.0, "begun", 0, False),
        (4.0, "lasts", 1, False),
        (4.0, "lasts", 1, True),
        (12.0, "lasts", 2, False),
        (12.0, "lasts", 2, True),
        (24.0, "over", 2, False),
        (24.0, "over", 2, True),
    ]
    assert len({notice.id for notice in found.pending}) == 7


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    found = VitalHistory().after([red("sources_report", [fault("radar-1", Side.SOURCES, lasted_s=3.0)])], 1.0)
    history.store(tmp_path, found)
    again = history.load(tmp_path)
    assert again.vitals == found.vitals and [n.id for n in again.pending] == [n.id for n in found.pending]
    assert not again.after([red("sources_report", [fault("radar-1", Side.SOURCES)])], 2.0).pending[1:]


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
        watch = Watch(tmp_path, Receivers(ReportWebhook(webhook.url)), logged.append)  # each time as after a restart
        return watch.round(lambda: reading(state, text), lambda: at_s)

    webhook.statuses.extend([503])
    assert [n.text for n in round_of(VitalState.RED, "stopped", 1.0).pending] == ["stopped"]
    assert not round_of(VitalState.RED, "stopped", 2.0).pending
    round_of(VitalState.RED, "stopped", 3.0)
    round_of(VitalState.GREEN, "", 4.0)
    assert [(report["vital"], report["state"], report["side"]) for _, report in webhook.received] == [
        ("daemon_beats", "begun", "platform"),
        ("daemon_beats", "over", "platform"),
    ]
    assert len({key for key, _ in webhook.received}) == 2
    assert [line.partition(";")[0] for line in logged] == [
        "begun: daemon_beats (platform): stopped", "over: daemon_beats (platform): stopped",
    ]  # fmt: skip


def test_a_receiver_that_is_away_holds_back_only_its_own_notices(tmp_path: Path, webhook: FailureWebhook) -> None:
    away, logged = ReportWebhook("http://127.0.0.1:9/"), list[str]()
    watch = Watch(tmp_path, Receivers(away, ReportWebhook(webhook.url), 60.0), logged.append)
    for at_s in (0.0, 60.0):
        left = watch.round(lambda: reading(VitalState.RED, "stopped"), lambda now=at_s: now)  # type: ignore[misc]
    assert [(each["state"], each["escalates"], each["runbook"]) for _, each in webhook.received] == [
        ("lasts", True, "docs/reference/vitals.md#daemon_beats")
    ]
    assert webhook.received[0][1]["remedy"] == "The supervisor restarts it. The reason is in `logs/daemon.log`."
    assert [notice.state for notice in left.pending] == ["begun", "lasts"]


def test_a_disk_that_takes_no_history_is_reported_once_all_the_same(
    tmp_path: Path, webhook: FailureWebhook, full_disk: None
) -> None:
    (tmp_path / "vitals.lock").mkdir()  # no more can the lock be opened
    watch = Watch(tmp_path, Receivers(ReportWebhook(webhook.url)), lambda _line: None)
    for at_s in (1.0, 2.0, 3.0):
        watch.round(lambda: reading(VitalState.RED, "full"), lambda now=at_s: now)  # type: ignore[misc]
    assert [report["text"] for _, report in webhook.received] == ["full"]


def test_a_history_is_shown_before_its_notices_are_sent(tmp_path: Path, webhook: FailureWebhook) -> None:
    watch = Watch(tmp_path, Receivers(ReportWebhook(webhook.url)), lambda _line: None)
    sent_when_shown = []

    def show(found: VitalHistory) -> None:
        sent_when_shown.append((len(found.red), len(webhook.received)))

    watch.round(lambda: reading(VitalState.RED, "stopped"), lambda: 1.0, show)
    assert (sent_when_shown, len(webhook.received)) == ([(1, 0)], 1)


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
        found = red_of(current_facts(Settings(home=tmp_path)))
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
        commit(lake, FUSED_TRACKS, [], watermarks=marks, as_of_ns=as_of_s * SECOND_NS)
    found = watermark_facts(lake)
    assert (found.stalled_s, found.slowest) == (80.0, "isl")
    commit(lake, OBSERVATIONS, [], as_of_ns=30 * SECOND_NS)
    assert unconsumed_s(lake, OBSERVATIONS, FUSED_TRACKS, 100 * SECOND_NS) == 70.0


def test_the_facts_of_a_lake_are_read_without_an_engine(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = lake_at(Path(settings.lake_uri))
    commit(lake, CONJUNCTION_ALERTS, [], as_of_ns=lake.clock.now_ns() - 100 * SECOND_NS)
    (tmp_path / "landing" / "rador").mkdir(parents=True)
    with dg.DagsterInstance.ephemeral() as instance:
        facts = observe(settings, instance)
    assert set(red_of(facts)) >= {"no_orphans_wait", "subscriber_is_level", "daemon_beats"}
    assert "unknown feed 'rador'" in red_of(facts)["no_orphans_wait"].text


def test_servers_of_the_station_state_are_asked_where_there_are_any(tmp_path: Path) -> None:
    unused = f"postgresql://sda@127.0.0.1:{free_port(0)}/state"
    for servers, text in ((), ""), ((unused,), "station state: 1 of 1 servers do not answer; no server leads"):
        found = red_of(observe(Settings(home=tmp_path, station_state=servers))).get("replicas_follow")
        assert (found.text if found else "") == text


def test_the_sensor_shows_each_change_once_and_evaluates_where_no_watchdog_does(tmp_path: Path) -> None:
    sensor, cursor = vitals_sensor(Settings(home=tmp_path)), None
    counts = []
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(2):
            context = dg.build_sensor_context(instance, cursor=cursor)
            result = sensor.evaluate_tick(context)
            counts.append(len(result.asset_events))
            cursor = result.cursor
            shown = json.loads(cursor or "{}")
        old = json.dumps({**shown, "at_s": shown["at_s"] - 601.0})
        again = sensor.evaluate_tick(dg.build_sensor_context(instance, cursor=old))
    assert counts == [len(VITALS), 0]
    assert len(again.asset_events) == len(VITALS), "a check is never older than ten minutes while somebody evaluates"
    assert all("evaluated_at" in event.metadata for event in again.asset_events)
    assert history.load(tmp_path).at_s > 0


def test_a_watchdog_that_no_longer_looks_is_a_fault_that_the_sensor_sees(tmp_path: Path) -> None:
    settings, logged = Settings(home=tmp_path), list[str]()
    watchdog = Watch(tmp_path, Receivers(ReportWebhook("")), logged.append, is_watchdog=True)
    sensor = Watch(tmp_path, Receivers(ReportWebhook("")), logged.append)
    with dg.DagsterInstance.ephemeral() as instance:
        watchdog.round(lambda: evaluate(observe(settings, instance), RULES), lambda: 1000.0)
        since_s: float | None = None
        for now_s in range(1020, 1200, 20):
            _, since_s = current_history(settings, sensor, instance, float(now_s), since_s)
        watchdog.round(lambda: evaluate(WELL, RULES), lambda: 1200.0)
        assert current_history(settings, sensor, instance, 1210.0, since_s)[1] is None
    of_watchdog = [line for line in logged if "watchdog" in line]
    assert [line.partition(";")[0] for line in of_watchdog] == [
        "begun: processes_run (platform): the watchdog has evaluated nothing for 2 min",
        "over: processes_run (platform): the watchdog has evaluated nothing for 3 min",
    ]


def test_what_rang_is_kept_with_its_reason_and_when_it_began_and_was_over(tmp_path: Path) -> None:
    MissionClock(NOW_NS, 0, 1.0).save(tmp_path)
    watch = Watch(tmp_path, Receivers(ReportWebhook("")), lambda _line: None)
    disk, radar = (
        [red("disk_has_space", [fault("/lake", text="full")])],
        fault("radar-1", Side.SOURCES, "silent for 601 s"),
    )
    rounds = {10.0: [], 20.0: [radar], 30.0: [radar], 40.0: []}
    for at_s, faults in rounds.items():
        watch.round(lambda: [red("sources_report", faults), *disk], lambda: at_s)  # noqa: B023
    assert past_faults(tmp_path) == [
        PastFault("sources_report", "radar-1", "sources", NOW_NS + 20 * SECOND_NS, NOW_NS + 40 * SECOND_NS, radar.text),
        PastFault("disk_has_space", "/lake", "platform", NOW_NS + 10 * SECOND_NS, None, "full"),
    ]
    output = CliRunner().invoke(main, ["--home", str(tmp_path), "status", "--history"]).output
    assert "2024-11-01T00:00:20Z" in output and "silent" in output and "it lasts" in output


def test_the_file_of_past_faults_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for number in range(100):
        json_lines.append(path, {"n": number}, most_bytes=100)
    assert path.stat().st_size < 120
    assert [each["n"] for each in json_lines.read(path)][-1] == 99


def test_where_no_watchdog_ever_ran_its_silence_is_no_fault(tmp_path: Path) -> None:
    watch, since_s = Watch(tmp_path, Receivers(ReportWebhook("")), lambda _line: None), None
    with dg.DagsterInstance.ephemeral() as instance:
        for now_s in (1000.0, 1100.0, 1200.0):
            found, since_s = current_history(Settings(home=tmp_path), watch, instance, now_s, since_s)
            assert (since_s, found.at_s) == (None, now_s)
    assert "processes_run" not in {each.reading.vital for each in found.red}


def test_the_sensor_notices_once_what_the_disk_does_not_take(
    tmp_path: Path, webhook: FailureWebhook, full_disk: None
) -> None:
    (tmp_path / "landing" / "rador").mkdir(parents=True)
    sensor = vitals_sensor(Settings(home=tmp_path, failure_webhook=webhook.url))
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(2):
            sensor.evaluate_tick(dg.build_sensor_context(instance))
    assert [report["vital"] for _, report in webhook.received] == ["no_orphans_wait"]


@pytest.mark.parametrize("side", Side)
def test_a_red_vital_that_was_just_evaluated_is_an_event_that_dagster_can_store(side: Side) -> None:
    event = evaluation(Lasting(red("disk_has_space", [fault("/lake", side, "full")]), 1.0), 2.0)
    again = dg.deserialize_value(dg.serialize_value(event), dg.AssetCheckEvaluation)
    assert again.metadata["side_at_fault"] == dg.TextMetadataValue(str(side))
    assert again.metadata["evaluated_at"] == dg.TextMetadataValue("1970-01-01T00:00:02.000Z")
    table = again.metadata["faults"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [record.data["subject"] for record in table.records] == ["/lake"]

"""The metric catalogue: what commits add to it, the service levels, and the files for Prometheus and Grafana."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.clock import MissionClock
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ground.tables import GROUND_COMMANDS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.commit import overwrite
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.lake.verdicts import CommitFinding, Position, TableVerdict
from sda_platform.observability.lineage import stages
from sda_platform.observability.metrics.exporter import PlatformMetrics
from sda_platform.observability.objectives import (
    OBJECTIVES,
    ObjectiveEvents,
    alert_latency_s,
    events_since,
    service_levels,
)
from sda_platform.observability.objectives_asset import service_levels_asset
from sda_platform.observability.vitals.facts import DiskFacts, Facts, ProcessFacts, RunFacts
from sda_platform.observability.vitals.faults import Fault, Side, red
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.orchestration.backlog import Backlog
from sda_platform.registry import TABLES
from sda_platform.settings import Settings
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform.telemetry import COLLECTOR_METRICS, METRICS, SERVING_METRICS, MetricKind
from sda_platform.units import DAY_NS, SECOND_NS
from sda_platform_tests.support.delivered_batch import a_delivered_batch
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of, with_delta_rs
from sda_platform_tests.support.programs import program

MONITORING = Path(__file__).parents[3] / "monitoring"
NOW_NS = 1_730_419_200 * SECOND_NS + DAY_NS // 2
# The names that the requirements give (pipelines 0.6).
REQUIRED = tuple(
    """
    operator_restart_total operator_uptime_seconds circuit_breaker_state retry_attempts_total source_lag_seconds
    pipeline_lag_seconds clock_skew_observed_total source_watermark_seconds pipeline_watermark_seconds pending_windows
    late_events_dropped_total retractions_emitted_total channel_occupancy flow_policy_drops_total
    priority_classifier_decisions_total shedding_sink_drops_total timed_sink_deadline_drops_total metrics_drops_total
    checkpoint_age_seconds checkpoint_size_bytes checkpoint_pause_duration_ms dlq_entries_total recovery_path_total
    operator_discards_total
    """.split()  # noqa: SIM905
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake at rest at NOW_NS."""
    uri = lake_at(tmp_path / "lake").uri
    return Lake(uri, MissionClock(NOW_NS, 0, 0.0), without_session)


def test_the_catalogue_has_every_name_of_the_requirements__DP5_O1() -> None:
    assert sorted(set(REQUIRED) - set(METRICS)) == []
    for metric in METRICS.values():
        assert metric.meaning.endswith("."), metric
        assert metric.name.endswith("_total") is (metric.kind is MetricKind.COUNTER)


def test_commits_add_to_the_metrics_from_the_moment_of_following__DP5_O1(lake: Lake) -> None:
    commit(lake, RAW_RECORDS, [{"received_time_ns": 1}])
    followed = PlatformMetrics(lake, window_s=30)
    letters = [{"stage": "raw_records", "error_kind": kind} for kind in ("bad_json", "bad_json", "bad_crc")]
    commit(lake, DEAD_LETTERS, letters)
    commit(lake, FUSED_TRACKS, [{"op": "insert"}, {"op": "retract"}], counts={"late": 2, "isl_source_lag_ms": 1500})
    facts = Facts(
        NOW_NS,
        backlogs={"radar": Backlog(2, 10, 7.0)},
        disks=[DiskFacts("/lake", 1, 4)],
        processes=[ProcessFacts("engine", True, 3)],
        runs=[RunFacts("r", "j", "alerts", "queued", 1.0)],
        repeated=[("r", "j")],
    )
    history = VitalHistory().after([red("daemon_beats", [Fault("daemon", Side.PLATFORM, "stopped")])], 10.0)
    for _ in range(2):  # a second look adds nothing
        followed.refresh(facts, history)
    shown = followed.metrics.value
    assert shown("commits_total", "raw_records") is None, "what was there before does not count"
    assert shown("dlq_entries_total", "raw_records", "bad_json") == 2.0
    assert shown("late_events_dropped_total") == 2.0
    assert shown("retractions_emitted_total", "fused_tracks") == 1.0
    assert shown("landing_pending_segments", "radar") == 2.0
    assert shown("disk_free_share", "/lake") == 0.25
    assert shown("operator_restart_total", "engine") == 3.0
    assert shown("runs_active", "alerts", "queued") == 1.0
    assert shown("retry_attempts_total", "j") == 1.0
    assert shown("recovery_path_total", "fresh") == len(TABLES) - 1
    assert shown("vital_red", "daemon_beats", "platform") == 1.0
    assert b'source_lag_seconds_bucket{le="2.0",source="isl"} 1.0' in followed.metrics.text()
    followed.refresh(Facts(NOW_NS), VitalHistory().after([red("daemon_beats", [])], 20.0))
    assert shown("vital_red", "daemon_beats", "platform") is None
    assert shown("runs_active", "alerts", "queued") is None


def test_how_long_the_oldest_command_of_each_priority_has_waited_is_a_metric__GC29(lake: Lake) -> None:
    def row(name: str, priority: int, state: str, age_s: int) -> dict[str, object]:
        issued_ns = NOW_NS - age_s * SECOND_NS
        return {"command_id": name, "station": "s", "priority": priority, "state": state, "issued_time_ns": issued_ns}

    def replace_all(rows: list[dict[str, object]]) -> None:
        plan = lake.plan(GROUND_COMMANDS)
        stamped = rows_of(GROUND_COMMANDS, [{COMMIT_SEQUENCE: plan.sequence, **each} for each in rows])
        overwrite(lake.log(GROUND_COMMANDS), plan, stamped, changed=len(rows), engine=with_delta_rs)

    waiting = [row("a", 10, "issued", 5), row("b", 10, "accepted", 9), row("d", 255, "dispatched", 1)]
    replace_all([*waiting, row("c", 10, "acknowledged", 30)])
    followed = PlatformMetrics(lake, window_s=30)
    followed.refresh(Facts(NOW_NS), VitalHistory())
    assert followed.metrics.value("command_oldest_seconds", "s", "10") == 9.0
    assert followed.metrics.value("command_oldest_seconds", "s", "255") == 1.0
    followed.refresh(Facts(NOW_NS + SECOND_NS), VitalHistory())
    assert followed.metrics.value("command_oldest_seconds", "s", "10") == 10.0
    replace_all([{**each, "state": "expired"} for each in waiting])
    followed.refresh(Facts(NOW_NS), VitalHistory())
    assert followed.metrics.value("command_oldest_seconds", "s", "10") is None, "nothing waits"


def test_requests_by_class_owner_and_status_and_the_use_of_sensors_are_metrics__PW15(lake: Lake) -> None:
    def entry(name: str, sequence: int, op: str, **facts: object) -> dict[str, object]:
        ahead = {"deadline_time_ns": NOW_NS + 1000 * SECOND_NS, "owner": "NASA", "priority_class": 0}
        return {"request_id": name, "sequence": sequence, "op": op, "status": "unserved", **ahead, **facts}

    def booked(sensor: str, start_s: int, end_s: int) -> dict[str, object]:
        times = {"start_time_ns": NOW_NS + start_s * SECOND_NS, "end_time_ns": NOW_NS + end_s * SECOND_NS}
        return {"status": "scheduled", "source_id": sensor, **times}

    commit(lake, PASS_SCHEDULE, [
        entry("a", 0, "insert"), entry("b", 0, "insert", priority_class=2, owner="ESA"), entry("c", 0, "insert"),
        entry("past", 0, "insert", deadline_time_ns=NOW_NS - 1), entry("d", 0, "insert", **booked("radar-1", -60, 60)),
        entry("e", 0, "insert", **booked("radar-1", 100, 220)), entry("f", 0, "insert", **booked("radar-2", -300, -10)),
    ])  # fmt: skip
    followed = PlatformMetrics(lake, window_s=30)
    followed.refresh(Facts(NOW_NS), VitalHistory())
    shown = followed.metrics.value
    assert shown("observation_requests", "0", "NASA", "unserved") == 2.0
    assert shown("observation_requests", "2", "ESA", "unserved") == 1.0
    assert shown("observation_requests", "0", "NASA", "scheduled") == 3.0
    assert (shown("sensor_booked_seconds", "radar-1"), shown("sensor_booked_seconds", "radar-2")) == (180.0, None)
    gone = [entry(name, 1, "retract") for name in ("a", "c")]
    commit(lake, PASS_SCHEDULE, [*gone, entry("a", 2, "insert", **booked("radar-2", 10, 40))])
    followed.refresh(Facts(NOW_NS), VitalHistory())
    assert shown("observation_requests", "0", "NASA", "unserved") is None
    assert shown("sensor_booked_seconds", "radar-2") == 30.0


def test_a_commit_that_cannot_be_read_hides_nothing_else_and_is_counted_once(lake: Lake) -> None:
    followed = PlatformMetrics(lake, window_s=30)
    commit(lake, FUSED_TRACKS, [{"op": "insert"}])
    commit(lake, RAW_RECORDS, [{"received_time_ns": 1}])
    (data,) = Path(lake.log(FUSED_TRACKS).uri).glob("*.parquet")
    hidden = data.rename(data.with_suffix(".away"))
    damaged = VitalHistory().after([red("tables_are_sound", [Fault("fused_tracks", Side.PLATFORM, "damaged")])], 10.0)
    for _ in range(2):
        with pytest.raises(OSError, match=data.name):
            followed.refresh(Facts(NOW_NS), damaged)
    shown = followed.metrics.value
    assert shown("vital_red", "tables_are_sound", "platform") == 1.0
    assert shown("commits_total", "raw_records") == 1.0
    assert shown("slo_good_share", "loss") == 1.0
    assert shown("commits_total", "fused_tracks") is None
    hidden.rename(data)
    followed.refresh(Facts(NOW_NS), damaged)
    assert shown("commits_total", "fused_tracks") == 1.0


def test_the_latency_of_an_alert_counts_from_the_oldest_reception_it_rests_on(lake: Lake) -> None:
    a_delivered_batch(lake, received_s=21.0)
    (delivery,) = lake.log(ALERT_DELIVERIES).commits()
    way = [stage.table.name for stage in stages(lake, ALERT_DELIVERIES, delivery)]
    assert way == ["raw_records", "observations", "fused_tracks", "conjunction_alerts", "alert_deliveries"]
    assert alert_latency_s(lake, delivery) == 21.0


def test_a_day_of_service_levels_follows_from_the_commits(lake: Lake) -> None:
    a_delivered_batch(lake, received_s=31.0)
    followed = PlatformMetrics(lake, window_s=30)
    followed.refresh(Facts(NOW_NS), VitalHistory())
    shares = {each.name: followed.metrics.value("slo_good_share", each.name) for each in OBJECTIVES}
    assert shares == {"alert_latency": 0.0, "freshness": 1.0, "loss": 1.0, "duplicates": 1.0, "availability": 1.0}


def test_a_finding_that_comes_after_its_commit_was_counted_spends_the_exported_budget_too(lake: Lake) -> None:
    followed = PlatformMetrics(lake, window_s=30)
    commit(lake, RAW_RECORDS, [{"received_time_ns": 1}])
    commit(lake, RAW_RECORDS, [{"received_time_ns": 2}])

    def shares() -> tuple[float | None, float | None]:
        followed.refresh(Facts(NOW_NS), VitalHistory())
        exported = [followed.metrics.value("slo_good_share", name) for name in ("loss", "duplicates")]
        anew = service_levels(list(events_since(lake, NOW_NS - NOW_NS % DAY_NS)), NOW_NS)
        assert exported == [each.share for each in anew if each.objective.name in ("loss", "duplicates")]
        return exported[0], exported[1]

    assert shares() == (1.0, 1.0)
    found = {"balance": ["2 records landed, 1 row stored"], "keys": ["x is there twice"]}
    newest = Position.of(lake.log(RAW_RECORDS).commits()[0])
    finding = CommitFinding("raw_records", 2, Position(), newest, found, "2024-11-01T00:00:00Z")
    lake.verdicts.write(TableVerdict("raw_records", newest, (finding,)))
    assert shares() == (0.5, 0.5)
    assert followed.metrics.value("slo_burn_rate", "loss") == pytest.approx(5000.0)
    lake.verdicts.write(TableVerdict("raw_records", newest, ()))
    assert shares() == (1.0, 1.0), "what was repaired is whole again"


def test_budget_and_burn_rate_of_an_objective() -> None:
    good = [ObjectiveEvents("freshness", NOW_NS - 2 * 3600 * SECOND_NS, 900.0, 900.0)]
    bad = [ObjectiveEvents("freshness", NOW_NS - 60 * SECOND_NS, 95.0, 100.0)]
    yesterday = [ObjectiveEvents("freshness", NOW_NS - DAY_NS, 0.0, 1000.0)]
    level = next(
        each for each in service_levels([*good, *bad, *yesterday], NOW_NS) if each.objective.name == "freshness"
    )
    assert (level.good, level.total, level.is_kept) == (995.0, 1000.0, True)
    assert level.budget_left == pytest.approx(0.5)
    assert level.burn_rate == pytest.approx(5.0)


def expressions() -> Iterator[tuple[str, str]]:
    """Where each PromQL expression of the files is, and the expression."""
    for panel in json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]:
        yield from ((f"panel {panel['title']}", target["expr"]) for target in panel["targets"])
    for line in (MONITORING / "rules.yml").read_text().splitlines():
        if line.strip().startswith("expr:"):
            yield "rules.yml", line.partition("expr:")[2].strip()


@pytest.mark.parametrize(("place", "expression"), list(expressions()))
def test_dashboard_and_rules_name_metrics_and_labels_of_the_catalogue_only(place: str, expression: str) -> None:
    bare = re.sub(r'\{[^}]*\}|"[^"]*"|\[[^\]]*\]|\b(?:by|offset)\s*(?:\([^)]*\)|\w+)', " ", expression)
    functions = {"histogram_quantile", "sum", "rate", "increase", "absent", "and", "or", "up", "unless", "on"}
    names = set(re.findall(r"\b[a-z_]{2,}\b", bare)) - functions
    assert names, (place, expression)
    for name in names:
        base = name.removesuffix("_bucket")
        assert base in METRICS, f"{place}: {name}"
        assert (base != name) is (METRICS[base].kind is MetricKind.HISTOGRAM), f"{place}: {name}"
        used = {
            label.strip() for labels in re.findall(r"\bby\s*\(([^)]*)\)", expression) for label in labels.split(",")
        }
        assert used <= {*METRICS[base].labels, "le"}, f"{place}: {used}"


def test_each_metric_of_the_rules_is_of_a_process_that_prometheus_scrapes() -> None:
    chosen = Settings()
    scraped = set(re.findall(r'targets: \["127\.0\.0\.1:(\d+)"\]', (MONITORING / "prometheus.yml").read_text()))
    rules = set(re.findall(r"\w+", (MONITORING / "rules.yml").read_text()))
    ports = {chosen.serving.port: SERVING_METRICS, 9100: COLLECTOR_METRICS, chosen.health_port: METRICS}
    for port, metrics in ports.items():
        assert rules & {*metrics}, port
        assert str(port) in scraped


def test_every_alert_of_the_rules_has_a_test_that_it_fires_and_one_that_it_is_silent() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", (MONITORING / "rules.yml").read_text()))
    tested = (MONITORING / "rules_test.yml").read_text()
    assert alerts == set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", tested))
    assert alerts == set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", tested))


@pytest.mark.skipif(
    program("promtool") is None,
    reason="no promtool here, so nothing evaluates monitoring/rules.yml: install Prometheus, or run in CI",
)
def test_prometheus_accepts_the_rules_the_configuration_and_the_exposition(lake: Lake) -> None:
    promtool, followed = str(program("promtool")), PlatformMetrics(lake, window_s=30)
    a_delivered_batch(lake, received_s=5.0)
    followed.refresh(Facts(NOW_NS, disks=[DiskFacts("/lake", 1, 4)]), VitalHistory())
    for arguments in (["check", "rules", "rules.yml"], ["check", "config", "prometheus.yml"]):
        subprocess.run([promtool, *arguments], cwd=MONITORING, check=True, capture_output=True)
    tested = subprocess.run([promtool, "test", "rules", "rules_test.yml"], cwd=MONITORING, capture_output=True)
    assert tested.returncode == 0, tested.stderr.decode()
    checked = subprocess.run([promtool, "check", "metrics"], input=followed.metrics.text(), capture_output=True)
    assert checked.returncode in (0, 3), checked.stderr  # 3: remarks on style, such as the names of the requirements


def test_the_service_levels_are_an_asset_with_a_check_for_each_objective(tmp_path: Path) -> None:
    result = dg.materialize([service_levels_asset(Settings(home=tmp_path))], instance=dg.DagsterInstance.ephemeral())
    assert {each.check_name for each in result.get_asset_check_evaluations() if each.passed} == {
        each.name for each in OBJECTIVES
    }
    (made,) = result.get_asset_materialization_events()
    assert made.materialization.metadata["alert_latency_budget_left"].value == 1.0

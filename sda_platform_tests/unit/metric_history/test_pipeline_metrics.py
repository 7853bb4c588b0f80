"""Sampled metrics: from what processes export, through the landing zone, to rows that can be queried."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sda_platform.clock import MissionClock
from sda_platform.edge.report_client import NoReport
from sda_platform.landing.record_rows import pending_rows
from sda_platform.landing.zone import LandingZone
from sda_platform.metric_history.assets import decode
from sda_platform.metric_history.tables import METRICS_FEED, PIPELINE_METRICS
from sda_platform.observability.metrics.accumulated import AccumulatedMetrics
from sda_platform.observability.metrics.recording import MetricsRecorder, collector_metrics
from sda_platform.observability.metrics.samples import MetricSample
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

INTERVAL_S = 600.0
Export = Callable[[], str]


def exported() -> str:
    metrics = AccumulatedMetrics()
    metrics.add(
        [
            MetricSample("commits_total", ("raw_records",), 3.0),
            MetricSample("disk_free_share", ("/lake",), 0.25),
            MetricSample("slo_burn_rate", ("latency",), float("nan")),
            MetricSample("alert_latency_seconds", (), 7.0),
            MetricSample("alert_latency_seconds", (), 70.0),
        ]
    )
    return metrics.text().decode()


def silent() -> str:
    return collector_metrics(None)


def recorder(home: Path, **processes: Export) -> tuple[MetricsRecorder, LandingZone]:
    zone = LandingZone(str(home / "landing"), METRICS_FEED)
    return MetricsRecorder(zone, MissionClock(START_NS, 0, 0.0), processes, INTERVAL_S), zone


def values(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], float]:
    return {(row["process"], row["sample"], row["labels"]): row["value"] for row in rows}


def test_what_a_process_exports_becomes_rows_with_their_labels__DP6(tmp_path: Path) -> None:
    samples, zone = recorder(tmp_path, watchdog=exported)
    assert samples.round(0.0) == 0 and zone.pending_names() == [], "the first interval has not passed"
    assert samples.round(INTERVAL_S) > 0
    (segment,) = zone.pending()
    loaded = zone.read(segment)
    assert loaded.meta is not None
    lake = lake_at(tmp_path / "lake")
    commit(lake, PIPELINE_METRICS, decode(loaded.data, loaded.meta).to_pylist())
    rows = lake.log(PIPELINE_METRICS).rows().to_pylist()
    assert {row["sampled_time_ns"] for row in rows} == {START_NS} and not any(row["error"] for row in rows)
    shown = values(rows)
    assert shown["watchdog", "commits_total", '{"table": "raw_records"}'] == 3.0
    assert shown["watchdog", "disk_free_share", '{"path": "/lake"}'] == 0.25
    assert shown["watchdog", "alert_latency_seconds_bucket", '{"le": "10.0"}'] == 1.0
    assert shown["watchdog", "alert_latency_seconds_bucket", '{"le": "+Inf"}'] == 2.0
    assert shown["watchdog", "alert_latency_seconds_sum", "{}"] == 77.0
    assert not any(sample == "slo_burn_rate" for _, sample, _ in shown), "NaN is no value"
    assert {row["metric"] for row in rows} == {"commits_total", "disk_free_share", "alert_latency_seconds"}


def test_samples_are_made_once_an_interval(tmp_path: Path) -> None:
    samples, _ = recorder(tmp_path, watchdog=exported)
    made = [samples.round(second) for second in (0.0, 60.0, 599.0, 600.0, 660.0, 1199.0, 1200.0)]
    assert [bool(number) for number in made] == [False, False, False, True, False, False, True]


def test_a_process_that_does_not_answer_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(NoReport, match="no collector runs"):
        silent()
    samples, zone = recorder(tmp_path, collector=silent, watchdog=exported)
    samples.round(0.0)
    samples.round(INTERVAL_S)
    assert {row["process"] for row in pending_rows(zone, decode)} == {"watchdog"}


def test_a_sample_that_the_zone_does_not_take_is_made_again_at_the_next_round(tmp_path: Path) -> None:
    samples, zone = recorder(tmp_path, watchdog=exported)
    samples.round(0.0)
    (tmp_path / "landing").write_text("no directory")
    with pytest.raises(OSError, match="landing"):
        samples.round(INTERVAL_S)
    (tmp_path / "landing").unlink()
    assert samples.round(INTERVAL_S + 60.0) > 0
    assert len(zone.pending_names()) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": "high"}, "value is 'high', must be a number"),
        ({"labels": [1]}, "labels is [1], must be an object whose values are text"),
        ({"labels": {"table": 1}}, "labels is {'table': 1}, must be an object whose values are text"),
        ({"sample": ""}, "sample is '', must be non-empty text"),
    ],
)
def test_a_line_that_is_no_value_is_refused_with_its_reason(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    samples, zone = recorder(tmp_path, watchdog=exported)
    samples.round(0.0)
    samples.round(INTERVAL_S)
    (segment,) = zone.pending()
    loaded = zone.read(segment)
    assert loaded.meta is not None
    first, *others = loaded.data.splitlines(keepends=True)
    changed = json.dumps({**json.loads(first), **change}).encode() + b"\n"
    rows = decode(changed + b"".join(others), loaded.meta).to_pylist()
    assert reason in rows[0]["error"] and rows[0]["payload"] == changed.rstrip(b"\n")
    assert not any(row["error"] for row in rows[1:])

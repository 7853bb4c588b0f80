"""A real Prometheus scrapes what the watchdog exports, and evaluates the alerts of `monitoring/`."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sda_platform.observability.metrics.accumulated import AccumulatedMetrics
from sda_platform.observability.metrics.samples import MetricSample
from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform_tests.support.dashboard_picture import draw
from sda_platform_tests.support.programs import program
from sda_platform_tests.support.prometheus_server import asked, prometheus
from sda_platform_tests.support.running_platform import eventually

pytestmark = [pytest.mark.skipif(program("prometheus") is None, reason="Prometheus is not installed")]


@pytest.fixture
def metrics() -> AccumulatedMetrics:
    """What is exported: one red vital, a budget that is spent."""
    exported = AccumulatedMetrics()
    exported.add(
        [
            MetricSample("vital_red", ("disk_has_space", "machine"), 1.0),
            MetricSample("fault_active", ("disk_has_space", "/lake", "machine"), 1.0),
            MetricSample("slo_budget_left", ("freshness",), -0.5),
            MetricSample("commits_total", ("tracks",), 7.0),
        ]
    )
    return exported


@pytest.fixture
def server(metrics: AccumulatedMetrics) -> Iterator[str]:
    """Its address; it has the configuration and rules of `monitoring/`, with the port of this test."""
    with (
        Pages("127.0.0.1", 0, {"/metrics": lambda: PageAnswer(metrics.text(), CONTENT_TYPE_LATEST)}) as pages,
        prometheus({"127.0.0.1:3001": f"127.0.0.1:{pages.port}"}, 1) as address,
    ):
        yield address


def value(address: str, expression: str) -> float | None:
    found = asked(address, "query", query=expression)
    return float(found["result"][0]["value"][1]) if found and found["result"] else None


def test_prometheus_scrapes_the_metrics_and_evaluates_the_alerts__DP5_O1(
    server: str, metrics: AccumulatedMetrics
) -> None:
    assert eventually(lambda: value(server, 'vital_red{vital="disk_has_space"}') == 1.0, 60)
    assert value(server, 'commits_total{table="tracks"}') == 7.0
    rules = {rule["name"]: rule for group in asked(server, "rules")["groups"] for rule in group["rules"]}
    assert {rule["health"] for rule in rules.values()} <= {"ok", "unknown"}

    def firing() -> set[str]:
        alerts = asked(server, "alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    assert eventually(lambda: {"SdaBudgetSpent", "SdaFault"} <= firing(), 60)
    metrics.replace([MetricSample("slo_budget_left", ("freshness",), 0.5)])
    assert eventually(lambda: "SdaBudgetSpent" not in firing(), 60)


def test_each_panel_of_the_dashboard_asks_what_prometheus_understands(server: str, tmp_path: Path) -> None:
    assert eventually(lambda: value(server, 'commits_total{table="tracks"}') == 7.0, 60)
    picture = tmp_path / "dashboard.png"
    empty = draw(server, time.time() - 60.0, picture)
    assert "Faults" not in empty and "Error budget left today" not in empty
    assert picture.read_bytes().startswith(b"\x89PNG")

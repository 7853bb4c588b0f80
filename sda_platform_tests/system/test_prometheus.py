"""A real Prometheus scrapes what the watchdog exports, and evaluates the alerts of `monitoring/`."""

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sda_platform.observability.metrics.accumulated import AccumulatedMetrics
from sda_platform.observability.metrics.samples import MetricSample
from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.programs import program
from sda_platform_tests.support.running_platform import eventually

pytestmark = [pytest.mark.skipif(program("prometheus") is None, reason="Prometheus is not installed")]

MONITORING = Path(__file__).parents[2] / "monitoring"
INTERVALS = "scrape_interval: 1s\n  evaluation_interval: 1s"


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
def prometheus(metrics: AccumulatedMetrics, tmp_path: Path) -> Iterator[str]:
    """Its address; it has the configuration and rules of `monitoring/`, with the port of this test."""
    shutil.copy(MONITORING / "rules.yml", tmp_path)
    with Pages("127.0.0.1", 0, {"/metrics": lambda: PageAnswer(metrics.text(), CONTENT_TYPE_LATEST)}) as pages:
        configuration = (MONITORING / "prometheus.yml").read_text()
        assert "127.0.0.1:3001" in configuration and "scrape_interval: 15s" in configuration
        configuration = configuration.replace("127.0.0.1:3001", f"127.0.0.1:{pages.port}")
        (tmp_path / "prometheus.yml").write_text(configuration.replace("scrape_interval: 15s", INTERVALS))
        address = f"127.0.0.1:{free_port(0)}"
        options = ["--config.file=prometheus.yml", f"--storage.tsdb.path={tmp_path / 'data'}"]
        with subprocess.Popen(
            [str(program("prometheus")), *options, f"--web.listen-address={address}"],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield address
            finally:
                process.terminate()


def asked(address: str, path: str, **parameters: str) -> Any:
    """The data of an answer of its HTTP interface; None until it answers."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def value(address: str, expression: str) -> float | None:
    found = asked(address, "query", query=expression)
    return float(found["result"][0]["value"][1]) if found and found["result"] else None


def test_prometheus_scrapes_the_metrics_and_evaluates_the_alerts__DP5_O1(
    prometheus: str, metrics: AccumulatedMetrics
) -> None:
    assert eventually(lambda: value(prometheus, 'vital_red{vital="disk_has_space"}') == 1.0, 60)
    assert value(prometheus, 'commits_total{table="tracks"}') == 7.0
    rules = {rule["name"]: rule for group in asked(prometheus, "rules")["groups"] for rule in group["rules"]}
    assert {rule["health"] for rule in rules.values()} <= {"ok", "unknown"}

    def firing() -> set[str]:
        alerts = asked(prometheus, "alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    assert eventually(lambda: {"SdaBudgetSpent", "SdaFault"} <= firing(), 60)
    metrics.replace([MetricSample("slo_budget_left", ("freshness",), 0.5)])
    assert eventually(lambda: "SdaBudgetSpent" not in firing(), 60)

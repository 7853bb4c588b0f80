"""The timeline of an alert, as a page and as an OpenTelemetry trace; and `sda top`."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake, without_session
from sda_platform.observability.otlp import export, trace_of
from sda_platform.observability.timeline import AlertTimeline, timeline
from sda_platform.observability.timeline_page import page
from sda_platform_tests.support.delivered_batch import a_delivered_batch
from sda_platform_tests.support.delta_tables import lake_at

NOW_NS = 1_730_462_400_000_000_000


@pytest.fixture
def found(tmp_path: Path) -> AlertTimeline:
    lake = Lake(lake_at(tmp_path / "lake").uri, MissionClock(NOW_NS, 0, 0.0), without_session)
    a_delivered_batch(lake, received_s=21.0)
    (delivery,) = lake.log(ALERT_DELIVERIES).commits()
    return timeline(lake, "alert-1", delivery)


def test_a_timeline_goes_from_reception_to_the_subscriber(found: AlertTimeline) -> None:
    stages = ["raw_records", "observations", "fused_tracks", "conjunction_alerts", "alert_deliveries"]
    assert [span.name for span in found.spans] == ["received, sealed and pending", *stages]
    assert found.spans[0].duration_s == found.total_s == 21.0
    assert [span.parents for span in found.spans] == [(), (0,), (1,), (2,), (3,), (4,)]


def test_the_page_needs_nothing_else_and_escapes_what_it_shows(found: AlertTimeline) -> None:
    html = page([found], "Alert <b>")
    assert "Alert &lt;b&gt;" in html and "21.00 s from reception to subscriber" in html
    assert html.count("<rect") == len(found.spans)
    assert "http" not in html and "<script" not in html and "src=" not in html


class _Collector(BaseHTTPRequestHandler):
    received: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def collector() -> Iterator[str]:
    _Collector.received = []
    with HTTPServer(("127.0.0.1", 0), _Collector) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_timeline_is_exported_as_one_trace_however_often(found: AlertTimeline, collector: str) -> None:
    assert export(collector, found) is None and export(collector, found) is None
    (path, first), (_, second) = _Collector.received
    assert path == "/v1/traces" and first == second
    spans = json.loads(first)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({span["spanId"] for span in spans}) == len(found.spans)
    assert {span["traceId"] for span in spans} == {spans[0]["traceId"]} and len(spans[0]["traceId"]) == 32
    assert [span["parentSpanId"] for span in spans[1:]] == [span["spanId"] for span in spans[:-1]]
    assert trace_of(found)["resourceSpans"][0]["resource"]["attributes"][0]["value"] == {"stringValue": "sda-platform"}


def test_a_collector_that_does_not_answer_is_reported_and_breaks_nothing(found: AlertTimeline) -> None:
    assert "did not answer" in (export("http://127.0.0.1:1", found) or "")


def test_top_prints_one_frame(tmp_path: Path) -> None:
    lake = Lake(lake_at(tmp_path / "lake").uri, MissionClock(NOW_NS, 0, 0.0), without_session)
    a_delivered_batch(lake, received_s=21.0)
    done = CliRunner().invoke(main, ["--home", str(tmp_path), "top", "--once"])
    assert done.exit_code == 0, done.output
    assert "mission time" in done.output and "vitals are red" in done.output

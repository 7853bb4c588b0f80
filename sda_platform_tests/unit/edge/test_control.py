"""The control plane: health, metrics, sources, configuration; nothing of it without the token."""

import asyncio
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sda_platform.edge.address import Address
from sda_platform.edge.bottleneck import Occupancy
from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.config import ConfigError, load_config
from sda_platform.edge.control import control_plane
from sda_platform.edge.http_server import HttpServer
from sda_platform.edge.latency import Latency
from sda_platform.edge.rates import Rates
from sda_platform.edge.sources.source import SourceState
from sda_platform.edge.topology import declared_edges
from sda_platform_tests.support.collectors import address, beacons, collecting, framed, until
from sda_platform_tests.support.socket_sources import LINKS, RADAR

SPECIFIED = {
    "source_rate", "channel_occupancy", "channel_capacity_bytes", "source_errors", "sink_bytes_written",
    "operator_restart", "operator_uptime_seconds", "flow_policy_drops", "priority_classifier_decisions",
    "shedding_sink_drops", "timed_sink_deadline_drops", "records_received", "records_sealed", "records_deferred",
    "records_dropped", "seal_latency_seconds", "kernel_drops", "bottleneck", "intake_backlog",
}  # fmt: skip


async def ask(control: HttpServer, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"http://{control.address}{path}", headers=headers)


def test_every_family_is_exported_and_counts_are_true__DP1_O2_DP4_O1(tmp_path: Path) -> None:
    async def scenario() -> dict[str, Any]:
        async with (
            collecting(tmp_path, {**RADAR, **LINKS}) as collector,
            HttpServer(control_plane(collector), Address("127.0.0.1", 0)) as control,
        ):
            _, writer = await asyncio.open_connection(*address(collector, "links"))
            writer.write(framed([*beacons(5), b"short"]))
            await until(lambda: collector.ledger.of_source("links").sealed == 6)
            writer.close()
            answer = await ask(control, "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        return {family.name: family for family in text_string_to_metric_families(answer.text)}

    families = asyncio.run(scenario())
    assert set(families) >= SPECIFIED
    sealed = {
        s.labels["priority"]: s.value for s in families["records_sealed"].samples if s.labels["source"] == "links"
    }
    assert sealed == {"high": 5.0, "low": 1.0}
    assert [(s.labels["reason"], s.value) for s in families["source_errors"].samples] == [("bad_length", 1.0)]
    counted = [s for s in families["seal_latency_seconds"].samples if s.name.endswith("_count")]
    assert {(s.labels["zone"], s.labels["priority"]): s.value for s in counted}["isl", "high"] == 5.0
    policies = {s.labels["edge"]: s.labels["policy"] for s in families["channel_capacity_bytes"].samples}
    assert policies == {edge.name: edge.policy.value for edge in declared_edges(["radar", "isl"])}
    assert {edge for edge, policy in policies.items() if policy == OverflowPolicy.SHED} == {
        s.labels["edge"] for s in families["shedding_sink_drops"].samples
    }


def test_health_is_503_once_a_source_was_killed__DP1_O1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            collecting(tmp_path, RADAR) as collector,
            HttpServer(control_plane(collector), Address("127.0.0.1", 0)) as control,
        ):
            assert (await ask(control, "/health")).json() == {"healthy": True, "problems": []}
            source = collector.supervised["radar-a"].source
            source.state, source.detail = SourceState.FAILED, "the reason"
            answer = await ask(control, "/health")
            assert answer.status_code == 503
            assert answer.json()["problems"] == ["source radar-a: the reason"]
            report = (await ask(control, "/sources")).json()
            assert [(each["name"], each["state"]) for each in report["sources"]] == [("radar-a", "failed")]
            assert (await ask(control, "/ledger")).json() == {"accounts": [], "not_listened": []}

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/health", "/metrics", "/sources", "/ledger", "/nothing"])
def test_with_a_token_nothing_is_answered_without_it(tmp_path: Path, path: str) -> None:
    async def scenario() -> None:
        async with (
            collecting(tmp_path, {}) as collector,
            HttpServer(control_plane(collector, "t0ken"), Address("127.0.0.1", 0)) as control,
        ):
            assert (await ask(control, path)).status_code == 401
            assert (await ask(control, path, Authorization="Bearer wrong")).status_code == 401
            found = await ask(control, path, Authorization="Bearer t0ken")
            assert found.status_code == (404 if path == "/nothing" else 200)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[collector\n", "is no TOML"),
        ("[collector]\ncontrol = '0.0.0.0:9100'", "0.0.0.0:9100 can be reached from other machines"),
        ("[collector]\ncontrol = '0.0.0.0:9100'\ntoken_variable = 'NO_SUCH'", "set the token in .* NO_SUCH"),
        ("[collector]\nunknown = 1", "collector.unknown: Extra inputs"),
        ("[sources.a]\nkind = 'radar'", "sources.a.radar.bind: Field required"),
        ("[sources.a]\nkind = 'laser'", "kind"),
        ("[sources.a]\nkind = 'radar'\nbind = 'here'", "no address; write host:port"),
        ("[sources.A_B]\nkind = 'radar'\nbind = '127.0.0.1:1'", "A_B"),
        (
            "[sources.a]\nkind = 'pull'\nurl = 'http://x'\nformat = 'tle'\nzone = 'messages'",
            "carries cdm-json, cdm-kvn",
        ),
        ("[sources.a]\nkind = 'upload'\nbind = '[::]:80'", "can be reached from other machines"),
        ("[sources.a]\nkind = 'folder'\npath = 'in'\ndone = 'in/done'", "lies in the folder, where partners can write"),
    ],
)
def test_a_wrong_configuration_names_file_option_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as refusal:
        load_config(path)
    assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize("broken", ["collect.toml", "mappings/radar.toml"])
def test_a_collector_that_cannot_start_ends_with_the_reason_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    (tmp_path / "mappings").mkdir()
    (tmp_path / "collect.toml").write_text("")
    (tmp_path / broken).write_text("[a\n")
    monkeypatch.setenv("SDA_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["edge", str(tmp_path / "collect.toml")])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("sda_platform.edge", run_name="__main__")
    assert str(end.value.code).startswith(f"{tmp_path / broken}: ")


def test_the_example_of_the_documentation_is_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Path(__file__).parents[3] / "docs" / "how-to" / "run-collectors.md"
    (example,) = re.findall(r"```toml\n(.*?)```", docs.read_text(), re.DOTALL)
    for variable in re.findall(r'token_variable = "(\w+)"', example):
        monkeypatch.setenv(variable, "token")
    path = tmp_path / "collect.toml"
    path.write_text(example)
    assert {source.kind for source in load_config(path).sources.values()} == {
        "radar", "isl", "telemetry", "station", "optical", "folder", "upload", "pull", "space-weather",
    }  # fmt: skip


def test_the_bottleneck_is_the_rightmost_full_edge__E24_DP4_O5() -> None:
    occupancy = Occupancy()
    for _ in range(300):
        occupancy.add({"radar.high": 1.0, "radar.low": 0.2, "radar.intake": 0.0})
    assert occupancy.bottleneck() == "radar.high"
    for _ in range(100):
        occupancy.add({"radar.high": 1.0, "radar.low": 0.2, "radar.intake": 1.7})
    assert occupancy.bottleneck() == "radar.intake"
    for _ in range(100):
        occupancy.add({"radar.high": 0.9, "radar.low": 0.9, "radar.intake": 0.5})
    assert occupancy.bottleneck() is None
    assert Occupancy().bottleneck() is None


def test_rates_follow_with_a_time_constant_of_30_s__DP1_O2() -> None:
    rates = Rates()
    for step in range(601):
        rates.add("a", step * 10, step * 0.1)
    assert rates.of("a") == pytest.approx(100.0 * (1 - 2.718281828 ** (-60 / 30)), rel=1e-6)
    assert rates.of("unknown") == 0.0


def test_latency_is_weighted_by_records() -> None:
    latency = Latency()
    latency.add(0.02, 99)
    latency.add(3.0, 1)
    assert (latency.quantile(0.5), latency.quantile(0.99), latency.quantile(0.999)) == (0.025, 0.025, 5.0)
    assert latency.buckets()[-1] == ("+Inf", 100.0)
    assert Latency().quantile(0.5) is None

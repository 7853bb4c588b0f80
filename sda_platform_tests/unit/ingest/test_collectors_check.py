"""The assets and checks that show the collector's sources in Dagster."""

import asyncio
import io
import json
import os
import socket
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.edge.address import Address
from sda_platform.edge.control import control_plane
from sda_platform.edge.http_server import HttpServer
from sda_platform.edge.logs import Log
from sda_platform.edge.service import run_collector
from sda_platform.edge.sources.source import SourceState
from sda_platform.ingest.collectors import source_checks, source_states
from sda_platform.observability.services import service_states
from sda_platform.orchestration.resources import LakeResource
from sda_platform.published import CATALOGUE, COLLECTOR, publish, published, withdraw
from sda_platform.runtime.pages import PageAnswer, Pages
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.collectors import collecting

RADAR = {"radar-a": {"kind": "radar", "bind": "127.0.0.1:0"}}


def outcome(home: Path) -> dg.AssetCheckResult:
    """What the check of the first kind of source states in this home."""
    found = source_checks[0](lake=LakeResource(uri=str(home), home=str(home), spark=SparkResource(remote="local")))
    assert isinstance(found, dg.AssetCheckResult)
    return found


def test_a_platform_without_a_collector_passes(tmp_path: Path) -> None:
    assert outcome(tmp_path).passed


def test_a_failed_source_is_named_with_its_reason__DP1_O1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            collecting(tmp_path, RADAR) as collector,
            HttpServer(control_plane(collector), Address("127.0.0.1", 0)) as control,
        ):
            publish(tmp_path, COLLECTOR, control.address)
            (radar,) = await asyncio.to_thread(source_states, tmp_path, 0.0)
            assert radar.key == dg.AssetKey(["sources", "radar"])
            assert (radar.problems, radar.metadata["radar-a_sealed"]) == ([], 0)
            source = collector.supervised["radar-a"].source
            source.state, source.detail = SourceState.FAILED, "the reason"
            (radar,) = await asyncio.to_thread(source_states, tmp_path, 0.0)
            assert radar.outcome == "source radar-a: the reason"

    asyncio.run(scenario())


def test_another_program_at_the_address_of_a_killed_service_is_no_service(tmp_path: Path) -> None:
    answer = PageAnswer(b'{"healthy": true}', "application/json")
    with Pages("127.0.0.1", 0, {"/sources": lambda: answer, "/health": lambda: answer}) as other:
        for service in (COLLECTOR, CATALOGUE):
            publish(tmp_path, service, f"127.0.0.1:{other.port}")
        assert not outcome(tmp_path).passed
        found = {each.service: each for each in service_states(tmp_path)}
    assert {each.summary for each in found.values()} == {"does not answer"}
    assert "another program may have its port" in found[COLLECTOR].problems[0]


def test_a_collector_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    publish(tmp_path, COLLECTOR, "127.0.0.1:9")
    found = outcome(tmp_path)
    assert not found.passed
    assert "127.0.0.1:9 does not answer" in (found.description or "")
    withdraw(tmp_path, COLLECTOR)
    assert published(tmp_path, COLLECTOR) is None


@pytest.mark.parametrize("content", ["", "{}", "[1]", "nothing"])
def test_a_damaged_address_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "collector.json").write_text(content)
    assert published(tmp_path, COLLECTOR) is None


def test_a_second_collector_that_cannot_start_leaves_the_address_of_the_first(tmp_path: Path) -> None:
    """The port of its control plane is taken, so it ends before it publishes anything."""
    first = json.dumps({"address": "127.0.0.1:9", "pid": os.getpid() + 1})
    (tmp_path / "collector.json").write_text(first)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = tmp_path / "collect.toml"
        config.write_text(f'[collector]\ncontrol = "127.0.0.1:{taken.getsockname()[1]}"\n')
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            run_collector(config, landing_root=str(tmp_path / "landing"), home=tmp_path, log=Log(io.StringIO()))
    assert published(tmp_path, COLLECTOR) == "127.0.0.1:9"

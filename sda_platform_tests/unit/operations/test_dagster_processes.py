"""The two places where the platform reaches into Dagster: a new version that moves them must fail here."""

import multiprocessing
from typing import Any

import pytest
from dagster._daemon import sensor
from dagster._grpc import server

from sda_platform.operations import code_server, daemon


def test_dagsters_server_takes_the_forkserver_for_its_run_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "multiprocessing", multiprocessing)
    code_server.fork_run_workers()
    context: Any = server.multiprocessing.get_context("spawn")
    assert context.get_start_method() == "forkserver"
    assert server.multiprocessing.Process is multiprocessing.Process


def test_dagsters_sensor_loop_wakes_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensor, "MIN_INTERVAL_LOOP_TIME", 5)
    daemon.quicken_sensors()
    assert sensor.MIN_INTERVAL_LOOP_TIME == daemon.SENSOR_LOOP_S


def test_a_dagster_without_that_knob_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sensor, "MIN_INTERVAL_LOOP_TIME")
    with pytest.raises(RuntimeError, match="MIN_INTERVAL_LOOP_TIME"):
        daemon.quicken_sensors()

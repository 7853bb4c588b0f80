"""The places where the platform reaches into Dagster: a new version that moves them must fail here."""

import multiprocessing
from typing import Any

import pytest
from dagster._daemon import sensor
from dagster._grpc import server

from sda_platform import faults
from sda_platform.operations import code_server, daemon


def test_dagsters_server_takes_the_forkserver_for_its_run_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "multiprocessing", multiprocessing)
    monkeypatch.setattr(server, "start_run_in_subprocess", server.start_run_in_subprocess)
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


def test_dagsters_own_crash_points_of_a_tick_are_fault_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensor, "check_for_debug_crash", sensor.check_for_debug_crash)
    daemon.mark_crash_points()
    told: list[str] = []
    faults.watch(told.append)
    try:
        sensor.check_for_debug_crash(None, "RUN_CREATED")
    finally:
        faults.watch(None)
    assert told == ["daemon.run_created"]

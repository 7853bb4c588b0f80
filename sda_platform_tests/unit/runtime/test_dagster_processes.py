"""The places where the platform reaches into Dagster: a new version that moves them must fail here."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test
from dagster._daemon import sensor
from dagster._grpc import server

from sda_platform import failpoints
from sda_platform.runtime import code_server, daemon
from sda_platform.runtime.processes import free_port


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
    failpoints.watch(told.append)
    try:
        sensor.check_for_debug_crash(None, "RUN_CREATED")
    finally:
        failpoints.watch(None)
    assert told == ["daemon.run_created"]


def test_at_its_start_the_daemon_ends_runs_whose_worker_is_gone_and_leaves_the_others_r12(tmp_path: Path) -> None:
    launcher = {"module": "sda_platform.runtime.run_launcher", "class": "WatchedRunLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": launcher}, temp_dir=str(tmp_path)) as instance:
        address = {GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": free_port(0)})}
        gone, unborn = (
            create_run_for_test(instance, status=status, tags=address)
            for status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING)
        )
        waiting = create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED)
        of_another_launcher = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
        assert set(daemon.end_abandoned_runs(instance)) == {gone.run_id, unborn.run_id}
        ended = [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))]
        assert set(ended) == {gone.run_id, unborn.run_id}
        assert not {waiting.run_id, of_another_launcher.run_id} & set(ended)

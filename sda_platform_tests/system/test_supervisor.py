"""The platform's processes for real, with a stand-in for the definitions: up, hurt, stopped, killed.

One platform is started for the module (a cold engine takes half a minute); the tests run in the order they stand in,
each leaving it up but the last two.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from sda_platform.runtime import guardian, liveness, platform_home
from sda_platform.runtime.class_archive import ArchiveFailed, require_usable
from sda_platform.spark.class_archive import archive_path
from sda_platform.spark.engine import python_path
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.java import find_java

pytestmark = [pytest.mark.timeout(420), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

DEFINITIONS = """
import time
import dagster as dg

@dg.asset
def endless() -> None:
    time.sleep(600)

@dg.sensor(target=[endless], minimum_interval_seconds=1, default_status=dg.DefaultSensorStatus.RUNNING)
def once(context: dg.SensorEvaluationContext) -> dg.RunRequest:
    return dg.RunRequest(run_key="once")

defs = dg.Definitions(assets=[endless], sensors=[once], executor=dg.in_process_executor)
"""
# Another program takes the webserver's port after it was chosen and before the webserver binds it.
RUNNER = """
import socket
import sys
from pathlib import Path
from sda_platform.runtime.processes import free_port
from sda_platform.runtime.supervisor import Platform

port, others = free_port(0), []

lines = []

def report(line):
    lines.append(line)
    if line == "engine: starting":
        others.append(socket.create_server(("127.0.0.1", port)))
    print(line, flush=True)

def admission(pause):
    while "engine: warm" not in lines:  # as a site that waits for the lease of another one
        pause()
    print("may work now", flush=True)

facts = {"retention": {"evidence_days": "400"}}
options = dict(webserver_port=port, engine_port=0, health_port=0, facts=facts)
with Platform(Path(sys.argv[1]), module="stand_in", driver_memory="1g", **options) as platform:
    platform.start(report, admission)
    platform.wait()
"""


class Supervised:
    """A supervisor in a process of its own, as a user's terminal would hold it."""

    def __init__(self, home: Path, code: Path) -> None:
        self.home, self._output = home, home.with_suffix(".out")
        path = os.pathsep.join([str(code), python_path()])
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(home)],
                env={**os.environ, "PYTHONPATH": path},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._expect("the platform is up", 180)
        self.mark = str(self.state["mark"])

    @property
    def state(self) -> dict[str, Any]:
        return platform_home.read_state(self.home)

    @property
    def output(self) -> str:
        return self._output.read_text()

    def _expect(self, text: str, within_s: float) -> None:
        eventually(lambda: text in self.output or self.process.poll() is not None, within_s)
        assert text in self.output, self.output

    def runs(self) -> list[dg.DagsterRun]:
        with dg.DagsterInstance.from_config(str(self.home / "dagster")) as instance:
            return list(instance.get_runs())

    def run_worker(self) -> int:
        """Process id of the run's worker."""
        with dg.DagsterInstance.from_config(str(self.home / "dagster")) as instance:
            entries = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
        events = [entry.get_dagster_event() for entry in entries if entry.is_dagster_event]
        told = [event.engine_event_data.metadata for event in events if event.is_engine_event]
        return next(int(str(facts["pid"].value)) for facts in told if "pid" in facts)


def eventually(condition: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp("supervised")
    (directory / "stand_in.py").write_text(DEFINITIONS)
    return directory


@pytest.fixture(scope="module")
def begun(workspace: Path) -> Iterator[list[Supervised]]:
    """Every platform that was started; the last may still be up."""
    assert workspace.exists()
    started: list[Supervised] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.wait()
        assert eventually(partial(_is_gone, each.mark), 10)


def _is_gone(mark: str) -> bool:
    return not guardian.marked(mark)


@pytest.fixture
def platform(begun: list[Supervised], workspace: Path) -> Supervised:
    """A platform that is up: the one of the test before, unless that ended it."""
    if not begun or begun[-1].process.poll() is not None:
        begun.append(Supervised(workspace / f"home-{len(begun)}", workspace))
    return begun[-1]


def test_everything_answers_once_it_is_up(platform: Supervised) -> None:
    addresses = platform.state["addresses"]
    with urllib.request.urlopen(f"{addresses['webserver']}/server_info", timeout=10) as answer:
        assert json.load(answer)["dagster_version"] == dg.__version__
    assert addresses["code_server"].startswith("unix:")
    assert liveness.code_server_answers(addresses["code_server"])(10.0)
    expected = {"engine", "code-server", "run-workers", "webserver", "daemon", "watchdog"}
    assert set(platform.state["processes"]) == expected
    assert platform.state["retention"] == {"evidence_days": "400"}
    metrics = liveness.page_answers(f"{addresses['watchdog']}/metrics")
    assert eventually(lambda: bool(metrics(10.0)), 60), "it starts last, and nothing waits for it"
    assert eventually(lambda: dg.DagsterRunStatus.STARTED in {run.status for run in platform.runs()}, 60)


def test_before_it_may_work_only_what_does_nothing_by_itself_runs(platform: Supervised) -> None:
    """So the takeover from a lost site need not wait for an engine."""
    waiting, _, working = platform.output.partition("may work now\n")
    begun = {line.partition(":")[0] for line in waiting.splitlines() if line.endswith(": starting")}
    assert begun == {"engine", "code-server"}
    assert "engine: warm" in waiting and "lake: " in working and "warming" not in working


def test_the_engine_maps_the_archive_of_its_classes(platform: Supervised) -> None:
    archive = archive_path(find_java())
    if not archive.is_file():
        pytest.skip("set-up could not make an archive of the engine's classes")
    assert str(archive) in Path(f"/proc/{platform.state['processes']['engine']['pid']}/maps").read_text()


def test_an_archive_that_is_cut_off_is_refused_before_an_engine_uses_it(tmp_path: Path) -> None:
    archive, cut_off = archive_path(find_java()), tmp_path / "cut-off.jsa"
    if not archive.is_file():
        pytest.skip("set-up could not make an archive of the engine's classes")
    require_usable(find_java(), archive)
    with archive.open("rb") as content:
        cut_off.write_bytes(content.read(10**6))
    with pytest.raises(ArchiveFailed, match="does not accept"):
        require_usable(find_java(), cut_off)


def test_a_webservers_port_that_is_taken_before_it_is_bound_is_replaced(platform: Supervised) -> None:
    assert "is taken by another program; using" in platform.output
    for name in ("code-server", "run-workers"):
        environment = Path(f"/proc/{platform.state['processes'][name]['pid']}/environ").read_bytes()
        assert f"SDA_UI_URL={platform.state['addresses']['webserver']}".encode() in environment.split(b"\0")


def test_a_second_platform_on_the_home_is_refused(platform: Supervised, workspace: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path()}
    second = subprocess.run(
        [sys.executable, "-c", RUNNER, str(platform.home)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert second.returncode != 0
    assert f"already runs in {platform.home}" in second.stderr
    assert platform.process.poll() is None


def test_a_killed_run_worker_frees_its_pool_within_a_minute(platform: Supervised) -> None:
    os.kill(platform.run_worker(), signal.SIGKILL)
    assert eventually(lambda: platform.runs()[-1].status == dg.DagsterRunStatus.FAILURE, 60)


def test_a_dead_engine_is_restarted_at_its_address(platform: Supervised) -> None:
    before = platform.state
    os.kill(before["processes"]["engine"]["pid"], signal.SIGKILL)
    assert eventually(lambda: platform.state["processes"]["engine"]["restarts"] == 1, 30)
    assert platform.state["processes"]["engine"]["pid"] != before["processes"]["engine"]["pid"]
    assert platform.state["addresses"] == before["addresses"]
    assert "engine ended (by SIGKILL)" in platform.output
    assert eventually(lambda: platform.output.count("engine: warming the pools") == 2, 90)


def test_killing_the_supervisor_leaves_no_process_and_the_next_start_repairs_its_run(
    platform: Supervised, workspace: Path
) -> None:
    assert eventually(lambda: platform.runs()[0].status == dg.DagsterRunStatus.STARTED, 60)  # the retry
    orphan = platform.runs()[0].run_id
    platform.process.kill()
    platform.process.wait()
    assert eventually(lambda: not guardian.marked(platform.mark), 5)
    assert platform_home.running_platform(platform.home) is None

    successor = Supervised(platform.home, workspace)
    try:
        status = {run.run_id: run.status for run in successor.runs()}
        assert status[orphan] in {dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE}
        assert eventually(
            lambda: {run.run_id: run.status for run in successor.runs()}[orphan] == dg.DagsterRunStatus.FAILURE, 60
        )
        began = time.monotonic()
        successor.process.terminate()
        assert successor.process.wait(timeout=30) == 0, successor.output
        assert time.monotonic() - began < 12
        assert guardian.marked(successor.mark) == set()
        assert platform_home.read_state(platform.home) == {}
        assert all(run.is_finished for run in successor.runs() if run.status != dg.DagsterRunStatus.QUEUED)
    finally:
        successor.process.kill()

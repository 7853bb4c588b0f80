"""A process of the platform that is stopped (SIGSTOP) lives, listens and never answers: it is ended and replaced."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sda_platform.runtime import guardian, platform_home
from sda_platform.runtime.liveness import HEARTBEAT_S, Question
from sda_platform.runtime.processes import Service
from sda_platform.runtime.services import Addresses, watched
from sda_platform.spark.engine import python_path
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.support.running_platform import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

HUNG_AFTER_S = 15.0
# To notice it (a question may have just been answered), and to start it again on a busy machine.
REPLACED_WITHIN_S = 2 * HUNG_AFTER_S + 120.0

DEFINITIONS = "import dagster as dg\ndefs = dg.Definitions()\n"
RUNNER = """
import sys
from pathlib import Path
from sda_platform.runtime.supervisor import Platform

options = dict(module="stand_in", driver_memory="1g", webserver_port=0, engine_port=0, hung_after_s=float(sys.argv[2]))
with Platform(Path(sys.argv[1]), **options) as platform:
    platform.start(lambda line: print(line, flush=True))
    platform.wait()
"""


class Supervised:
    """A platform with empty definitions, supervised by a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.home, self._output = directory / "home", directory / "output"
        self._questions: dict[str, Question] = {}
        (directory / "stand_in.py").write_text(DEFINITIONS)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), python_path()])}
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(self.home), str(HUNG_AFTER_S)],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        eventually(lambda: "the platform is up" in self.output or self.process.poll() is not None, 300)
        assert "the platform is up" in self.output, self.output

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def state(self) -> dict[str, Any]:
        return platform_home.read_state(self.home)

    def pid(self, name: str) -> int:
        return int(self.state["processes"][name]["pid"])

    @property
    def engine(self) -> str:
        return str(self.state["addresses"]["engine"])

    def works(self, name: str) -> bool:
        """Whether the process answers what the supervisor asks it; the daemon, whether its heartbeat has changed."""
        if name not in self._questions:
            service = Service(name, [], {}, self.home, self._output)
            (asked,) = watched(self.home, {name: service}, Addresses(**self.state["addresses"]), HUNG_AFTER_S)
            self._questions[name] = asked.question
        return bool(self._questions[name](10.0))


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervised]:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    supervised = Supervised(tmp_path_factory.mktemp("hung"))
    mark = str(supervised.state["mark"])
    yield supervised
    supervised.process.kill()
    supervised.process.wait()
    assert eventually(lambda: not guardian.marked(mark), 20)


@pytest.mark.parametrize("name", ["engine", "code-server", "run-workers", "webserver", "daemon"])
def test_a_stopped_process_is_replaced_within_its_bound_D8(platform: Supervised, name: str) -> None:
    assert eventually(lambda: platform.works(name), 60), "it works before"
    stopped = platform.pid(name)
    os.kill(stopped, signal.SIGSTOP)
    bound_s = REPLACED_WITHIN_S + (HEARTBEAT_S if name == "daemon" else 0.0)
    assert eventually(lambda: platform.pid(name) != stopped and platform.works(name), bound_s), platform.output
    assert f"{name} has not answered for" in platform.output

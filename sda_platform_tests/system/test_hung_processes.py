"""A process of the platform that is stopped (SIGSTOP) lives, listens and never answers: it is ended and replaced.

What no other process would report, the watchdog reports: collectors and a daemon that stopped, a pool whose run hangs,
a full disk; and their recovery.
"""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sda_platform.runtime import guardian, platform_home
from sda_platform.runtime.liveness import HEARTBEAT_S, Question
from sda_platform.runtime.processes import Service
from sda_platform.runtime.services import Addresses, watched
from sda_platform.spark.engine import python_path
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform.spark.session import POOL_TAG
from sda_platform_tests.campaign import small_disk
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook
from sda_platform_tests.support.running_platform import eventually
from sda_platform_tests.support.sampling import sampled

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

HUNG_AFTER_S = 15.0
# To notice it (a question may have just been answered), and to start it again on a busy machine.
REPLACED_WITHIN_S = 2 * HUNG_AFTER_S + 120.0

# The webserver is stopped alone, because the supervisor reads the daemon's heartbeat from it.
MOST_PROCESSES = ("engine", "code-server", "run-workers", "daemon", "collector")

# A run that hangs for as long as the file is there that started it.
DEFINITIONS = f"""
import os, time
from pathlib import Path
import dagster as dg

HANGS = Path(os.environ["HANGS"])

@dg.op
def hang():
    while HANGS.exists():
        time.sleep(0.2)

@dg.job(tags={{"{POOL_TAG}": "alerts"}}, executor_def=dg.in_process_executor)
def hanging():
    hang()

@dg.sensor(job=hanging, minimum_interval_seconds=2, default_status=dg.DefaultSensorStatus.RUNNING)
def hangs():
    return dg.RunRequest(run_key="once") if HANGS.exists() else dg.SkipReason("nothing hangs")

defs = dg.Definitions(jobs=[hanging], sensors=[hangs])
"""
COLLECT = '[sources.x-band]\nkind = "radar"\nbind = "127.0.0.1:0"\n'
# The heartbeat's limit is below the time after which the supervisor ends the daemon, so that both are seen.
VITALS = {
    "SDA_VITALS_INTERVAL_S": "2", "SDA_HEARTBEAT_MAX_S": "36", "SDA_DISK_MIN_FREE": "0.001", "SDA_RUN_MAX_S": "5"
}  # fmt: skip
# The watchdog looks every two seconds; a run takes a while to start on a busy machine.
RED_WITHIN_S, RUN_RED_WITHIN_S = 30.0, 120.0
VITAL_OF = {"daemon": "daemon_beats", "collector": "collectors_answer"}
RUNNER = """
import sys
from pathlib import Path
from sda_platform.runtime.supervisor import Platform

options = dict(module="stand_in", driver_memory="1g", webserver_port=0, engine_port=0, health_port=0)
options |= dict(hung_after_s=float(sys.argv[2]), collect=Path(sys.argv[3]))
with Platform(Path(sys.argv[1]), **options) as platform:
    platform.start(lambda line: print(line, flush=True))
    platform.wait()
"""


class Supervised:
    """A platform with empty definitions, supervised by a process of its own."""

    def __init__(self, directory: Path, webhook: FailureWebhook) -> None:
        self.webhook = webhook
        self.home, self._output = directory / "home", directory / "output"
        self._questions: dict[str, Question] = {}
        self.landing, self.hangs = directory / "landing", directory / "hangs"
        self.landing.mkdir()
        (directory / "stand_in.py").write_text(DEFINITIONS)
        (directory / "collect.toml").write_text(COLLECT)
        path = {"PYTHONPATH": os.pathsep.join([str(directory), python_path()])}
        own = {"SDA_FAILURE_WEBHOOK": webhook.url, "SDA_LANDING": str(self.landing), "HANGS": str(self.hangs)}
        environment = {**os.environ, **path, **VITALS, **own}
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(self.home), str(HUNG_AFTER_S), str(directory / "collect.toml")],
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

    def is_replaced(self, name: str, pid: int) -> bool:
        """Whether another process than ``pid`` works under the name."""
        return self.pid(name) != pid and self.works(name)

    def health(self) -> int:
        """The status that `/health` of the watchdog answers."""
        try:
            with urllib.request.urlopen(f"{self.state['addresses']['watchdog']}/health", timeout=5.0) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code

    def notices(self, vital: str) -> list[str]:
        """The states of ``vital`` that the webhook was reported, in their order."""
        return [report["state"] for _, report in self.webhook.received if report["vital"] == vital]

    def has_recovered(self, vital: str) -> bool:
        """Whether a fault of ``vital`` was reported, and that it is over."""
        return len(self.notices(vital)) == 2


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervised]:
    try:
        jar_paths()
    except JarsMissing as missing:
        pytest.skip(str(missing))
    with failure_webhook() as webhook:
        supervised = Supervised(tmp_path_factory.mktemp("hung"), webhook)
        mark = str(supervised.state["mark"])
        yield supervised
        supervised.process.kill()
        supervised.process.wait()
    assert eventually(lambda: not guardian.marked(mark), 20)


@pytest.mark.parametrize("names", sampled([MOST_PROCESSES, ("webserver",)], MOST_PROCESSES))
def test_stopped_processes_are_replaced_within_their_bounds_and_reported_D8(
    platform: Supervised, names: tuple[str, ...]
) -> None:
    for name in names:
        assert eventually(partial(platform.works, name), 60), "it works before"
    stopped = {name: platform.pid(name) for name in names}
    for pid in stopped.values():
        os.kill(pid, signal.SIGSTOP)
    for name, pid in stopped.items():
        bound_s = REPLACED_WITHIN_S + (HEARTBEAT_S if name == "daemon" else 0.0)
        assert eventually(partial(platform.is_replaced, name, pid), bound_s), platform.output
        assert f"{name} has not answered for" in platform.output
        if vital := VITAL_OF.get(name):
            assert eventually(partial(platform.has_recovered, vital), bound_s), platform.webhook.received
            assert platform.notices(vital) == ["begun", "over"]
    if VITAL_OF.keys() & set(names):
        assert eventually(lambda: platform.health() == 200, 60)


def test_a_pool_whose_run_hangs_is_red_within_its_bound_and_recovers__DP3_G3(platform: Supervised) -> None:
    platform.hangs.touch()
    try:
        assert eventually(lambda: platform.notices("pools_move") == ["begun"], RUN_RED_WITHIN_S), (
            platform.webhook.received
        )
        assert platform.health() == 503
    finally:
        platform.hangs.unlink()
    assert eventually(lambda: platform.notices("pools_move") == ["begun", "over"], RED_WITHIN_S)
    (red, _) = [report for _, report in platform.webhook.received if report["vital"] == "pools_move"]
    assert red["side"] == "platform" and "pool alerts" in red["text"] and "of hanging has been started" in red["text"]


@pytest.mark.skipif(not small_disk.is_allowed(), reason="this user may not mount a disk")
def test_a_full_disk_is_red_within_its_bound_and_recovers__DP3_G3(platform: Supervised) -> None:
    with small_disk.mounted(platform.landing, 256):
        filler = platform.landing / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        assert eventually(lambda: platform.notices("disk_has_space") == ["begun"], RED_WITHIN_S)
        assert platform.health() == 503
        filler.unlink()
        assert eventually(lambda: platform.notices("disk_has_space") == ["begun", "over"], RED_WITHIN_S)
    red = next(report for _, report in platform.webhook.received if report["vital"] == "disk_has_space")
    assert (red["side"], str(platform.landing) in red["text"]) == ("machine", True)

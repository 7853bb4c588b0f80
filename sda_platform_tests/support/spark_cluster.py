"""A standalone Spark cluster on loopback: a master, workers of one core, and a Spark Connect server upon them.

The executors import the platform from an unpacked wheel: they have only what the documentation asks for.
"""

import os
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.channel import TOKEN_VARIABLE, kept_token
from sda_platform.spark.connect_server import SECRET_VARIABLE, daemon_options
from sda_platform.spark.jars import spark_jars_directory
from sda_platform.spark.java import find_java
from sda_platform_tests.support.connect_server import is_working
from sda_platform_tests.support.event_log import tasks_of
from sda_platform_tests.support.running_platform import eventually

_START_S = 150.0


class SparkCluster:
    """Processes by name: ``master``, ``worker-0`` …, ``connect``; each can be killed and started again."""

    def __init__(self, directory: Path, wheel: Path, workers: int = 2) -> None:
        self.directory, self._wheel = directory, wheel
        self._master_port, self._connect_port = free_port(0), free_port(0)
        self._names = ["master", *(f"worker-{number}" for number in range(workers)), "connect"]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.secret = secrets.token_hex(16)

    @property
    def remote(self) -> str:
        """The address of the Connect server."""
        return engine.remote_address(self._connect_port, self.directory / "token")

    @property
    def events(self) -> Path:
        """The directory of the event log."""
        return self.directory / "events"

    @property
    def _url(self) -> str:
        return f"spark://{engine.HOST}:{self._master_port}"

    def start(self, name: str, secret: str | None = None) -> None:
        """Start a process, with another ``secret`` than the cluster's on request; a server answers on return."""
        spark_class = [str(spark_jars_directory().parent / "bin" / "spark-class")]
        place = self.directory / name
        place.mkdir(parents=True, exist_ok=True)
        listening = ["--host", engine.HOST, "--webui-port", str(free_port(0))]
        if name == "master":
            command = [*spark_class, "org.apache.spark.deploy.master.Master", *listening]
            self._spawn(name, [*command, "--port", str(self._master_port)])
            self._await(self._master_port)
        elif name == "connect":
            self.events.mkdir(exist_ok=True)
            facts = {
                "spark.executor.memory": "512m",
                "spark.executor.cores": "1",
                "spark.executorEnv.PYTHONPATH": str(self._wheel),
                "spark.sql.shuffle.partitions": str(2 * (len(self._names) - 2)),
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": self.events.as_uri(),
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
            }
            arguments = [f"--conf={key}={value}" for key, value in facts.items()]
            module = [sys.executable, "-m", "sda_platform.spark.connect_server", self._url, str(place)]
            self._spawn(name, [*module, f"--port={self._connect_port}", "--driver-memory=768m", *arguments])
            self._await(self._connect_port)
            if not eventually(lambda: is_working(self.remote), _START_S):
                raise TimeoutError(f"the cluster has no working engine; see {self.directory}")
        else:
            size = ["--cores", "1", "--memory", "600m", "--work-dir", str(place)]
            self._spawn(
                name, [*spark_class, "org.apache.spark.deploy.worker.Worker", *listening, *size, self._url], secret
            )

    def kill(self, name: str) -> None:
        """Kill a process of the cluster as a power loss of its machine would, its executors with it."""
        victims = [*(self.executors(name) if name.startswith("worker") else ()), self._processes[name].pid]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self._processes[name].wait()

    def pid(self, name: str) -> int:
        """The process id of a process of the cluster."""
        return self._processes[name].pid

    def executors(self, name: str) -> list[int]:
        """The process ids of the executors of a worker."""
        parent = self._processes[name].pid
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[1]) == parent and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def tasks_by_executor(self) -> Mapping[str, int]:
        """How many tasks each executor has ended, by the event log."""
        return Counter(task.executor for task in tasks_of(self.events))

    def log(self, name: str) -> str:
        """What a process has written."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def _spawn(self, name: str, command: list[str], secret: str | None = None) -> None:
        options = (
            daemon_options(),
            "-Dspark.deploy.recoveryMode=FILESYSTEM",
            f"-Dspark.deploy.recoveryDirectory={self.directory / 'recovery'}",
        )
        environment = {
            **os.environ,
            TOKEN_VARIABLE: kept_token(self.directory / "token"),
            SECRET_VARIABLE: secret or self.secret,
            "SPARK_HOME": str(spark_jars_directory().parent),
            "SPARK_LOCAL_IP": engine.HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join(options),
            "JAVA_HOME": str(find_java().executable.resolve().parents[1]),
            "SPARK_LOCAL_DIRS": str(self.directory / name / "scratch"),
            "PYTHONPATH": engine.python_path(),
        }
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def _await(self, port: int) -> None:
        if not eventually(lambda: engine.is_listening(port), _START_S):
            raise TimeoutError(f"the cluster did not start; see {self.directory}")

    @contextmanager
    def running(self) -> Iterator["SparkCluster"]:
        """Start every process; all are ended on the way out."""
        with ExitStack() as stack:
            stack.callback(self._end)
            for name in self._names:
                self.start(name)
            yield self

    def _end(self) -> None:
        for name, process in reversed(self._processes.items()):
            if process.poll() is None:
                self.kill(name)

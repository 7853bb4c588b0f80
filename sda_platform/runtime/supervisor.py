"""`sda up`: starts the platform's processes, keeps them running, and leaves none behind.

    collector, where configured
    lake verified ────────────────┐
    code server (one, shared) ────┼─ webserver ── daemon at work
    worker host ──────────────────┤          lookup endpoint of the catalogue, where wanted
    engine (Spark Connect server) ┴─ pools warmed ── watchdog

One thread starts and watches them; a dead one is started again with growing pauses, and so is one that lives
but does not answer (`liveness`). Their addresses and ids are kept in ``<home>/platform.json``, their output in
``<home>/logs``. Knows the commands of Dagster and Spark (`services`) but imports neither; what a run, a table or an
asset is, is not known here.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Self

from sda_platform.runtime import guardian, platform_home, services
from sda_platform.runtime.liveness import Liveness
from sda_platform.runtime.one_off import OneOff
from sda_platform.runtime.processes import Service, describe_exit, free_port, stop_all
from sda_platform.runtime.services import Addresses
from sda_platform.spark import engine
from sda_platform.spark.jars import JarsMissing
from sda_platform.spark.java import JavaMissing

# A bound for a busy machine: idle ones take some ten seconds.
_WARM_S = 600.0
_DAGSTER_GRACE_S = 5.0
_ENGINE_GRACE_S = 2.5
_TICK_S = 0.25
_PORTS_TRIED = 3


class PlatformError(RuntimeError):
    """The platform could not start or go on; the text is for the person who asked."""


class Platform:
    """The platform of one home directory; a context manager that stops it on the way out.

    ``environment``: what every process inherits (default: this one's). ``spark_remote``: empty = run the
    local engine; otherwise that engine is used and none is started. ``driver_memory``: the engine's heap in
    JVM notation. ``hung_after_s``: seconds without an answer after which a process is ended and started again.
    ``collect``: configuration of the collectors; None runs none. ``with_catalogue``: run the lookup endpoint.
    """

    def __init__(
        self,
        home: Path,
        environment: Mapping[str, str] | None = None,
        *,
        webserver_host: str = "127.0.0.1",
        webserver_port: int = 3000,
        engine_port: int = 15002,
        health_port: int = 3001,
        driver_memory: str = "3g",
        spark_remote: str = "",
        hung_after_s: float = 60.0,
        collect: Path | None = None,
        with_catalogue: bool = False,
        module: str = "sda_platform.definitions",
    ) -> None:
        self.home = home.absolute()
        self._inherited = dict(os.environ if environment is None else environment)
        self._webserver_host, self._webserver_port, self._engine_port = webserver_host, webserver_port, engine_port
        self._driver_memory, self._spark_remote, self._module = driver_memory, spark_remote, module
        self._collect, self._with_catalogue = collect, with_catalogue
        self._health_port = health_port
        self._mark = uuid.uuid4().hex
        self._report: Callable[[str], None] = lambda _line: None
        self._services: dict[str, Service] = {}
        self._guardian: subprocess.Popen[bytes] | None = None
        self._warming: OneOff | None = None
        self._verifying: OneOff | None = None
        self._liveness: list[Liveness] = []
        self._hung_after_s = hung_after_s
        self._is_cold = True
        self._addresses: Addresses | None = None
        self._failure: PlatformError | None = None
        self._locks = contextlib.ExitStack()
        self._thread: threading.Thread | None = None
        self._stop_wanted, self._started, self._ended = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )

    @property
    def addresses(self) -> Addresses:
        """Where it answers; PlatformError before `start` has got that far."""
        if self._addresses is None:
            raise PlatformError("the platform has not been started")
        return self._addresses

    @property
    def is_running(self) -> bool:
        """Whether it was started and nobody, nor a failure, has asked it to stop."""
        return self._started.is_set() and not self._stop_wanted.is_set() and not self._ended.is_set()

    def start(self, progress: Callable[[str], None] | None = None) -> Addresses:
        """Start everything; returns when the UI answers, the engine is warm and the daemon runs.

        ``progress`` is called with lines for people, then and later, from the watching thread. Called on the
        main thread it also takes over SIGINT, SIGTERM and SIGHUP: the first of them raises KeyboardInterrupt
        here or in `wait`, later ones are ignored while the platform stops. Raises
        platform_home.AlreadyRunning, lake_lock.LakeInUse, or PlatformError with the reason.
        """
        self._report = progress or self._report
        self._locks = platform_home.take_locks(self.home, self._inherited.get("SDA_LAKE") or str(self.home / "lake"))
        self._listen_for_signals()
        # The kernel ends a leashed process with the *thread* that started it, so one thread starts and
        # watches all.
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()
        while not self._started.wait(_TICK_S):
            if self._ended.is_set():
                raise self._failure or PlatformError("the platform was stopped while it started")
        return self.addresses

    def wait(self) -> None:
        """Return on a signal or `stop`. Raises PlatformError if the platform gave up."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._ended.wait(_TICK_S) and not self._stop_wanted.is_set():
                continue
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """End every process, run workers too, within about ten seconds. Twice is fine, from any thread."""
        self._stop_wanted.set()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._bring_up()
            self._started.set()
            while not self._stop_wanted.wait(_TICK_S):
                self._watch()
        except PlatformError as failure:
            self._failure = failure
        except Exception as error:  # a fault of ours: the caller must hear of it, and the processes must end
            self._failure = PlatformError(f"the supervisor failed: {type(error).__name__}: {error}")
        finally:
            self._tear_down()
            self._ended.set()

    def _bring_up(self) -> None:
        self._sweep_left_overs()
        code_port, webserver_port = free_port(0), free_port(self._webserver_port)
        with_postgres = bool(self._inherited.get(platform_home.POSTGRES_VARIABLE))
        workspace = platform_home.prepare(self.home, code_port, with_postgres=with_postgres)
        self._start_guardian()
        if self._collect is not None:  # before anything else: what sensors send now is not sent again
            self._add(services.collector_service(self.home, self._environment(), self._collect))
        self._begin_verification()
        remote = self._spark_remote or self._start_engine(free_port(self._engine_port))
        self._addresses = Addresses(f"http://127.0.0.1:{webserver_port}", f"127.0.0.1:{code_port}", remote)
        self._add(services.code_server_service(self.home, self._environment(), code_port, self._module))
        self._add(services.run_workers_service(self.home, self._environment()))
        if "engine" in self._services:
            self._await("engine", services.ENGINE_READY_S)
            self._begin_warming()
        self._await("code-server", services.DAGSTER_READY_S)
        if self._collect is not None:
            self._await("collector", services.DAGSTER_READY_S)
        self._await_verified()
        self._start_webserver(workspace, webserver_port)
        self._await("run-workers", services.DAGSTER_READY_S)
        # Not only once the engine is warm: what a platform that was killed left undone warms it as well.
        self._add(services.daemon_service(self.home, self._environment(), workspace))
        if self._with_catalogue:
            self._add(services.catalogue_service(self.home, self._environment()))
            self._await("catalogue-server", services.DAGSTER_READY_S)
        self._await_warm()
        self._start_watchdog()
        self._watch_answers()
        self._report(f"the platform is up: {self._addresses.webserver}")

    def _start_webserver(self, workspace: Path, port: int) -> None:
        """Start the webserver. Where another program took ``port`` since it was chosen, it gets another one."""
        for _ in range(_PORTS_TRIED):
            if (free := free_port(port)) != port:
                self._move_webserver(port, free)
                port = free
            host, url = self._webserver_host, self.addresses.webserver
            self._add(services.webserver_service(self.home, self._environment(), workspace, host, url, port))
            try:
                return self._await("webserver", services.DAGSTER_READY_S)
            except PlatformError:
                if free_port(port) == port:
                    raise  # for another reason
        raise PlatformError(
            f"other programs took {_PORTS_TRIED} ports in succession that were chosen for the webserver"
        )

    def _start_watchdog(self) -> None:
        """Start what evaluates the vitals; only now, because a platform that starts is not red."""
        port = free_port(self._health_port)
        url = f"http://127.0.0.1:{port}"
        self._addresses = replace(self.addresses, watchdog=url)
        self._add(services.watchdog_service(self.home, self._environment(), url, port))
        self._await("watchdog", services.DAGSTER_READY_S)

    def _move_webserver(self, taken: int, port: int) -> None:
        """Give the webserver another ``port``. What knows the old one, for links, is started again."""
        self._report(f"webserver: port {taken} was taken meanwhile; using {port}")
        self._addresses = replace(self.addresses, webserver=f"http://127.0.0.1:{port}")
        informed = [self._services[name] for name in ("code-server", "run-workers")]
        stop_all(informed, signal.SIGINT, _DAGSTER_GRACE_S)
        for service in informed:
            service.wait()
            service.environment = self._environment()
            self._add(service)
        self._await("code-server", services.DAGSTER_READY_S)

    def _sweep_left_overs(self) -> None:
        mark = platform_home.read_state(self.home).get("mark")
        if mark and (killed := guardian.sweep(mark)):
            self._report(f"ended {killed} processes that an earlier platform had left")

    def _start_guardian(self) -> None:
        # It carries no mark and is not leashed: it must outlive this process for a moment.
        command = [sys.executable, "-I", "-S", guardian.__file__, "guard", self._mark]
        quiet = subprocess.DEVNULL
        self._guardian = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def _start_engine(self, port: int) -> str:
        try:
            self._add(services.engine_service(self.home, self._environment(), port, self._driver_memory))
        except (JavaMissing, JarsMissing) as problem:
            raise PlatformError(str(problem)) from None
        return engine.remote_address(port)

    def _add(self, service: Service) -> None:
        self._report(f"{service.name}: starting")
        self._services[service.name] = service
        service.start()
        self._write_state()

    def _environment(self) -> dict[str, str]:
        added = {
            guardian.MARK: self._mark,
            "DAGSTER_HOME": str(platform_home.dagster_home(self.home)),
            "SDA_HOME": str(self.home),
            "PYTHONPATH": engine.python_path(),
            "PYTHONUNBUFFERED": "1",
        }
        if self._addresses is not None:
            added["SDA_SPARK_REMOTE"] = self._addresses.engine
            added["SDA_UI_URL"] = self._inherited.get("SDA_UI_URL") or self._addresses.webserver
        return {**self._inherited, **added}

    def _await(self, name: str, timeout_s: float) -> None:
        service, began = self._services[name], time.monotonic()
        while not service.is_ready():
            if not service.is_alive:
                raise PlatformError(
                    f"{name} did not start ({describe_exit(service.exit_code)}); the end of {service.log}:\n"
                    + service.last_words()
                )
            if time.monotonic() - began > timeout_s:
                raise PlatformError(f"{name} did not answer within {timeout_s:.0f} s; see {service.log}")
            self._pause()
        self._report(f"{name}: ready")

    def _pause(self) -> None:
        if self._stop_wanted.wait(_TICK_S):
            raise PlatformError("the platform was stopped while it started")

    def _run_beside(self, log: str, *arguments: str) -> OneOff:
        return OneOff([*arguments], self._environment(), self.home, self.home / "logs" / log).start()

    def _begin_verification(self) -> None:
        self._verifying = self._run_beside("verification.log", "sda_platform.runtime.verification")

    def _await_verified(self) -> None:
        """Wait for the verification of the lake, which also repairs it. Nothing may be built on what it refuses."""
        verifying = self._verifying
        assert verifying is not None
        while verifying.is_running:
            self._pause()
        if not verifying.succeeded:
            raise PlatformError(f"the lake is not sound:\n{verifying.output()}")
        for line in verifying.output().splitlines():
            self._report(f"lake: {line}")

    def _begin_warming(self) -> None:
        self._report("engine: warming the pools")
        self._is_cold = False
        arguments = (self.addresses.engine, str(self.home / "engine"))
        self._warming = self._run_beside("warm-up.log", "sda_platform.runtime.warm_up", *arguments)

    def _await_warm(self) -> None:
        """Wait for the warm-up. Its failure stops a start, because no run could succeed either."""
        if self._warming is None:
            return
        deadline = time.monotonic() + _WARM_S
        while self._warming.is_running:
            if time.monotonic() > deadline:
                self._warming.kill()
            self._pause()
        if not self._warming.succeeded:
            raise PlatformError(f"the engine started but does not work; see {self._warming.log}")
        self._report("engine: warm")

    def _watch_answers(self) -> None:
        """Ask every process from now on, each from a thread of its own, whether it works."""
        self._liveness = services.watched(self.home, self._services, self.addresses, self._hung_after_s)
        for each in self._liveness:
            asking = threading.Thread(target=each.keep_asking, args=(self._stop_wanted,), daemon=True)
            asking.name = f"ask {each.service.name}"
            asking.start()

    def _watch(self) -> None:
        for each in self._liveness:
            if each.is_hung:
                self._report(f"{each.service.name} has not answered for {each.silent_s:.0f} s; ending it")
                each.service.signal(signal.SIGKILL)
                each.begin_again()
        lines = [line for service in self._services.values() if (line := service.revive(time.monotonic()))]
        for line in lines:
            self._report(line)
        if lines:
            self._write_state()
        local_engine = self._services.get("engine")
        if local_engine is None:
            return
        if not local_engine.is_alive:
            self._is_cold = True
        elif self._is_cold and local_engine.is_ready():
            self._begin_warming()

    def _tear_down(self) -> None:
        self._report("stopping")
        dagster = [service for name, service in self._services.items() if name != "engine"]
        # SIGINT reaches the run workers in the worker host's group too: they record their runs as failed.
        stop_all(dagster, signal.SIGINT, _DAGSTER_GRACE_S)
        stop_all(
            [service for service in self._services.values() if service.is_alive],
            signal.SIGTERM,
            _ENGINE_GRACE_S,
        )
        if self._guardian is not None:
            self._guardian.communicate()  # closes its input: it sweeps what is left, then ends
        for process in (self._warming, self._verifying, *self._services.values()):
            if process is not None:
                process.wait()
        platform_home.clear_state(self.home)
        self._locks.close()

    def _listen_for_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            if not self._stop_wanted.is_set():
                self._stop_wanted.set()
                raise KeyboardInterrupt

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, on_signal)

    def _write_state(self) -> None:
        processes = {
            name: {"pid": service.pid, "restarts": service.restarts, "log": str(service.log)}
            for name, service in self._services.items()
        }
        addresses = asdict(self._addresses) if self._addresses else {}
        state = {"schema_version": 1, "pid": os.getpid(), "mark": self._mark}
        platform_home.write_state(self.home, {**state, "addresses": addresses, "processes": processes})

"""`sda up`: starts the platform's processes, keeps them running, and leaves none behind.

    collector, where configured
    lake verified ────────────────┐
    code server (one, shared) ────┼─ webserver ── daemon at work
    worker host ──────────────────┤          lookup endpoint of the catalogue, where configured
    engine (Spark Connect server) ┴─ pools warmed ── watchdog

One thread starts and watches the processes. It restarts one that ended, or one that does not answer (`liveness`), with
growing pauses. Addresses and process ids are in ``<home>/platform.json``, output in ``<home>/logs``. The module starts
Dagster and Spark through their commands (`services`) and imports neither of them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Self

from sda_platform.runtime import guardian, platform_home, services, start_tasks
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.liveness import Liveness
from sda_platform.runtime.one_off import OneOff
from sda_platform.runtime.processes import free_port
from sda_platform.runtime.service_group import ServiceGroup
from sda_platform.runtime.services import Addresses
from sda_platform.spark import engine
from sda_platform.spark.channel import kept_token
from sda_platform.spark.jars import JarsMissing
from sda_platform.spark.java import JavaMissing

_TICK_S = 0.25
# Each look of a standby is a request to etcd.
_STAND_BY_S = 1.0
_PORTS_TRIED = 3
Admission = Callable[[Callable[[], object]], object]
"""Returns when a platform may work on its lake; it calls what it is given between two looks."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Platform:
    """The platform of one home directory; a context manager that stops it at exit.

    ``environment``: environment of every process (default: this process's). ``spark_remote``: address of an engine;
    empty starts a local one. ``driver_memory``: heap of the local engine, in JVM notation. ``hung_after_s``: seconds
    without an answer after which a process is killed and restarted. ``collect``: configuration file of the collectors,
    which run once it is there; None runs none. ``with_catalogue``: run the lookup endpoint. ``facts``: more to publish.
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
        facts: Mapping[str, object] | None = None,
        module: str = "sda_platform.definitions",
    ) -> None:
        self.home = home.absolute()
        self._inherited = dict(os.environ if environment is None else environment)
        self._webserver_host, self._webserver_port, self._engine_port = webserver_host, webserver_port, engine_port
        self._driver_memory, self._spark_remote, self._module = driver_memory, spark_remote, module
        self._collect, self._with_catalogue = collect, with_catalogue
        self._health_port, self._mark = health_port, uuid.uuid4().hex
        self._report: Callable[[str], None] = lambda _line: None
        self._services = ServiceGroup(self.home, self._mark, facts or {}, lambda line: self._report(line), self._pause)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._warming = start_tasks.Warming(self.home, lambda line: self._report(line))
        self._verifying: OneOff | None = None
        self._liveness, self._hung_after_s = list[Liveness](), hung_after_s
        self._admission: Admission = lambda _pause: None
        self._failure: PlatformError | None = None
        self._locks = contextlib.ExitStack()
        self._thread: threading.Thread | None = None
        self._stop_requested, self._started, self._ended = threading.Event(), threading.Event(), threading.Event()

    @property
    def addresses(self) -> Addresses:
        """The addresses of the services. Raises PlatformError before `start` has assigned them."""
        if self._services.addresses is None:
            raise PlatformError("the platform has not been started")
        return self._services.addresses

    @property
    def is_running(self) -> bool:
        """Whether it was started and neither a request nor a failure has stopped it."""
        return self._started.is_set() and not self._stop_requested.is_set() and not self._ended.is_set()

    def start(self, progress: Callable[[str], None] | None = None, admission: Admission | None = None) -> Addresses:
        """Start all processes; return when the UI answers, the engine is warm and the daemon runs.

        Until ``admission`` returns, only the engine and the code server run, which do nothing by themselves.

        The watching thread passes lines for the user to ``progress``, also after the start. On the main thread, `start`
        also handles SIGINT, SIGTERM and SIGHUP: the first signal raises KeyboardInterrupt here or in `wait`, later ones
        are ignored while the platform stops. Raises platform_home.AlreadyRunning, lake_lock.LakeInUse, or PlatformError
        with the reason.
        """
        self._report, self._admission = progress or self._report, admission or self._admission
        places = [self._inherited.get(f"SDA_{name.upper()}") or str(self.home / name) for name in ("lake", "landing")]
        self._locks = platform_home.take_locks(self.home, *places)
        self._listen_for_signals()
        # The kernel kills a leashed process when the *thread* that started it ends. So one thread starts all.
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()
        while not self._started.wait(_TICK_S):
            if self._ended.is_set():
                raise self._failure or PlatformError("the platform was stopped while it started")
        return self.addresses

    def wait(self, is_over: threading.Event | None = None) -> None:
        """Return after a signal or `stop`, or once ``is_over``. Raises PlatformError if the platform failed."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._ended.wait(_TICK_S) and not self._stop_requested.is_set():
                if is_over is not None and is_over.is_set():
                    return
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """End every process, run workers included, within about ten seconds. Any thread may call it, also twice."""
        self._stop_requested.set()
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
            while not self._stop_requested.wait(_TICK_S):
                self._watch()
        except PlatformError as failure:
            self._failure = failure
        except Exception as error:  # a programming error: report it to the caller and end the processes
            self._failure = PlatformError(f"the supervisor failed: {type(error).__name__}: {error}")
        finally:
            try:
                self._tear_down()
            finally:
                self._ended.set()

    def _bring_up(self) -> None:
        self._sweep_left_overs()
        webserver_port = free_port(self._webserver_port)
        code_server = platform_home.code_server_socket(self.home)
        workspace = platform_home.prepare(self.home, code_server, self._inherited)
        self._start_guardian()
        engine_port = free_port(self._engine_port)
        remote = self._spark_remote or engine.remote_address(engine_port, self.home / services.ENGINE_TOKEN)
        self._services.addresses = Addresses(f"http://127.0.0.1:{webserver_port}", code_server, remote)
        if not self._spark_remote:
            self._start_engine(engine_port)
        self._services.add(services.code_server_service(self.home, self._environment(), code_server, self._module))
        self._admission(self._stand_by)
        self._services.begin_collecting(self._environment(), self._collect)  # sensors do not repeat what they send
        self._verifying = start_tasks.begin_verification(self.home, self._environment())
        self._services.add(services.run_workers_service(self.home, self._environment()))
        if "engine" in self._services:
            self._services.await_ready("engine", services.ENGINE_READY_S)
            self._warm_engine(again=True)
        self._services.await_ready("code-server", services.DAGSTER_READY_S)
        if "collector" in self._services:
            self._services.await_ready("collector", services.DAGSTER_READY_S)
        for line in start_tasks.await_sound(self._verifying, self._pause):
            self._report(f"lake: {line}")
        self._start_webserver(workspace, webserver_port)
        self._services.await_ready("run-workers", services.DAGSTER_READY_S)
        # Before the engine is warm: runs that a killed platform left unfinished warm it as well.
        self._services.add(services.daemon_service(self.home, self._environment(), workspace))
        if self._with_catalogue:
            self._services.add(services.catalogue_service(self.home, self._environment()))
            self._services.await_ready("catalogue-server", services.DAGSTER_READY_S)
        self._warming.await_done(self._pause)
        self._start_watchdog()
        self._report(f"the platform is up: {self._services.addresses.webserver}")
        self._watch_answers()

    def _stand_by(self) -> None:
        """Keep ready, for a moment, what a platform that may not work yet needs later."""
        self._pause(_STAND_BY_S)
        self._services.revive()
        self._warm_engine(again=True)

    def _start_webserver(self, workspace: Path, port: int) -> None:
        """Start the webserver. If another program has taken ``port``, choose another one."""
        for _ in range(_PORTS_TRIED):
            if (free := free_port(port)) != port:
                self._move_webserver(port, free)
                port = free
            host, url = self._webserver_host, self.addresses.webserver
            self._services.add(services.webserver_service(self.home, self._environment(), workspace, host, url, port))
            try:
                return self._services.await_ready("webserver", services.DAGSTER_READY_S)
            except PlatformError:
                if free_port(port) == port:
                    raise  # the port is free, so the cause is another one
        raise PlatformError(
            f"other programs took {_PORTS_TRIED} ports in succession that were chosen for the webserver"
        )

    def _start_watchdog(self) -> None:
        """Start the watchdog, which evaluates the vitals; last, because a starting platform is not red.

        Nothing waits for it: data may land meanwhile.
        """
        port = free_port(self._health_port)
        url = f"http://127.0.0.1:{port}"
        self._services.addresses = replace(self.addresses, watchdog=url)
        self._services.add(services.watchdog_service(self.home, self._environment(), url))

    def _move_webserver(self, taken: int, port: int) -> None:
        """Assign another ``port`` to the webserver and restart the services that use its address in links."""
        self._report(f"webserver: port {taken} is taken by another program; using {port}")
        self._services.addresses = replace(self.addresses, webserver=f"http://127.0.0.1:{port}")
        self._services.restart(("code-server", "run-workers"), self._environment())
        self._services.await_ready("code-server", services.DAGSTER_READY_S)

    def _sweep_left_overs(self) -> None:
        mark = platform_home.read_state(self.home).get("mark")
        if mark and (killed := guardian.sweep(mark)):
            self._report(f"ended {killed} processes that an earlier platform had left")

    def _start_guardian(self) -> None:
        # It has no mark and no leash, because it must run a moment longer than this process.
        command = [sys.executable, "-I", "-S", guardian.__file__, "guard", self._mark]
        quiet = subprocess.DEVNULL
        self._guardian = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def _start_engine(self, port: int) -> None:
        try:
            token = kept_token(self.home / services.ENGINE_TOKEN)
            made = services.engine_service(self.home, self._environment(), port, self._driver_memory, token)
        except (JavaMissing, JarsMissing, ValueError) as problem:
            raise PlatformError(str(problem)) from None
        self._services.add(made)

    def _environment(self) -> dict[str, str]:
        added = {
            guardian.MARK: self._mark,
            "DAGSTER_HOME": str(platform_home.dagster_home(self.home)),
            "SDA_HOME": str(self.home),
            "PYTHONPATH": engine.python_path(),
            "PYTHONUNBUFFERED": "1",
        }
        if self._services.addresses is not None:
            added["SDA_SPARK_REMOTE"] = self._services.addresses.engine
            added["SDA_UI_URL"] = self._inherited.get("SDA_UI_URL") or self._services.addresses.webserver
        return {**self._inherited, **added}

    def _pause(self, seconds: float = _TICK_S) -> None:
        if self._stop_requested.wait(seconds):
            raise PlatformError("the platform was stopped while it started")

    def _watch_answers(self, *names: str) -> None:
        """Start one thread for each of these services, or of all, that checks whether the service answers."""
        chosen = {name: self._services[name] for name in names or self._services}
        for each in services.watched(self.home, chosen, self.addresses, self._hung_after_s):
            self._liveness.append(each)
            threading.Thread(target=each.keep_asking, args=(self._stop_requested,), daemon=True).start()

    def _watch(self) -> None:
        for each in self._liveness:
            if each.is_hung:
                self._report(f"{each.service.name} has not answered for {each.silent_s:.0f} s; ending it")
                each.service.signal(signal.SIGKILL)
                each.begin_again()
        self._services.revive()
        if self._services.begin_collecting(self._environment(), self._collect):
            self._watch_answers("collector")
        self._warm_engine()

    def _warm_engine(self, *, again: bool = False) -> None:
        if "engine" in self._services:
            self._warming.keep(self._services["engine"], self._environment(), self.addresses.engine, again=again)

    def _tear_down(self) -> None:
        self._report("stopping")
        self._services.end()
        if self._guardian is not None:
            self._guardian.communicate()  # closes its input: it kills remaining processes, then ends
        for process in (self._warming.task, self._verifying, *self._services.values()):
            if process is not None:
                process.wait()
        platform_home.clear_state(self.home)
        self._locks.close()

    def _listen_for_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            if not self._stop_requested.is_set():
                self._stop_requested.set()
                raise KeyboardInterrupt

        for number in STOPPING:
            signal.signal(number, on_signal)

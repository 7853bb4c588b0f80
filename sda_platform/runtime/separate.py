"""`sda service NAME`: one process of the platform alone, for a container or a process manager.

`sda up` starts all processes as its children. Here each is started by its own command. They share the settings and
SDA_HOME, which may be a volume. Each listens where the others look for it, so one address serves both sides:

    engine        SDA_SPARK_REMOTE        code-server   SDA_CODE_SERVER
    webserver     SDA_WEBSERVER_HOST      watchdog      SDA_HEALTH_HOST
    run-workers   a socket in SDA_HOME    daemon        nothing

The run workers verify and repair the lake and warm the engine before they serve, at each start, as `sda up` does.
Collectors and the lookup endpoint have commands of their own: `sda collector run` and `sda catalog serve`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

from sda_platform.runtime import guardian, liveness, platform_home, services, start_tasks
from sda_platform.runtime.errors import EngineCold, PlatformError
from sda_platform.runtime.lake_lock import take_lake_lock, take_landing_lock
from sda_platform.runtime.processes import Service
from sda_platform.runtime.services import Addresses
from sda_platform.settings import Settings
from sda_platform.spark import engine
from sda_platform.spark.channel import TOKEN_VARIABLE, host_and_port, kept_token, token_file
from sda_platform.spark.jars import JarsMissing
from sda_platform.spark.java import JavaMissing

DEFINITIONS: Final = "sda_platform.definitions"
_ENGINE_WITHIN_S: Final = 15.0
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened at


def _engine(settings: Settings, environment: Mapping[str, str]) -> Service:
    try:
        host, port = host_and_port(settings.spark_remote)
    except ValueError as error:
        raise PlatformError(f"SDA_SPARK_REMOTE says where the engine listens: {error}") from None
    token, path = environment.get(TOKEN_VARIABLE, ""), token_file(settings.spark_remote)
    try:
        token = kept_token(path) if path else token
    except ValueError as error:
        raise PlatformError(str(error)) from None
    if not token:
        raise PlatformError(
            f"who reaches the engine can execute code: set {TOKEN_VARIABLE}, or name a token_file in SDA_SPARK_REMOTE"
        )
    try:
        service = services.engine_service(
            settings.home.absolute(), environment, port, settings.driver_memory, token, host
        )
    except (JavaMissing, JarsMissing) as problem:
        raise PlatformError(str(problem)) from None
    works = liveness.engine_answers(settings.spark_remote, "" if path else token)
    service.is_ready = lambda: bool(works(_ENGINE_WITHIN_S))
    return service


def _code_server(settings: Settings, environment: Mapping[str, str]) -> Service:
    return services.code_server_service(settings.home.absolute(), environment, settings.code_server, DEFINITIONS)


def _run_workers(settings: Settings, environment: Mapping[str, str]) -> Service:
    return services.run_workers_service(settings.home.absolute(), environment)


def _webserver(settings: Settings, environment: Mapping[str, str]) -> Service:
    host, port, home = settings.webserver_host, settings.webserver_port, settings.home.absolute()
    url = f"http://{_reachable(host)}:{port}"
    return services.webserver_service(home, environment, _workspace(settings), host, url, port)


def _daemon(settings: Settings, environment: Mapping[str, str]) -> Service:
    service = services.daemon_service(settings.home.absolute(), environment, _workspace(settings))
    service.is_ready = lambda: _daemon_beats(environment)
    return service


def _watchdog(settings: Settings, environment: Mapping[str, str]) -> Service:
    url = f"http://{settings.health_host}:{settings.health_port}"
    return services.watchdog_service(settings.home.absolute(), environment, url)


SERVICES: Final[Mapping[str, Callable[[Settings, Mapping[str, str]], Service]]] = MappingProxyType(
    {
        "engine": _engine,
        "code-server": _code_server,
        "run-workers": _run_workers,
        "daemon": _daemon,
        "webserver": _webserver,
        "watchdog": _watchdog,
    }
)
"""What `sda service` starts, in the order of a start."""
_PAUSE_S: Final = 0.5


def separate_service(name: str, settings: Settings) -> Service:
    """Return the service ``name`` of the platform that ``settings`` describe, not started. Raises PlatformError."""
    if name not in SERVICES:
        raise PlatformError(f"there is no service {name!r}: choose {', '.join(SERVICES)}")
    return SERVICES[name](settings, _environment(settings))


def become(name: str, settings: Settings) -> NoReturn:
    """Replace this process by the service ``name``.

    The run workers hold the locks of home and lake until they end. Raises PlatformError, AlreadyRunning and LakeInUse.
    """
    home = settings.home.absolute()
    service = separate_service(name, settings)
    platform_home.prepare(home, settings.code_server, os.environ)
    if name == "run-workers":
        _hold_locks(home, settings)
        _make_ready(home, settings, service.environment)
        address = f"http://{_reachable(settings.webserver_host)}:{settings.webserver_port}"
        addresses = Addresses(settings.ui_url or address, settings.code_server, settings.spark_remote)
        state = {"schema_version": 1, "pid": os.getpid(), "addresses": asdict(addresses)}
        platform_home.write_state(home, {**state, platform_home.RETENTION: settings.retention.model_dump()})
    os.chdir(service.directory)
    os.execve(service.command[0], service.command, dict(service.environment))  # noqa: S606


def _make_ready(home: Path, settings: Settings, environment: Mapping[str, str]) -> None:
    """Verify the lake and warm the engine, and say what came of it. Raises PlatformError if the lake is not sound.

    Also after a power loss, when a container runtime starts again what ran, in any order: this waits for the engine.
    One that does not work is no reason to end. Its vital is red, and runs begin once it does.
    """
    for line in start_tasks.await_sound(start_tasks.begin_verification(home, environment), _pause):
        sys.stdout.write(f"{line}\n")
    latest = time.monotonic() + services.ENGINE_READY_S
    answers = liveness.engine_answers(settings.spark_remote)
    while not answers(_ENGINE_WITHIN_S) and time.monotonic() < latest:
        _pause()
    try:
        start_tasks.await_warm(start_tasks.begin_warm_up(home, environment, settings.spark_remote), _pause)
        sys.stdout.write("the engine is warm\n")
    except EngineCold as cold:
        sys.stdout.write(f"{cold}\n")
    sys.stdout.flush()


def _pause() -> None:
    time.sleep(_PAUSE_S)


def _hold_locks(home: Path, settings: Settings) -> None:
    """Take all locks for as long as this process lives, also as another program."""
    own = platform_home.take_lock(home)
    for lock in (own, take_lake_lock(settings.lake_uri, home), take_landing_lock(settings.landing_uri, home)):
        if lock is not None:
            os.set_inheritable(os.dup(lock.fileno()), True)  # a copy that no one closes


def _environment(settings: Settings) -> dict[str, str]:
    chosen, home = settings.environment(), settings.home.absolute()
    inherited = {name: value for name, value in os.environ.items() if name.upper() not in chosen}
    own = {
        guardian.MARK: "separate",  # the run launcher starts no worker host of its own
        "DAGSTER_HOME": str(platform_home.dagster_home(home)),
        "PYTHONPATH": engine.python_path(),
        "PYTHONUNBUFFERED": "1",
    }
    return {**inherited, **chosen, **own}


def _workspace(settings: Settings) -> Path:
    return platform_home.dagster_home(settings.home.absolute()) / "workspace.yaml"


def _reachable(host: str) -> str:
    """Return the address by which this machine reaches a server that listens at ``host``."""
    return engine.HOST if host in _ANY_ADDRESS else host


def _daemon_beats(environment: Mapping[str, str]) -> bool:
    """Return whether every part of the daemon has written a heartbeat in time, by Dagster's own command."""
    command = [str(services.SCRIPTS / "dagster-daemon"), "liveness-check"]
    return subprocess.run(command, env=dict(environment), capture_output=True, check=False).returncode == 0

"""The platform's long-running processes: their commands, when each is ready, and the probe of each while it runs."""

import math
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sda_platform.runtime import liveness, platform_home
from sda_platform.runtime.liveness import MISSES, Liveness, Question
from sda_platform.runtime.processes import Service
from sda_platform.runtime.program import program_command
from sda_platform.spark import engine
from sda_platform.spark.channel import TOKEN_VARIABLE
from sda_platform.spark.java import find_java

ENGINE_READY_S = 180.0
DAGSTER_READY_S = 120.0
_LOOK_S = 5.0
# A start waits for an answer of each: of Dagster's servers to the probe that is repeated later, of the
# engine to the statements of the warm-up.
_PROVEN_AT_START = ("code-server", "run-workers", "collector", "webserver", "engine", "catalogue-server")
# Each landing sensor occupies one while it waits for segments; the webserver and the other sensors need some too.
_CODE_SERVER_THREADS = 24
ENGINE_TOKEN = Path("engine", "token")
"""The file with the token of the local engine, below the home."""
UI_TOKEN = Path("dagster", "ui_token")
"""The file with which the platform's own probes log in at its UI, below the home."""
SCRIPTS = Path(sysconfig.get_path("scripts"))


@dataclass(frozen=True)
class Addresses:
    """Where the platform answers. ``engine`` is what SDA_SPARK_REMOTE is set to for its processes; ``watchdog`` serves
    `/health`."""

    webserver: str
    code_server: str
    engine: str
    watchdog: str = ""


def engine_service(
    home: Path, environment: Mapping[str, str], port: int, driver_memory: str, token: str, host: str = engine.HOST
) -> Service:
    """Return the Spark Connect server, which refuses calls without ``token``. Raises JavaMissing or JarsMissing."""
    directory = home / "engine"
    command = engine.server_command(
        find_java(environment),
        directory,
        port=port,
        driver_memory=driver_memory,
        lake_uri=environment.get("SDA_LAKE", ""),
        host=host,
    )
    complete = {**environment, **engine.server_environment(directory), TOKEN_VARIABLE: token}
    log = home / "logs" / "engine.log"
    return Service("engine", command, complete, directory, log, lambda: engine.is_listening(port, host=host))


def code_server_service(home: Path, environment: Mapping[str, str], address: str, module: str) -> Service:
    """Dagster's code server, which serves the definitions of ``module`` at ``address`` (host:port, or unix:path)."""
    host, _, port = address.rpartition(":")
    serve = ["-m", "dagster", "api", "grpc", "-m", module, "--location-name", "sda_platform"]
    place = ["-s", port] if host == "unix" else ["-h", host, "-p", port]
    listening = [*place, "--max-workers", str(_CODE_SERVER_THREADS)]
    answers = liveness.code_server_answers(address)
    return _python("code-server", [*serve, *listening], home, environment, lambda: bool(answers(_LOOK_S)))


def run_workers_service(home: Path, environment: Mapping[str, str]) -> Service:
    """Return the worker host, which holds the processes that execute runs."""
    answers = liveness.worker_host_answers(platform_home.dagster_home(home))
    return _python(
        "run-workers", ["-m", "sda_platform.runtime.run_workers"], home, environment, lambda: bool(answers(_LOOK_S))
    )


def webserver_service(
    home: Path, environment: Mapping[str, str], workspace: Path, host: str, url: str, port: int
) -> Service:
    """Dagster's webserver; it listens at ``host`` and answers this machine at ``url``."""
    show = ["-m", "sda_platform.runtime.webserver", "-h", host, "-p", str(port), "-w", str(workspace)]
    answers = liveness.webserver_answers(url)
    return _python("webserver", show, home, environment, lambda: bool(answers(_LOOK_S)))


def daemon_service(home: Path, environment: Mapping[str, str], workspace: Path) -> Service:
    """Describe Dagster's daemon as a service."""
    arguments = [str(SCRIPTS / "dagster-daemon"), "run", "-w", str(workspace)]
    return _python("daemon", arguments, home, environment, lambda: True)


def collector_service(home: Path, environment: Mapping[str, str], config: Path) -> Service:
    """Return the collectors, as the file ``config`` describes them."""
    answers = liveness.collector_answers(home)
    return _python(
        "collector", ["-m", "sda_platform.edge", str(config)], home, environment, lambda: bool(answers(_LOOK_S))
    )


def catalogue_service(home: Path, environment: Mapping[str, str]) -> Service:
    """Return the catalogue's lookup endpoint, at the address of the settings in ``environment``."""
    answers = liveness.catalogue_answers(home)
    command = ["-m", "sda_platform.runtime.serve"]
    return _python("catalogue-server", command, home, environment, lambda: bool(answers(_LOOK_S)))


def watchdog_service(home: Path, environment: Mapping[str, str], url: str) -> Service:
    """Return the watchdog, which evaluates the vitals and answers at ``url`` (http://host:port)."""
    answers = liveness.page_answers(f"{url}/health")
    arguments = ["-m", "sda_platform.runtime.watchdog", url.removeprefix("http://")]
    return _python("watchdog", arguments, home, environment, lambda: bool(answers(_LOOK_S)))


def watched(home: Path, services: Mapping[str, Service], addresses: Addresses, hung_after_s: float) -> list[Liveness]:
    """Return the probes by which these ready services are watched from now on.

    One hangs when it has not answered for ``hung_after_s`` seconds. The daemon writes a heartbeat every half minute and
    has that time in addition.
    """
    period_s, dagster_home = hung_after_s / MISSES, platform_home.dagster_home(home)
    beats = MISSES + math.ceil(liveness.HEARTBEAT_S / period_s)
    questions: dict[str, tuple[Question, float, int]] = {
        "engine": (liveness.engine_answers(addresses.engine), ENGINE_READY_S, MISSES),
        "code-server": (liveness.code_server_answers(addresses.code_server), DAGSTER_READY_S, MISSES),
        "run-workers": (liveness.worker_host_answers(dagster_home), DAGSTER_READY_S, MISSES),
        "webserver": (liveness.webserver_answers(addresses.webserver), DAGSTER_READY_S, MISSES),
        "collector": (liveness.collector_answers(home), DAGSTER_READY_S, MISSES),
        "catalogue-server": (liveness.catalogue_answers(home), DAGSTER_READY_S, MISSES),
        "watchdog": (liveness.page_answers(f"{addresses.watchdog}/health"), DAGSTER_READY_S, MISSES),
        "daemon": (liveness.daemon_beats(addresses.webserver, home / UI_TOKEN), DAGSTER_READY_S, beats),
    }
    return [
        Liveness(services[name], question, period_s, start_s, misses, is_proven=name in _PROVEN_AT_START)
        for name, (question, start_s, misses) in questions.items()
        if name in services
    ]


def _python(
    name: str, arguments: list[str], home: Path, environment: Mapping[str, str], is_ready: Callable[[], bool]
) -> Service:
    log = home / "logs" / f"{name}.log"
    return Service(name, program_command(*arguments), environment, home, log, is_ready)

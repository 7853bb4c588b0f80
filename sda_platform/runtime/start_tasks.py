"""The two tasks of a start: verification of the lake and warm-up of the engine. Each is a process that ends."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sda_platform.runtime.errors import EngineCold, PlatformError
from sda_platform.runtime.one_off import OneOff
from sda_platform.runtime.processes import Service

# A bound for a busy machine; on an idle one the warm-up takes about ten seconds.
_WARM_S = 600.0


def begin_verification(home: Path, environment: Mapping[str, str]) -> OneOff:
    """Start the verification of the lake, which also repairs it."""
    return _begin("verification.log", home, environment, "sda_platform.runtime.verification")


def await_sound(verification: OneOff, pause: Callable[[], None]) -> list[str]:
    """Wait for the verification and return its lines. Raises PlatformError if the lake is not sound."""
    while verification.is_running:
        pause()
    if not verification.succeeded:
        raise PlatformError(f"the lake is not sound:\n{verification.output()}")
    return verification.output().splitlines()


def begin_warm_up(home: Path, environment: Mapping[str, str], engine: str) -> OneOff:
    """Start the warm-up of every pool's session on the engine at address ``engine``."""
    return _begin("warm-up.log", home, environment, "sda_platform.runtime.warm_up", engine, str(home / "engine"))


def await_warm(warm_up: OneOff, pause: Callable[[], None]) -> None:
    """Wait for the warm-up. Raises EngineCold if it fails; every run would fail as well."""
    deadline = time.monotonic() + _WARM_S
    while warm_up.is_running:
        if time.monotonic() > deadline:
            warm_up.kill()
        pause()
    if not warm_up.succeeded:
        raise EngineCold(f"the engine does not work, or the machine is too busy for it; see {warm_up.log}")


class Warming:
    """Warms a platform's own engine, anew whenever that has started again; ``report`` gets lines for people."""

    def __init__(self, home: Path, report: Callable[[str], None]) -> None:
        self.task: OneOff | None = None
        self._home, self._report, self._is_cold, self._is_reported = home, report, True, False

    def keep(self, engine: Service, environment: Mapping[str, str], address: str, *, again: bool = False) -> None:
        """Begin, if the engine answers and has not been warmed since its start; ``again``: also after a failure."""
        if self.task is not None and not self.task.is_running:
            if self.task.succeeded:
                self._report_warm()
            elif again:
                self._is_cold = True
        if not engine.is_alive:
            self._is_cold = True
        elif self._is_cold and engine.is_ready():
            self._report("engine: warming the pools")
            self._is_cold, self._is_reported = False, False
            self.task = begin_warm_up(self._home, environment, address)

    def await_done(self, pause: Callable[[], None]) -> None:
        """Wait for it, if it has begun. Raises EngineCold if it fails."""
        if self.task is not None:
            await_warm(self.task, pause)
            self._report_warm()

    def _report_warm(self) -> None:
        if not self._is_reported:
            self._report("engine: warm")
        self._is_reported = True


def _begin(log: str, home: Path, environment: Mapping[str, str], *arguments: str) -> OneOff:
    return OneOff([*arguments], environment, home, home / "logs" / log).start()

"""The two tasks of a start: verification of the lake and warm-up of the engine. Each is a process that ends."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sda_platform.runtime.errors import EngineCold, PlatformError
from sda_platform.runtime.one_off import OneOff

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
        raise EngineCold(f"the engine does not work; see {warm_up.log}")


def _begin(log: str, home: Path, environment: Mapping[str, str], *arguments: str) -> OneOff:
    return OneOff([*arguments], environment, home, home / "logs" / log).start()

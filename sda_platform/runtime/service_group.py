"""The platform's processes as a group: start, await, restart and end them, and list them in ``platform.json``."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sda_platform.runtime import platform_home
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.processes import Service, await_end, describe_exit, stop_all
from sda_platform.runtime.services import Addresses, collector_service

_DAGSTER_GRACE_S = 5.0
_ENGINE_GRACE_S = 2.5


class ServiceGroup(Mapping[str, Service]):
    """The services of the platform in ``home``, by name.

    ``mark`` identifies their processes. ``facts`` are written with their state. ``report`` receives lines for the user.
    ``pause`` waits for a moment; it raises PlatformError when the platform shall stop.
    """

    def __init__(
        self,
        home: Path,
        mark: str,
        facts: Mapping[str, Any],
        report: Callable[[str], None],
        pause: Callable[[], None],
    ) -> None:
        self._home, self._mark, self._facts, self._report, self._pause = home, mark, facts, report, pause
        self._services: dict[str, Service] = {}
        self.addresses: Addresses | None = None

    def __getitem__(self, name: str) -> Service:
        return self._services[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._services)

    def __len__(self) -> int:
        return len(self._services)

    def add(self, service: Service) -> None:
        """Start ``service``; it replaces an ended one of its name."""
        self._report(f"{service.name}: starting")
        self._services[service.name] = service
        service.start()
        self._write_state()

    def begin_collecting(self, environment: Mapping[str, str], config: Path | None) -> bool:
        """Start the collector if ``config`` is there and none was started; return whether it was started now."""
        if config is None or "collector" in self or not config.exists():
            return False
        self.add(collector_service(self._home, environment, config))
        return True

    def await_ready(self, name: str, timeout_s: float) -> None:
        """Return when the service is ready. Raises PlatformError if it ends or exceeds ``timeout_s``."""
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

    def restart(self, names: Iterable[str], environment: Mapping[str, str]) -> None:
        """End these Dagster services and start them with another environment."""
        chosen = [self._services[name] for name in names]
        stop_all(chosen, signal.SIGINT, _DAGSTER_GRACE_S)
        for service in chosen:
            service.wait()
            service.environment = environment
            self.add(service)

    def revive(self) -> None:
        """Restart services that have ended, each after its pause."""
        lines = [line for service in self._services.values() if (line := service.revive(time.monotonic()))]
        for line in lines:
            self._report(line)
        if lines:
            self._write_state()

    def end(self) -> None:
        """End all services; the engine once no run can need it."""
        with suppress(OSError):  # of a full disk; sensors that wait then end later
            self._write_state(is_stopping=True)
        engine = [service for name, service in self._services.items() if name == "engine"]
        others = [service for name, service in self._services.items() if name != "engine"]
        # SIGINT also reaches the run workers, which are in the worker host's group: they record their runs as failed.
        for service in others:
            service.signal(signal.SIGINT)
        until_s = time.monotonic() + _DAGSTER_GRACE_S
        await_end([service for name, service in self._services.items() if name == "run-workers"], until_s)
        for service in engine:
            service.signal(signal.SIGTERM)
        await_end(others, until_s)
        await_end(engine, time.monotonic() + _ENGINE_GRACE_S)

    def _write_state(self, *, is_stopping: bool = False) -> None:
        processes = {
            name: {
                "pid": service.pid,
                "restarts": service.restarts,
                "is_exhausted": service.is_exhausted,
                "log": str(service.log),
            }
            for name, service in self._services.items()
        }
        addresses = asdict(self.addresses) if self.addresses else {}
        state = {"schema_version": 1, "pid": os.getpid(), "mark": self._mark, "is_stopping": is_stopping}
        platform_home.write_state(self._home, {**state, **self._facts, "addresses": addresses, "processes": processes})

"""A process that the supervisor runs once, such as the verification of the lake. Stdlib only."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sda_platform.runtime.program import program_command


@dataclass
class OneOff:
    """A module of the platform that runs as a process of its own, with its output in ``log``."""

    arguments: list[str]
    environment: Mapping[str, str]
    directory: Path
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    def start(self) -> "OneOff":
        """Start it; an earlier log is replaced."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                program_command("-m", *self.arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.environment),
                cwd=self.directory,
            )
        return self

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process is not None and self._process.poll() is None

    @property
    def succeeded(self) -> bool:
        """Whether it has ended with exit code 0."""
        return self._process is not None and self._process.poll() == 0

    def kill(self) -> None:
        """End it by force."""
        if self._process is not None:
            self._process.kill()

    def wait(self) -> None:
        """Return when it has ended."""
        if self._process is not None:
            self._process.wait()

    def output(self) -> str:
        """Read what the process has written so far."""
        return self.log.read_text(errors="replace").strip()

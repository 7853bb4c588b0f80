"""A real Postgres server in a directory of its own, from the operating system's package; never as root.

Set-up imports this module before anything is installed, so only `required_binaries` needs pytest.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port

PASSWORD = "secret"
_START_S = 30


def required_binaries() -> Path:
    """The server's directory; skips the test where there is none."""
    import pytest

    return postgres_binaries() or pytest.skip("no Postgres server here (Debian, Ubuntu: apt install postgresql)")


def postgres_binaries() -> Path | None:
    """The newest server's directory: on PATH, or where Debian, Fedora and Homebrew put it; None without one."""
    on_path = shutil.which("initdb")
    installed = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/opt/homebrew/opt").glob("postgresql*/bin")]
    newest = sorted(installed, key=lambda p: [int(n) for n in p.parent.name.split(".") if n.isdigit()])
    return newest[-1] if newest else Path(on_path).parent if on_path else None


class PostgresServer:
    """A server on a free port of this machine with data in ``directory``."""

    def __init__(self, binaries: Path, directory: Path, certificate: Path | None = None) -> None:
        self._binaries, self._data = binaries, directory / "data"
        self._port = free_port(0)
        password = directory / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:  # the server refuses to run as root
            for path in (directory, password):
                shutil.chown(path, "postgres")
        self._as_owner("initdb", "-D", self._data, "-U", "sda", "-A", "scram-sha-256", f"--pwfile={password}", "-N")
        self._has_tls = certificate is not None
        if certificate is not None:
            self._install(certificate)

    def present(self, certificate: Path) -> None:
        """Present another certificate (the path without .crt and .key) from now on."""
        self._install(certificate)
        self._as_owner("pg_ctl", "-D", self._data, "reload")

    def _install(self, certificate: Path) -> None:
        for suffix in (".crt", ".key"):
            file = self._data / f"server{suffix}"
            file.write_bytes(certificate.with_suffix(suffix).read_bytes())
            file.chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(file, "postgres")

    @property
    def url(self) -> str:
        """Its address, as the setting of a subscriber."""
        return f"postgresql://sda:{PASSWORD}@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Begin to serve."""
        options = f"-h 127.0.0.1 -p {self._port} -k {self._data}{' -c ssl=on' if self._has_tls else ''}"
        log = self._data.parent / "server.log"
        self._as_owner("pg_ctl", "-D", self._data, "-l", log, "-o", options, "-w", "-t", str(_START_S), "start")

    def stop(self, mode: str = "fast") -> None:
        """End; ``immediate`` is as a power loss is: nothing is flushed, and the next start recovers."""
        self._as_owner("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def _as_owner(self, program: str, *arguments: str | Path) -> None:
        rise = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*rise, str(self._binaries / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * _START_S, cwd="/", check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}")


@contextmanager
def running_postgres(binaries: Path, directory: Path, certificate: Path | None = None) -> Iterator[PostgresServer]:
    """A server, with TLS if it has a ``certificate``, started, and stopped on the way out."""
    server = PostgresServer(binaries, directory, certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")


@contextmanager
def postgres_with_empty_database() -> Iterator[PostgresServer]:
    """A server in a directory of its own; skips the test where no server is installed."""
    binaries = required_binaries()
    # Not below pytest's own directory, which only its owner may enter.
    with (
        tempfile.TemporaryDirectory(prefix="sda-postgres-") as directory,
        running_postgres(binaries, Path(directory)) as server,
    ):
        yield server

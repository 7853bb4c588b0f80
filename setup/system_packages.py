"""Installs operating-system packages, as root or by sudo without a password.

Every function tries and returns; the caller checks the result. Never prompts.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

Say = Callable[[str], None]
_TIMEOUT_S = 900


def install_java(say: Say) -> None:
    """A Java runtime that Spark can use."""
    _install(say, "Java", apt="openjdk-17-jre-headless", dnf="java-21-openjdk-headless", brew="openjdk@17")


def install_venv(say: Say) -> None:
    """The part of Python that Debian and Ubuntu ship apart."""
    _install(say, "Python's venv module", apt=f"python{sys.version_info.major}.{sys.version_info.minor}-venv")


def install_chromium(say: Say) -> None:
    """A browser for the tests that look at the UI."""
    _install(say, "Chromium, for the tests of the UI", apt="chromium", dnf="chromium", brew="chromium")


def install_postgres(say: Say) -> None:
    """A Postgres server for the tests that deliver alerts to one; they start their own, this one's is not used."""
    _install(
        say, "Postgres, for the tests of delivery", apt="postgresql", dnf="postgresql-server", brew="postgresql@17"
    )


def install_etcd(say: Say) -> None:
    """An etcd server for the tests of leases; they start their own, this one's is not used."""
    _install(say, "etcd, for the tests of leases", apt="etcd-server", dnf="etcd", brew="etcd")


def install_nginx(say: Say) -> None:
    """The proxy for the tests of separate services; they start their own, this one's is not used."""
    _install(say, "nginx, for the tests of separate services", apt="nginx-light", dnf="nginx", brew="nginx")


def fetch_programs(say: Say, what: str, package: str, names: Sequence[str], into: Path) -> None:
    """Take programs out of a package of Debian or Ubuntu, without installing it: no rights, no service that starts."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        return
    say(f"{what}: apt-get download {package}")
    with tempfile.TemporaryDirectory() as directory:
        download = [apt, "download", "--quiet", package]
        rise = _rise()
        if not _try(download, directory) and rise is not None:
            _try([*rise, apt, "update", "--quiet"])
            _try(download, directory)
        for found in Path(directory).glob("*.deb"):
            _try([dpkg, "--extract", str(found), directory])
        for name in names:
            program = Path(directory) / "usr" / "bin" / name
            if program.is_file():
                shutil.copy2(program, into / name)


def _install(say: Say, what: str, **package_by_manager: str) -> None:
    for manager, package in package_by_manager.items():
        commands = _commands(manager, package)
        if commands:
            say(f"{what}: {' '.join(commands[-1])}")
            for command in commands:
                _try(command)
            return


def _commands(manager: str, package: str) -> list[list[str]]:
    """What to run, empty when this manager is absent or this user may not use it."""
    executable = shutil.which({"apt": "apt-get"}.get(manager, manager))
    if executable is None:
        return []
    if manager == "brew":
        return [[executable, "install", "--quiet", package]]
    rise = _rise()
    if rise is None:
        return []
    if manager == "apt":
        install = [executable, "install", "--yes", "--quiet", "--no-install-recommends", package]
        return [[*rise, executable, "update", "--quiet"], [*rise, *install]]
    return [[*rise, executable, "install", "--assumeyes", "--quiet", package]]


def _rise() -> list[str] | None:
    """The prefix that gives a command root's rights, None when that would need a password."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


def _try(command: list[str], directory: str | None = None) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=_TIMEOUT_S, check=False, cwd=directory
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"  {error}\n")
        return False
    if done.returncode:
        sys.stderr.write(f"  {(done.stderr or done.stdout).strip()[-600:]}\n")
    return done.returncode == 0

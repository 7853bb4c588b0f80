"""Docker and Compose on this machine, and a base image of Debian's packages: no registry of images is needed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sda_platform_tests.support.listening import listeners_beside
from sda_platform_tests.support.running_platform import eventually

ROOT = Path(__file__).parents[2]
BASE = "sda-test-base:bookworm"
_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
_START_S = 60.0
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"


@contextmanager
def docker_daemon(directory: Path) -> Iterator[None]:
    """A daemon that answers: the one of this machine, or one of our own. Skips the test where there can be none."""
    if shutil.which("docker") is None:
        pytest.skip("no Docker here (Debian, Ubuntu: apt install docker.io docker-compose debootstrap)")
    if _answers():
        yield
        return
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("no Docker daemon answers, and only root can start one")
    with (directory / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(["dockerd"], stdout=log, stderr=log, start_new_session=True)
    try:
        eventually(lambda: _answers() or process.poll() is not None, _START_S)
        if not _answers():
            pytest.skip(f"dockerd does not start here: {(directory / 'dockerd.log').read_text()[-500:]}")
        yield
    finally:
        process.terminate()
        process.wait()


def docker(*arguments: str, check: bool = True, **options: Any) -> str:
    """The output of a command of Docker. ``DOCKER_BUILDKIT=0``: builds need no plugin."""
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        ["docker", *arguments], env=environment, capture_output=True, text=True, check=False, **options
    )
    assert not check or done.returncode == 0, (
        f"docker {' '.join(arguments)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout


def inspected(container: str) -> Any:
    """What Docker knows of a container."""
    (found,) = json.loads(docker("inspect", container))
    return found


def reachable_ports(pid: int) -> set[int]:
    """The TCP ports on which the container of a process listens at an address that is not loopback."""
    return {port for host, port in listeners_beside(pid) if not host.is_loopback}


def compose_command() -> list[str]:
    """Compose, of either generation. Skips the test where there is none."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) and not subprocess.run([*command, "version"], capture_output=True).returncode:
            return command
    pytest.skip("no Compose here (Debian, Ubuntu: apt install docker-compose)")


def build(tag: str, context: Path, *arguments: str) -> None:
    """Build an image from the base of Debian's packages."""
    docker("build", "--tag", tag, "--build-arg", f"BASE={BASE}", *arguments, str(context))


def build_platform(tag: str = "sda-platform", *arguments: str) -> None:
    """Build the platform's image, and that of Postgres; what has not changed is kept by Docker."""
    revision = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True)
    build(tag, ROOT, "--build-arg", f"REVISION={revision.stdout.decode().strip() or '0' * 12}", *arguments)
    build("sda-test-postgres", Path(__file__).parent / "postgres")


def make_base(directory: Path) -> None:
    """Make the base image, if it is not there; it trusts what this machine trusts, such as a company's authority."""
    if docker("images", "--quiet", BASE).strip():
        return
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        pytest.skip("the base image is made by debootstrap, as root (apt install debootstrap)")
    root = directory / "base"
    _run(["debootstrap", "--variant=minbase", "--include=ca-certificates", _SUITE, str(root), _MIRROR])
    known = set(_certificates(root / _BUNDLE))
    for number, each in enumerate(each for each in _certificates(Path("/") / _BUNDLE) if each not in known):
        (root / f"usr/local/share/ca-certificates/site-{number}.crt").write_text(f"{each}\n")
    _run(["chroot", str(root), "update-ca-certificates"])
    packed = directory / "base.tar"
    _run(["tar", "-C", str(root), "-c", "-f", str(packed), "."])
    docker("import", str(packed), BASE)
    shutil.rmtree(root)
    packed.unlink()


def _certificates(bundle: Path) -> Sequence[str]:
    return _PEM.findall(bundle.read_text()) if bundle.exists() else []


def _answers() -> bool:
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"

"""Programs of this machine that a rehearsal runs in its own directory, and ends."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sda_platform.lake.errors import Unavailable

_POSTGRES: Final = Path("/usr/lib/postgresql")
_WITHIN_S: Final = 60.0


def etcd_program() -> Path:
    """The program etcd on PATH. Raises Unavailable."""
    if found := shutil.which("etcd"):
        return Path(found)
    raise Unavailable("the program etcd is not installed; on Debian: apt-get install etcd-server")


def postgres_programs() -> Path:
    """The directory of the newest Postgres server: where Debian has them, or on PATH. Raises Unavailable."""
    installed = [each.parent for each in _POSTGRES.glob("*/bin/initdb") if each.parts[-3].isdecimal()]
    if installed:
        return max(installed, key=lambda each: int(each.parts[-2]))
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    raise Unavailable("no Postgres server is installed; on Debian: apt-get install postgresql")


def free_ports(count: int) -> list[int]:
    """As many different ports of this machine as nothing listens on."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def user_of(name: str) -> Mapping[str, Any]:
    """How a program that refuses to run as root runs as ``name`` where this process is root. Raises Unavailable."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise Unavailable(f"there is no user {name}, and the program refuses to run as root") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def run(command: Sequence[str | Path], environment: Mapping[str, str], user: Mapping[str, Any]) -> None:
    """Run a program to its end. Raises Unavailable where it fails."""
    try:
        subprocess.run(
            command, env=_environment(environment), check=True, capture_output=True, text=True, timeout=_WITHIN_S,
            cwd="/", **user,
        )  # fmt: skip
    except (subprocess.SubprocessError, OSError) as error:
        reason = str(getattr(error, "stderr", "") or error).strip()
        raise Unavailable(f"{Path(command[0]).name} failed: {reason}"[:200]) from None


def start(command: Sequence[str | Path], user: Mapping[str, Any] | None = None) -> subprocess.Popen[bytes]:
    """Start a server, which ends with the thread that started it, where the system can do that."""
    leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return subprocess.Popen(
        [*leash, *command], env=_environment({}), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, **(user or {}),
    )  # fmt: skip


def end(process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGKILL) -> None:
    """End a server as a crash does."""
    with suppress(ProcessLookupError):
        process.send_signal(by)
    try:
        process.wait(_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def running(
    command: Sequence[str | Path], user: Mapping[str, Any] | None = None, by: signal.Signals = signal.SIGKILL
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that runs meanwhile; the signal ``by`` ends it."""
    process = start(command, user)
    try:
        yield process
    finally:
        end(process, by)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """No setting of the platform's own servers reaches a rehearsed one."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **more}

"""The socket of the process that holds the run workers: one JSON object as request, one as answer. Stdlib only.

The socket is in Dagster's home; only the user who runs the platform may open it. A request has a run and an operation;
the answer has `value`, or `error` with a text.
"""

import json
import os
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Final

SOCKET: Final = "run_workers.sock"
ANSWER_TIMEOUT_S: Final = 10.0


class WorkerHostError(Exception):
    """The worker host refused a request; the text has the reason."""


class NoWorkerHost(WorkerHostError):
    """No process holds run workers for this Dagster home."""


class WorkerHostSilent(WorkerHostError):
    """The worker host did not answer in time."""


def ask(dagster_home: Path, request: Mapping[str, Any], timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
    """Return the value with which the worker host of ``dagster_home`` answers ``request``.

    Raises NoWorkerHost where none listens, WorkerHostSilent after ``timeout_s`` seconds, WorkerHostError.
    """
    try:
        with Client(_address(dagster_home), "AF_UNIX") as connection:
            send(connection, request)
            if not connection.poll(timeout_s):
                raise WorkerHostSilent(f"no answer within {timeout_s:.0f} s")
            answer = receive(connection)
    except (OSError, EOFError) as error:
        raise NoWorkerHost(f"no process holds run workers for {dagster_home}: {error}") from None
    if "error" in answer:
        raise WorkerHostError(answer["error"])
    return answer["value"]


def listen(dagster_home: Path) -> Listener:
    """Listen at the socket of ``dagster_home``. The caller holds the lock that excludes a second listener."""
    (dagster_home / SOCKET).unlink(missing_ok=True)
    earlier = os.umask(0o177)
    try:
        return Listener(_address(dagster_home), "AF_UNIX", backlog=16)
    finally:
        os.umask(earlier)


def send(connection: Connection, message: Mapping[str, Any]) -> None:
    """Send one JSON object."""
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> dict[str, Any]:
    """Receive one JSON object. Raises ValueError, OSError, EOFError."""
    message = json.loads(connection.recv_bytes())
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    return message


def _address(dagster_home: Path) -> str:
    """Return the shorter way to write the path: the kernel allows 107 bytes, and the platform's processes work
    nearby.
    """
    path = dagster_home.absolute() / SOCKET
    return min(str(path), os.path.relpath(path), key=len)

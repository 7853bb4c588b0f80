"""What the supervisor's file shows to other processes."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from sda_platform.published import is_stopping
from sda_platform.runtime import platform_home, services


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"pid": os.getpid(), "is_stopping": True}, True),
        ({"pid": os.getpid(), "is_stopping": False}, False),
        ({"pid": 2**22 + 1, "is_stopping": True}, False),  # killed while it stopped: no process has this id
        ({}, False),
    ],
)
def test_a_platform_stops_while_its_supervisor_ends_its_processes(
    tmp_path: Path, state: dict[str, object], expected: bool
) -> None:
    platform_home.write_state(tmp_path, state)
    assert is_stopping(tmp_path) is expected


@pytest.mark.parametrize("name", ["authorized_keys", "code_server.sock"])
def test_a_start_removes_nothing_but_the_socket_of_a_code_server(tmp_path: Path, name: str) -> None:
    """The file that names it may come from somebody else's backup."""
    precious = tmp_path / "elsewhere" / name
    precious.parent.mkdir()
    precious.write_text("of the user")
    home = tmp_path / "home"
    platform_home.prepare(home, f"unix:{precious}", {})
    platform_home.code_server_socket(home)
    assert precious.read_text() == "of the user"


@pytest.mark.parametrize("depth", [1, 12])
def test_the_code_server_listens_where_only_its_user_may_connect(tmp_path: Path, depth: int) -> None:
    """A home may lie deeper than the kernel lets the path of a socket be."""
    home = Path(tmp_path, *["a directory"] * depth)
    address = platform_home.code_server_socket(home)
    workspace = json.loads(platform_home.prepare(home, address, {}).read_text())
    path = Path(workspace["load_from"][0]["grpc_server"]["socket"])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    assert address == f"unix:{path}" and (path.is_relative_to(home) is (depth == 1))
    assert depth == 1 or path.parent.stat().st_mode & 0o077 == 0
    service = services.code_server_service(home, {}, address, "x")
    assert service.command[service.command.index("-s") + 1] == str(path) and "-h" not in service.command
    next_address = platform_home.code_server_socket(home)  # after a kill
    assert not path.exists() and (path.parent.exists(), next_address == address) == (depth == 1, depth == 1)
    platform_home.prepare(home, next_address, {})
    platform_home.clear_state(home)  # after a stop
    assert Path(next_address.removeprefix("unix:")).parent.exists() is (depth == 1)


def test_no_platform_stops_where_none_ran(tmp_path: Path) -> None:
    assert not is_stopping(tmp_path)


def test_who_asks_whether_a_platform_runs_keeps_none_from_starting(tmp_path: Path) -> None:
    """A page of the console asks at each refresh; a start at that moment was told that a platform runs."""
    platform_home.take_lock(tmp_path).close()
    is_over = Event()

    def ask() -> None:
        while not is_over.is_set():
            platform_home.running_platform(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            for _ in range(200):
                platform_home.take_lock(tmp_path).close()
            with platform_home.take_lock(tmp_path):
                assert platform_home.running_platform(tmp_path) is not None
                with pytest.raises(platform_home.AlreadyRunning):
                    platform_home.take_lock(tmp_path)
        finally:
            is_over.set()
        for each in asking:
            each.result()

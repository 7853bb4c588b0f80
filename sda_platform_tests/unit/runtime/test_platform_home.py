"""What the supervisor's file shows to other processes."""

import os
from pathlib import Path

import pytest

from sda_platform.published import is_stopping
from sda_platform.runtime import platform_home


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


def test_no_platform_stops_where_none_ran(tmp_path: Path) -> None:
    assert not is_stopping(tmp_path)

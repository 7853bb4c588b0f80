"""`sda land` in a process of its own, and kill -9: it continues where it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from sda_platform.formats.cutting import split_records
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support import injections

_LAND = """
import sys
from pathlib import Path
from sda_platform.clock import MissionClock
from sda_platform.landing.lander import Lander
Lander(sys.argv[2], MissionClock(), segment_max_bytes=2000).land(Path(sys.argv[1]))
"""
_LINE = (
    b'{"obs_id":"o-%d","timestamp_ns":1730419200000000000,"ra_rad":1.0,"dec_rad":0.2,"sigma_arcsec":1.0,'
    b'"site_id":"maui"}\n'
)


def test_a_lander_that_is_really_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """In the middle of a file, twice, at other points."""
    content = b"".join(_LINE % number for number in range(100))
    path = tmp_path / "night.jsonl"
    path.write_bytes(content)
    order_file = tmp_path / "order"
    command = [sys.executable, "-c", _LAND, str(path), str(tmp_path / "landing")]
    environment = {**os.environ, **injections.armed(order_file)}
    for point, nth in (("landing.data_written", 2), ("lander.progress_written", 3)):
        injections.Injection(point, "kill", nth).arm(order_file)
        killed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert point in injections.hits(order_file)
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert _landed(tmp_path / "landing") == _payloads(content)


def _landed(landing: Path) -> list[bytes]:
    """The records of what waits, in the order of the file."""
    zone = LandingZone(str(landing), "optical")
    waiting = sorted(zone.pending(), key=lambda segment: int(Path(segment.name).stem.rpartition("-")[2]))
    return [payload for segment in waiting for payload in _payloads(zone.read(segment).data)]


def _payloads(data: bytes) -> list[bytes]:
    return [record.payload for record in split_records(data, "optical-jsonl")]

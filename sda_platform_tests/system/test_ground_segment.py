"""Real uplinks as processes: one is stopped while it sends, the other takes over, and no command is executed twice."""

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sda_platform.ground.links import stale_executions, terms
from sda_platform.ground.log import CommandLog
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.etcd_server import etcd_binary, etcd_server
from sda_platform_tests.support.ground_processes import Processes, ended, wait

COMMANDS = 200


@pytest.fixture(params=["etcd", "station"], ids=["tokens of leases", "tokens of the station"])
def processes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Processes]:
    """Uplinks under leases of a real etcd where it is installed, else as the station alone orders them."""
    with ExitStack() as running:
        if (request.param == "etcd") != (etcd_binary() is not None):
            pytest.skip("the other one is tested here: leases need `etcd`")
        yield from ended(Processes(tmp_path, running.enter_context(etcd_server(tmp_path)) if etcd_binary() else ""))


def test_a_stopped_uplink_is_replaced_within_thirty_seconds_and_nothing_is_executed_twice__GF20_GF23_GF24_ML5(
    processes: Processes, tmp_path: Path
) -> None:
    memory = tmp_path / "station.sqlite"
    url = processes.start("station", "station", "--state", str(memory), "--port", "0").split()[2].rstrip(";")
    uplink = ("--station", "atlantic", "--url", url, "--failback-s", "600", "--path", "cross-region")
    log = CommandLog(lake_at(tmp_path / "lake", now_ns=time.time_ns()), str(tmp_path / "landing"), "atlantic")

    def executed() -> list[str]:
        with sqlite3.connect(memory) as station:
            return [row[0] for row in station.execute("SELECT command_id FROM executions")]

    def active() -> str:
        with sqlite3.connect(memory) as station:
            rows = station.execute("SELECT uplink FROM promotions ORDER BY token DESC LIMIT 1").fetchall()
        return rows[0][0] if rows else ""

    processes.start("primary", "uplink", "primary", *uplink)
    wait(lambda: active() == "primary", "the primary is promoted at first")
    processes.start("backup", "uplink", "backup", *uplink)
    for number in range(COMMANDS):
        log.issue("TELEMETRY_REQUEST", expires_in_s=3600, command_id=f"c{number:03d}")
    wait(lambda: len(executed()) >= 10, "the primary sends")
    processes.signal("primary", signal.SIGSTOP)
    stopped_s = time.monotonic()
    wait(lambda: active() == "backup", "the backup takes over", 30.0)
    took_s = time.monotonic() - stopped_s
    assert took_s <= 30.0
    processes.signal("primary", signal.SIGCONT)
    wait(lambda: len(set(executed())) == COMMANDS, "every command is executed", 120.0)
    assert sorted(executed()) == [f"c{number:03d}" for number in range(COMMANDS)], "each exactly once"
    events = log.new_events()
    assert stale_executions(events, terms(events)) == []
    assert [term.uplink for term in terms(events)] == ["primary", "backup"]

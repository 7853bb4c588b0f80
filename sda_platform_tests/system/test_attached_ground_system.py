"""A ground system that others built is attached by space packets: to our uplink, and to our station in its place."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from spacepackets.ccsds import PacketId, PacketType, parse_space_packets
from spacepackets.ecss import PusTc, PusTm
from spacepackets.ecss.pus_1_verification import ManagedParamsVerification, Service1Tm
from spacepackets.ecss.tm import ManagedParams

from sda_platform.formats.ground_events import STATION_TIMES
from sda_platform.ground.command_states import states
from sda_platform.ground.log import CommandLog
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.ground_processes import Processes, ended, wait
from sda_platform_tests.support.ground_system import GroundSystem, serving

APID = 1234


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    yield from ended(Processes(tmp_path, ""))


def test_an_uplink_commands_a_ground_system_of_others__46_3(processes: Processes, tmp_path: Path) -> None:
    log = CommandLog(lake_at(tmp_path / "lake", now_ns=time.time_ns()), str(tmp_path / "landing"), "atlantic")
    began_ns = time.time_ns()
    with serving(GroundSystem(APID)) as url:
        log.issue("REPOINT", expires_in_s=600, command_id="low", azimuth_deg=271.5, elevation_deg=30.25)
        log.issue("REPOINT", expires_in_s=600, command_id="high", azimuth_deg=1.0, elevation_deg=89.0)
        processes.start("primary", "uplink", "primary", "--station", "atlantic", "--url", url, "--apid", str(APID))
        seen = list[dict[str, object]]()

        def is_done() -> bool:
            seen.extend(log.new_events())
            return {row["state"] for row in states([], seen)} == {"acknowledged", "failed"}

        wait(is_done, "both end", 60.0)
    rows = {row["command_id"]: row for row in states([], seen)}
    assert (rows["low"]["state"], rows["low"]["detail"]) == ("acknowledged", "executed")
    assert (rows["high"]["state"], rows["high"]["detail"]) == ("failed", "the keyhole")
    for row in rows.values():
        times_ns = [row[name] for name in STATION_TIMES]
        assert times_ns == sorted(times_ns)
        assert began_ns - 10**7 < times_ns[0] <= time.time_ns()


def test_a_control_system_of_others_commands_the_station__46_3(processes: Processes, tmp_path: Path) -> None:
    """Bytes on a socket, of which the library alone makes the packets."""
    memory = tmp_path / "station.sqlite"
    line = processes.start("station", "station", "--state", str(memory), "--port", "0", "--apid", str(APID))
    port = int(line.split()[2].rstrip(";").rpartition(":")[2])
    expiry = b"\x42" + (65_000).to_bytes(2) + bytes(8)
    command = PusTc(128, 1, apid=APID, seq_count=7, source_id=2, app_data=bytes(8) + expiry + b"from-others")
    content = bytes(command.pack())
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as connection:
        head = f"POST /commands HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    status, _, body = answer.partition(b"\r\n\r\n")
    assert b" 200 " in status.splitlines()[0]
    found = parse_space_packets(body, [PacketId(PacketType.TM, True, APID)])
    assert found.skipped_ranges == []
    reports = [
        Service1Tm.from_tm(PusTm.unpack_generic(each, ManagedParams(11)), ManagedParamsVerification(2))
        for each in found.tm_list
    ]
    assert [each.message_subtype for each in reports] == [1, 3, 7]
    assert {each.tc_req_id.as_u32() for each in reports} == {int.from_bytes(content[:4])}

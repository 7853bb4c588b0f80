"""`sda collector feed`: what simulated sensors send over real sockets is what the collector seals."""

import asyncio
import json
import socket
import struct
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from sda_platform.cli.collector import feeder as feeder_module
from sda_platform.cli.collector.feeder import BURST, Feeder, ObservationArchive, feed
from sda_platform.edge.address import Address
from sda_platform.edge.control import control_plane
from sda_platform.edge.http_server import HttpServer
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.optical import parse_optical_record
from sda_platform.published import COLLECTOR, publish
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.processes import free_port
from sda_platform.simulation.segments import TRUTH_SCHEMA
from sda_platform.simulation.world import SimulatedSegment
from sda_platform_tests.support.collectors import NOW_NS, beacons, collecting, payloads, radar_frames, until
from sda_platform_tests.support.http_sources import record
from sda_platform_tests.support.segments import described

RECORDS = [json.dumps(record(number, number - 20)).encode() for number in range(5)]


def segment(feed_name: str, segment_format: str, data: bytes, second: int) -> SimulatedSegment:
    meta = described(data, feed_name, segment_format=segment_format)
    return SimulatedSegment(feed_name, segment_format, data, meta, NOW_NS + second, TRUTH_SCHEMA.empty_table())


def world() -> list[SimulatedSegment]:
    frames = radar_frames(20, tracks=20)
    return [
        segment("radar", "radar-frames", pack_records(frames[:10], [0] * 10), 0),
        segment("isl", "isl-frames", pack_records(beacons(4), [0] * 4), 1),
        segment("optical", "optical-jsonl", b"\n".join(RECORDS) + b"\n", 2),
        segment("radar", "radar-frames", pack_records(frames[10:], [0] * 10), 3),
    ]


def test_what_is_sent_is_what_is_sealed_and_a_burst_is_redundant(tmp_path: Path) -> None:
    archive = f"http://127.0.0.1:{free_port(0)}/records"
    sources: dict[str, dict[str, Any]] = {
        "radar": {"kind": "radar", "bind": "127.0.0.1:0"},
        "links": {"kind": "isl", "bind": "127.0.0.1:0"},
        "archive": {"kind": "optical", "url": archive, "poll_interval_s": 0.02},
        "a-radar-of-the-user": {"kind": "radar", "bind": "127.0.0.1:0"},
    }

    ended = threading.Event()

    def send() -> dict[str, int]:
        feeder = Feeder(tmp_path, str(tmp_path / "landing"))
        with feeder.connected():
            clock = iter(range(NOW_NS, NOW_NS + 10**6))
            sending = feed(world(), feeder, now_ns=lambda: next(clock), burst_from_ns=NOW_NS + 3, burst_ns=5)
            assert len(list(sending)) == 4
            ended.wait(10)
            return feeder.sent

    async def scenario() -> dict[str, int]:
        async with (
            collecting(tmp_path, sources) as collector,
            HttpServer(control_plane(collector), Address("127.0.0.1", 0)) as control,
        ):
            publish(tmp_path, COLLECTOR, control.address)
            sending = asyncio.create_task(asyncio.to_thread(send))
            await until(lambda: collector.ledger.of_source("radar").sealed == 10 + 10 * BURST)
            await until(lambda: collector.ledger.of_source("links").sealed == 4)
            await until(lambda: collector.ledger.of_source("archive").sealed == 5, 40.0)
            ended.set()
            assert collector.ledger.of_source("a-radar-of-the-user").received == 0
            return await sending

    assert asyncio.run(scenario()) == {"radar": 110, "isl": 4, "optical": 5}
    frames = radar_frames(20, tracks=20)
    assert payloads(tmp_path, "radar", "high") == [*frames[:10], *(f for f in frames[10:] for _ in range(4))]
    assert len(payloads(tmp_path, "radar", "low")) == 10 * (BURST - 4)
    assert payloads(tmp_path, "isl") == beacons(4)
    assert [parse_optical_record(line).obs_id for line in payloads(tmp_path, "optical")] == [
        f"obs-{n}" for n in range(5)
    ]


def test_a_collector_without_the_sources_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="no collector runs"):
        Feeder(tmp_path, str(tmp_path))


def test_a_connection_that_the_collector_ended_for_its_silence_is_opened_again_F4_16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = segment("isl", "isl-frames", pack_records(beacons(4), [0] * 4), 1)
    expected = b"".join(len(frame).to_bytes(4, "little") + frame for frame in beacons(4))
    with socket.create_server(("127.0.0.1", 0)) as collector:
        ours = f"127.0.0.1:{collector.getsockname()[1]}"
        kinds = {"radar": ours, "isl": ours, "optical": "http://127.0.0.1/records"}
        sources = [{"kind": kind, "address": address} for kind, address in kinds.items()]
        monkeypatch.setattr(feeder_module, "read_report", lambda _home: {"sources": sources})
        with Feeder(tmp_path, str(tmp_path), ObservationArchive()).connected() as feeder:
            collector.accept()[0].close()
            feeder.send(sent)
            with collector.accept()[0] as opened_again:
                assert opened_again.recv(len(expected), socket.MSG_WAITALL) == expected


def test_the_archive_answers_in_order_of_time_whatever_it_was_given() -> None:
    archive = ObservationArchive()
    archive.add([RECORDS[3], RECORDS[1], b"no json"])
    found = json.loads(archive.since(0))
    assert [each["obs_id"] if isinstance(each, dict) else each for each in found] == ["obs-1", "no json", "obs-3"]
    assert len(json.loads(archive.since(NOW_NS - 17_000_000_000))) == 1


def test_a_collector_that_ends_while_it_is_answered_leaves_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    archive, address = ObservationArchive(), Address("127.0.0.1", free_port(0))
    archive.add([json.dumps({"timestamp_ns": 1, "remark": "x" * 2**24}).encode()])
    with archive.serving(address):
        with socket.create_connection((address.host, address.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close by a reset
            client.sendall(b"GET /?since=0 HTTP/1.0\r\n\r\n")
            client.recv(100)
        with urllib.request.urlopen(f"http://{address}/?since=2") as answer:
            assert json.load(answer) == []
    assert capfd.readouterr().err == ""

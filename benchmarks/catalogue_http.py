"""Lookups and puts over HTTP: `sda catalog serve` of the whole catalogue in its own process, one client that stays.

    python benchmarks/catalogue_http.py [--requests 30000]

The peer is the same server (uvicorn and Starlette) with an application that answers a constant of the same length. The
endpoint follows the catalogue meanwhile, as it always does.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from catalogue import catalogue, element_sets

from sda_platform.clock import MissionClock
from sda_platform.formats.omm import encode_omm_csv, encode_omm_json
from sda_platform.runtime.processes import free_port
from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform_tests.support.segments import catalogue_ids
from sda_platform_tests.support.small_catalogue import small_catalogue

_TURN, _WARM_UP = 2000, 200
_START_S = 120.0
PEER = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
one, many = (b"x" * int(length) for length in sys.argv[2:])
async def answer_one(request):
    return Response(one, media_type="application/json")
async def answer_many(request):
    return Response(many, media_type="application/json")
app = Starlette(routes=[Route("/objects/{norad_id}", answer_one), Route("/objects", answer_many)])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


class Connection:
    """A kept connection to a server on loopback."""

    def __init__(self, port: int) -> None:
        self._socket = connected(port)
        self._rest = b""

    def ask(self, request: bytes) -> bytes:
        """The body of the answer; the status must be 200."""
        self._socket.sendall(request)
        answer = self._rest
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(1 << 20)
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while len(body) < length:
            body += self._socket.recv(1 << 20)
        self._rest = body[length:]
        return body[:length]

    def get(self, path: str) -> bytes:
        """The body of a GET."""
        return self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def post(self, path: str, body: bytes, media_type: str) -> bytes:
        """The body of the answer to a POST."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}"
        return self.ask(head.encode() + b"\r\n\r\n" + body)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=30_000, help="lookups of each server")
    requests = parser.parse_args().requests
    ids = catalogue_ids()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        MissionClock(REFERENCE_TIME_NS, 0, 0.0).save(home)
        small_catalogue(home, ids)
        port = free_port(0)
        serve = ["-m", "sda_platform.cli.main", "--home", str(home), "catalog", "serve", "--port", str(port)]
        with running(serve):
            connection = Connection(port)
            found = connection.get("/objects/25544")
            assert json.loads(found)[0]["NORAD_CAT_ID"] == 25544
            with running(["-c", PEER, str(peer := free_port(0)), str(len(found)), "0"]):
                lookups({"lookup of an object": connection, "peer, a constant": Connection(peer)}, ids, requests)
            puts(connection)


def lookups(servers: Mapping[str, Connection], ids: Sequence[int], requests: int) -> None:
    """Time lookups of random objects, one after the other, in turns of the servers, and print the percentiles."""
    times_us: dict[str, list[float]] = {name: [] for name in servers}
    wanted = np.random.default_rng(1).choice(ids, requests).tolist()
    for start in range(0, requests, _TURN):
        for name, connection in servers.items():
            for place, number in enumerate(wanted[start : start + _TURN]):
                began = time.perf_counter_ns()
                connection.get(f"/objects/{number}")
                if place >= _WARM_UP:
                    times_us[name].append((time.perf_counter_ns() - began) / 1000)
    for name, times in times_us.items():
        turns = [np.percentile(turn, 99) for turn in np.array_split(times, requests // _TURN)]
        median, late, latest = np.percentile(times, [50, 99, 99.9])
        print(
            f"{name}: median {median:.0f} us, 99 % below {late:.0f} us ({min(turns):.0f} to {max(turns):.0f} in "
            f"turns of {_TURN:,}), 99.9 % below {latest:.0f} us",
            flush=True,
        )


def puts(connection: Connection) -> None:
    """The bursts: single puts one after the other, and many sets in one."""
    sets = element_sets(catalogue(12_000))
    began = time.perf_counter()
    for each in sets[:1800]:
        connection.post("/elements", encode_omm_json([each]), "application/json")
    print(f"1,800 objects, one put each, one after the other: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    answer = json.loads(connection.post("/elements", encode_omm_csv(sets), "text/csv"))
    seconds = time.perf_counter() - began
    print(f"12,000 sets in one put: {seconds:.2f} s, {answer['accepted']:,} accepted, the others refused by SGP4")


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[int]:
    """A Python process that ends with the block; its number."""
    process = subprocess.Popen([sys.executable, *arguments], env=dict(os.environ))
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def connected(port: int) -> socket.socket:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    raise TimeoutError("the server did not start")


if __name__ == "__main__":
    main()

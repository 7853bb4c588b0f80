"""`sda collector feed`: simulated sensors that send to the running collector over real sockets.

Radar frames go out as datagrams, beacons over one TCP connection. Telescopes' records are served by an archive at the
URL that the collector polls, which must be on this machine. Everything else that a scenario has lands as files do.
"""

import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sda_platform.cli.collector.report import read_report
from sda_platform.edge.address import Address
from sda_platform.formats.cutting import split_records
from sda_platform.http_gate import refusal_of
from sda_platform.landing.lander import seal
from sda_platform.runtime.errors import PlatformError
from sda_platform.simulation.world import SimulatedSegment

BURST = 10
"""How often each radar frame is sent in a burst: the copies are redundant samples."""
_AT_ONCE = 100
_PAUSE_S = 0.002


class ObservationArchive:
    """What telescopes have recorded, as their archive answers: JSON records since a time, in order of time."""

    def __init__(self) -> None:
        self._records: list[tuple[int, bytes]] = []
        self._lock = threading.Lock()

    def add(self, payloads: Iterable[bytes]) -> None:
        """Put records into the archive; one that is no JSON, as a faulty site sends it, is kept as text."""
        with self._lock:
            for payload in payloads:
                try:
                    record = json.loads(payload)
                except ValueError:
                    record = payload.decode("utf-8", "replace")
                found = record.get("timestamp_ns") if isinstance(record, dict) else None
                last_ns = self._records[-1][0] if self._records else 0
                time_ns = found if isinstance(found, int) else last_ns
                self._records.append((time_ns, json.dumps(record).encode()))
            self._records.sort(key=lambda each: each[0])

    def since(self, time_ns: int, until_ns: int = 2**63) -> bytes:
        """Return the answer to a request: the records from ``time_ns`` on, before ``until_ns``."""
        with self._lock:
            return b"[" + b",".join(record for at, record in self._records if time_ns <= at < until_ns) + b"]"

    @contextmanager
    def serving(self, address: Address) -> Iterator[None]:
        """Answer ``GET ?since=<ns>`` at ``address``."""
        archive = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if reason := refusal_of("GET", self.headers.items()):
                    self.send_error(403, reason)
                    return
                asked = parse_qs(urlsplit(self.path).query)
                times = {name: int(texts[0]) for name, texts in asked.items() if re.fullmatch(r"[0-9]{1,19}", texts[0])}
                content = archive.since(times.get("since", 0), times.get("until", 2**63))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with suppress(ConnectionError):  # a collector that is stopped asks no more
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Do nothing: the collector's log has the requests."""

        with ThreadingHTTPServer(address, Answer) as server:
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
            try:
                yield
            finally:
                server.shutdown()


class Feeder:
    """Sends segments of a simulated world to a collector; a context manager."""

    def __init__(self, home: Path, landing_root: str, archive: ObservationArchive | None = None) -> None:
        """Read where the collector of ``home`` listens; ``archive`` is one that answers already where it polls.

        Raises PlatformError where the collector lacks a source.
        """
        # Of a kind the first source: one that a person adds to the configuration is not of the simulated world.
        by_kind = {each["kind"]: each["address"] for each in reversed(read_report(home)["sources"])}
        missing = [kind for kind in ("radar", "isl", "optical") if not by_kind.get(kind)]
        if missing:
            raise PlatformError(f"the collector has no running source of kind {', '.join(missing)}")
        self._radar, self._links = Address.parse(by_kind["radar"]), Address.parse(by_kind["isl"])
        polled = urlsplit(by_kind["optical"])
        self._archive_at = Address(polled.hostname or "", polled.port or 80)
        if not self._archive_at.is_loopback:
            raise PlatformError(f"the archive at {by_kind['optical']} is not on this machine")
        self._landing_root = landing_root
        self._is_served = archive is not None
        self._archive = archive or ObservationArchive()
        self.sent = {"radar": 0, "isl": 0, "optical": 0}

    @contextmanager
    def connected(self) -> Iterator["Feeder"]:
        """Open the sockets for the context. Raises OSError."""
        with (
            nullcontext() if self._is_served else self._archive.serving(self._archive_at),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as self._datagrams,
        ):
            self._stream = socket.create_connection(self._links)
            try:
                yield self
            finally:
                self._stream.close()

    def send(self, segment: SimulatedSegment, *, copies: int = 1) -> None:
        """Send what the sensors of one segment sent; of radar frames ``copies`` of each."""
        payloads = [record.payload for record in split_records(segment.data, segment.segment_format)]
        if segment.feed == "radar":
            self._send_datagrams([payload for payload in payloads for _ in range(copies)])
        elif segment.feed == "isl":
            self._open_stream().sendall(b"".join(len(frame).to_bytes(4, "little") + frame for frame in payloads))
        elif segment.feed == "optical":
            self._archive.add(payloads)
        else:
            meta = replace(segment.meta, sealed_wall_time_ns=time.time_ns())
            seal(segment.data, meta, self._landing_root, stem=f"{segment.feed}-{segment.available_time_ns}")
            return
        self.sent[segment.feed] += len(payloads) * (copies if segment.feed == "radar" else 1)

    def _open_stream(self) -> socket.socket:
        """Return the connection for beacons, opened again if the collector has ended it: it ends those that are
        silent.
        """
        has_ended, _, _ = select.select([self._stream], [], [], 0)  # the collector sends nothing, only the end
        if has_ended:
            self._stream.close()
            self._stream = socket.create_connection(self._links)
        return self._stream

    def _send_datagrams(self, payloads: Sequence[bytes]) -> None:
        """Send them no faster than a receive buffer of the usual size takes them."""
        for start in range(0, len(payloads), _AT_ONCE):
            for payload in payloads[start : start + _AT_ONCE]:
                self._datagrams.sendto(payload, self._radar)
            time.sleep(_PAUSE_S)


def feed(
    segments: Iterable[SimulatedSegment],
    feeder: Feeder,
    *,
    now_ns: Callable[[], int],
    burst_from_ns: int | None,
    burst_ns: int,
) -> Iterator[SimulatedSegment]:
    """Send each segment when mission time reaches it, and yield it; radar tenfold during the burst."""
    for segment in segments:
        while segment.available_time_ns > now_ns():
            time.sleep(0.05)
        since_ns = -1 if burst_from_ns is None else segment.available_time_ns - burst_from_ns
        feeder.send(segment, copies=BURST if 0 <= since_ns < burst_ns else 1)
        yield segment

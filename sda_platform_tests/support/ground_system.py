"""A ground system of others: it knows docs/reference/space-packets.md and the library alone, and nothing of ours."""

import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from spacepackets.ccsds.time import CdsShortTimestamp
from spacepackets.ecss import PusTc, RequestId
from spacepackets.ecss.fields import PacketFieldU16
from spacepackets.ecss.pus_1_verification import FailureNotice, Service1Tm, VerificationParams


@dataclass
class GroundSystem:
    """It points where it is told, below 85 degrees, and takes two requests for anything: its antenna is slow."""

    apid: int
    received: list[PusTc] = field(default_factory=list)
    pointed: dict[str, tuple[float, float]] = field(default_factory=dict)
    token: int = 0
    beats: int = 0

    def commanded(self, packet: bytes) -> bytes:
        command = PusTc.unpack(packet)
        assert (command.apid, command.service) == (self.apid, 128)
        data = bytes(command.app_data)
        command_id = data[35:].decode() if command.message_subtype == 3 else data[19:].decode()
        known = any(bytes(each.app_data) == data for each in self.received)
        self.received.append(command)
        reports = [self._report(command, 1), self._report(command, 3)]
        if not known:
            return b"".join(reports)
        if command.message_subtype == 3:
            azimuth_deg, elevation_deg = struct.unpack_from(">dd", data, 19)
            if elevation_deg > 85:
                return b"".join([*reports, self._report(command, 8, "the keyhole")])
            self.pointed[command_id] = azimuth_deg, elevation_deg
        return b"".join([*reports, self._report(command, 7)])

    def _report(self, command: PusTc, subtype: int, reason: str = "") -> bytes:
        notice = FailureNotice(PacketFieldU16(32), reason.encode()) if reason else None
        about = VerificationParams(RequestId.from_pus_tc(command), failure_notice=notice)
        return bytes(Service1Tm(self.apid, subtype, CdsShortTimestamp.now().pack(), about).pack())

    def told(self, path: str, body: bytes) -> bytes:
        if path == "/commands":
            return self.commanded(body)
        asked = json.loads(body)
        if path == "/promotions":
            self.token += asked["above"] == self.token
            return json.dumps({"token": self.token}).encode()
        self.beats += 1
        heard = {"silence_s": {asked["uplink"]: 0.0}, "beats": {asked["uplink"]: self.beats}}
        return json.dumps({"token": self.token, "active": "primary" * bool(self.token), **heard}).encode()


@contextmanager
def serving(system: GroundSystem) -> Iterator[str]:
    """Its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = system.told(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

"""The simulated station's side of the link: HTTP on loopback, commands and reports in space packets.

Whatever comes is answered: what cannot be read with the reason, and what the station cannot store with its error.
"""

import json
import logging
import sqlite3
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import httpx
from pydantic import BaseModel, Field, ValidationError

from sda_platform.ground.commands import APID
from sda_platform.ground.message_guard import MessageGuard
from sda_platform.ground.space_packets import SOURCES, RefusedCommand, UnusablePacket, decode_command
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_messages import COMMANDS_PATH, HEARTBEATS_PATH, OLD_NUMBER, PROMOTIONS_PATH
from sda_platform.ground.verification import REFUSED, Report, encode_reports, reports_of
from sda_platform.http_gate import refusal_of
from sda_platform.lake.errors import Misconfigured
from sda_platform.refused_values import refusal_text

_log = logging.getLogger(__name__)
_REQUEST_WITHIN_S: Final = 10.0
_MOST_BYTES: Final = 65_536
_Number = Annotated[int, Field(ge=0, lt=2**63)]
_Name = Annotated[str, Field(min_length=1, max_length=64)]


class _Heartbeat(BaseModel):
    uplink: _Name


class _Promotion(_Heartbeat):
    above: _Number
    token: _Number | None = None


class _Answer(NamedTuple):
    status: int
    content: bytes
    form: str = "application/json"


class StationServer:
    """What ``station`` answers to a message: its APID is ``apid``."""

    def __init__(self, station: DurableStation, apid: int = APID, guard: MessageGuard | None = None) -> None:
        """Without a ``guard`` it accepts every sender."""
        self._station, self._apid, self._guard = station, apid, guard
        self._counts = count()

    def answer(self, path: str, headers: Mapping[str, str], content: bytes) -> tuple[_Answer, Mapping[str, str]]:
        """Return the answer, and the headers that sign it."""
        try:
            if self._guard is not None and (refusal := self._guard.refusal(path, headers, content)):
                refused = _Answer(refusal.status, refusal.body())
                return refused, self._signed(path, headers, refused) if refusal.status == OLD_NUMBER else {}
            found = self._accepted(path, content)
            return found, self._signed(path, headers, found)
        except (sqlite3.Error, Misconfigured) as error:
            # The sender would otherwise see a closed connection, and nothing of why.
            _log.error("the station cannot answer: %s", error)
            return _refused(503, f"the station cannot answer: {error}"), {}

    def _signed(self, path: str, headers: Mapping[str, str], found: _Answer) -> Mapping[str, str]:
        return self._guard.answer_headers(path, headers, found.status, found.content) if self._guard else {}

    def _accepted(self, path: str, content: bytes) -> _Answer:
        try:
            if path == COMMANDS_PATH:
                return _Answer(200, self._commanded(content), "application/octet-stream")
            if path == PROMOTIONS_PATH:
                asked = _Promotion.model_validate_json(content)
                return _json(token=self._station.promote(asked.uplink, asked.above, asked.token))
            if path == HEARTBEATS_PATH:
                self._station.heartbeat(_Heartbeat.model_validate_json(content).uplink)
                return _json(**self._station.state())
        except UnusablePacket as error:
            return _refused(400, str(error))
        except ValidationError as error:
            return _refused(400, refusal_text(error))
        return _refused(404, f"a station has no {path[:80]}")

    def _commanded(self, content: bytes) -> bytes:
        try:
            command = decode_command(content, self._apid)
        except RefusedCommand as error:
            now_ns = self._station.clock_ns()
            return encode_reports(
                [Report(REFUSED, error.request_id, now_ns, error.code, str(error))], self._apid, self._counts
            )
        answer = self._station.receive(command)
        reports = reports_of(answer, command["request_id"], self._station.clock_ns())
        return encode_reports(reports, self._apid, self._counts, SOURCES.get(command["sender"], 0))


def _json(**facts: object) -> _Answer:
    return _Answer(200, json.dumps(facts).encode())


def _refused(status: int, reason: str) -> _Answer:
    return _Answer(status, json.dumps({"reason": reason}).encode())


def serve(
    station: DurableStation, port: int, guard: MessageGuard | None = None, apid: int = APID
) -> ThreadingHTTPServer:
    """A server of ``station`` on loopback; port 0 takes a free one. Without a ``guard`` it accepts every sender."""
    server = StationServer(station, apid, guard)

    class Answer(BaseHTTPRequestHandler):
        timeout = _REQUEST_WITHIN_S

        def do_POST(self) -> None:
            if reason := refusal_of("POST", self.headers.items()):
                self._send(_refused(403, reason))
                return
            size = self.headers.get("Content-Length", "0")
            if not (size.isascii() and size.isdecimal() and len(size) < 20 and int(size) <= _MOST_BYTES):
                self._send(_refused(413, f"a message has a Content-Length of at most {_MOST_BYTES}"))
                return
            content = self.rfile.read(int(size))
            if len(content) < int(size):
                self._send(_refused(400, f"{len(content)} of {size} bytes came"))
                return
            self._send(*server.answer(self.path, httpx.Headers(self.headers.items(), encoding="iso-8859-1"), content))

        def _send(self, answer: _Answer, more: Mapping[str, str] = MappingProxyType({})) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.form)
            self.send_header("Content-Length", str(len(answer.content)))
            for name, value in more.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Nothing: each answer is one of many."""

    return ThreadingHTTPServer(("127.0.0.1", port), Answer)

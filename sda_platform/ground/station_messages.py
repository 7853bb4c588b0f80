"""Authenticated messages between uplinks and stations: a shared key, and a number that each sender raises.

The signature is HMAC-SHA256 over path, sender, number and body. A station accepts each number of a sender once, and
none below the highest, also after a restart. Its answers are signed over the number that they answer.
"""

import base64
import hmac
import json
import sqlite3
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import SigningKey, SigningKeys
from sda_platform.units import SECOND_NS

HEARTBEATS_PATH: Final = "/heartbeats"
_KEY, _SENDER, _NUMBER, _SIGNATURE = "Station-Key", "Station-Sender", "Station-Number", "Station-Signature"
_OLD_NUMBER: Final = 409
# Heartbeats need no write each: their durable bound is ahead, and a restarted station continues above it.
_AHEAD_NS: Final = 10 * SECOND_NS
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS numbers (sender TEXT, path TEXT, bound INTEGER NOT NULL, PRIMARY KEY (sender, path));
"""


def _signature(key: SigningKey, *parts: bytes) -> str:
    return base64.b64encode(hmac.digest(key.secret, b"\n".join(parts), "sha256")).decode()


@dataclass(frozen=True)
class RefusedMessage:
    """Why a station does not accept a message, as an HTTP answer."""

    status: int
    reason: str
    above: int = 0
    """The number that the sender's next one must exceed."""

    def body(self) -> bytes:
        """Return the answer's content."""
        return json.dumps({"reason": self.reason, "above": self.above}).encode()


class SignedMessages(httpx.Auth):
    """Signs the messages of uplink ``sender`` with the first of ``keys``, and verifies the answers.

    Numbers are the time, so that a restarted sender goes on above its former ones. ``refused`` takes the reason of a
    refusal, each reason once in a row. Raises httpx.RemoteProtocolError for an answer with a wrong signature.
    """

    requires_request_body = requires_response_body = True

    def __init__(
        self, keys: SigningKeys, sender: str, clock_ns: Callable[[], int], refused: Callable[[str], None] | None = None
    ) -> None:
        self._keys, self._sender, self._clock_ns = keys, sender, clock_ns
        self._refused, self._reason = refused, ""
        self._last: dict[str, int] = {}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request; sign it anew where the station has seen a higher number."""
        response = yield self._signed(request, 0)
        if response.status_code == _OLD_NUMBER:
            response = yield self._signed(request, int(response.json()["above"]))
        if response.is_error:
            self._report(response.json().get("reason", "") if response.content.startswith(b"{") else "")
            return
        self._reason = ""
        number = request.headers[_NUMBER].encode()
        expected = _signature(self._key(), b"answer", number, response.content)
        if not hmac.compare_digest(response.headers.get(_SIGNATURE, "").encode(), expected.encode()):
            raise httpx.RemoteProtocolError("the answer is not signed by the station", request=request)

    def _signed(self, request: httpx.Request, above: int) -> httpx.Request:
        key, path = self._key(), request.url.path
        # Each path is used by one thread.
        number = self._last[path] = max(self._clock_ns(), self._last.get(path, 0) + 1, above + 1)
        parts = path.encode(), self._sender.encode(), str(number).encode(), request.content
        headers = {_KEY: key.id, _SENDER: self._sender, _NUMBER: str(number), _SIGNATURE: _signature(key, *parts)}
        request.headers.update(headers)
        return request

    def _key(self) -> SigningKey:
        key = next(iter(self._keys), None)
        if key is None:
            raise Misconfigured("the file of SDA_STATION_KEYS has no key")
        return key

    def _report(self, reason: str) -> None:
        if self._refused is not None and reason and reason != self._reason:
            self._refused(reason)
        self._reason = reason


class MessageGuard:
    """What a station accepts: messages signed by one of ``keys``, each once; its memory is a file at ``path``."""

    def __init__(self, keys: SigningKeys, path: Path) -> None:
        self._keys, self._lock = keys, threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30.0)
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)
        rows = self._database.execute("SELECT sender, path, bound FROM numbers")
        self._bound: dict[tuple[str, str], int] = {(sender, where): bound for sender, where, bound in rows}
        self._highest = dict(self._bound)

    def refusal(self, path: str, headers: Mapping[str, str], body: bytes) -> RefusedMessage | None:
        """Return why a message is not accepted; None: it is, and no other with its number will be."""
        sender, number = headers.get(_SENDER, ""), headers.get(_NUMBER, "")
        key = self._key(headers)
        if key is None:
            named = headers.get(_KEY)
            return RefusedMessage(401, f"the station has no key {named!r}" if named else "the message is not signed")
        parts = path.encode(), sender.encode(), number.encode(), body
        if not hmac.compare_digest(headers.get(_SIGNATURE, "").encode(), _signature(key, *parts).encode()):
            return RefusedMessage(401, f"the signature is not that of key {key.id!r}")
        with self._lock:
            highest = self._highest.get((sender, path), 0)
            if int(number) <= highest:
                return RefusedMessage(_OLD_NUMBER, f"number {number} is not above {highest}", highest)
            self._accept(sender, path, int(number))
        return None

    def answer_headers(self, headers: Mapping[str, str], answer: bytes) -> dict[str, str]:
        """Return what an answer to an accepted message with ``headers`` adds."""
        key = self._key(headers)
        return {_SIGNATURE: _signature(key, b"answer", headers[_NUMBER].encode(), answer)} if key else {}

    def _key(self, headers: Mapping[str, str]) -> SigningKey | None:
        return next((each for each in self._keys if each.id == headers.get(_KEY)), None)

    def _accept(self, sender: str, path: str, number: int) -> None:
        if number > self._bound.get((sender, path), 0):
            bound = number + _AHEAD_NS if path == HEARTBEATS_PATH else number
            self._database.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?, ?)", (sender, path, bound))
            self._bound[sender, path] = bound
        self._highest[sender, path] = number

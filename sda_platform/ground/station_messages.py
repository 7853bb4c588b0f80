"""Authenticated messages between uplinks and stations: a shared key, and a number that each sender raises.

The signature is HMAC-SHA256 over path, sender, number and body. A station accepts each number of a sender once, and
none below the highest (`message_guard`). Its answers are signed over the number that they answer.
"""

import base64
import hmac
from collections.abc import Callable, Generator
from typing import Final

import httpx

from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import SigningKey, SigningKeys

HEARTBEATS_PATH: Final = "/heartbeats"
KEY, SENDER, NUMBER, SIGNATURE = "Station-Key", "Station-Sender", "Station-Number", "Station-Signature"
"""Names of the headers."""
OLD_NUMBER: Final = 409


def signature(key: SigningKey, *parts: bytes) -> str:
    """Compute the signature of these ``parts``, base64."""
    return base64.b64encode(hmac.digest(key.secret, b"\n".join(parts), "sha256")).decode()


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
        if response.status_code == OLD_NUMBER:
            response = yield self._signed(request, int(response.json()["above"]))
        if response.is_error:
            self._report(response.json().get("reason", "") if response.content.startswith(b"{") else "")
            return
        self._reason = ""
        number = request.headers[NUMBER].encode()
        expected = signature(self._key(), b"answer", number, response.content)
        if not hmac.compare_digest(response.headers.get(SIGNATURE, "").encode(), expected.encode()):
            raise httpx.RemoteProtocolError("the answer is not signed by the station", request=request)

    def _signed(self, request: httpx.Request, above: int) -> httpx.Request:
        key, path = self._key(), request.url.path
        # Each path is used by one thread.
        number = self._last[path] = max(self._clock_ns(), self._last.get(path, 0) + 1, above + 1)
        parts = path.encode(), self._sender.encode(), str(number).encode(), request.content
        headers = {KEY: key.id, SENDER: self._sender, NUMBER: str(number), SIGNATURE: signature(key, *parts)}
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

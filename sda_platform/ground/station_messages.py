"""Authenticated messages between uplinks and stations: a shared key, and a number that each sender raises.

The signature is HMAC-SHA256 over path, sender, number and body. A station accepts each number of a sender once, and
none below the highest (`message_guard`). Its answers are signed over path, sender and number of the message that they
answer.
"""

import base64
import hmac
from collections.abc import Callable, Generator, Mapping
from typing import Final

import httpx

from sda_platform.lake.errors import Misconfigured
from sda_platform.orchestration.webhooks import SigningKey, SigningKeys

COMMANDS_PATH, PROMOTIONS_PATH, HEARTBEATS_PATH = "/commands", "/promotions", "/heartbeats"
KEY, SENDER, NUMBER, SIGNATURE = "Station-Key", "Station-Sender", "Station-Number", "Station-Signature"
"""Names of the headers."""
OLD_NUMBER: Final = 409


def signature(key: SigningKey, *parts: bytes) -> str:
    """Compute the signature of these ``parts``, base64."""
    return base64.b64encode(hmac.digest(key.secret, b"\n".join(parts), "sha256")).decode()


def answer_signature(key: SigningKey, path: str, headers: Mapping[str, str], status: int, content: bytes) -> str:
    """Compute the signature of an answer with this HTTP ``status`` to the message with ``headers`` to ``path``."""
    message = path, headers.get(SENDER, ""), headers.get(NUMBER, "")
    return signature(key, b"answer", str(status).encode(), *(each.encode() for each in message), content)


class ReportedRefusals(httpx.Auth):
    """Passes to ``refused`` why a station refuses messages, of each path each reason once in a row; it signs none."""

    requires_response_body = True

    def __init__(self, refused: Callable[[str], None] | None = None) -> None:
        self._refused, self._reasons = refused, dict[str, str]()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send a request as it is."""
        self._report((yield request))

    def _report(self, response: httpx.Response) -> None:
        reason = _reason(response) if response.is_error else ""
        self._show(response.request, response.reason_phrase if reason is None else reason)

    def _show(self, request: httpx.Request, reason: str) -> None:
        if self._refused is not None and reason and reason != self._reasons.get(request.url.path):
            self._refused(reason)
        self._reasons[request.url.path] = reason


class SignedMessages(ReportedRefusals):
    """Signs the messages of uplink ``sender`` with the first of ``keys``, and verifies the answers.

    Numbers are the time, so that a restarted sender goes on above its former ones. ``refused`` takes the reason of a
    refusal, each reason once in a row. Raises httpx.RemoteProtocolError for an answer with a wrong signature, and
    httpx.LocalProtocolError while the keys cannot be read.
    """

    requires_request_body = True

    def __init__(
        self, keys: SigningKeys, sender: str, clock_ns: Callable[[], int], refused: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(refused)
        self._keys, self._sender, self._clock_ns = keys, sender, clock_ns
        self._last: dict[str, int] = {}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request; sign it anew where the station has seen a higher number."""
        key = self._key(request)
        response = yield self._signed(key, request, 0)
        if response.status_code == OLD_NUMBER:
            # Only the station may raise the number: it does not go down again.
            self._verify(key, request, response)
            response = yield self._signed(key, request, int(response.json()["above"]))
        self._report(response)
        if not response.is_error:
            self._verify(key, request, response)

    def _signed(self, key: SigningKey, request: httpx.Request, above: int) -> httpx.Request:
        path = request.url.path
        # Each path is used by one thread.
        number = self._last[path] = max(self._clock_ns(), self._last.get(path, 0) + 1, above + 1)
        parts = path.encode(), self._sender.encode(), str(number).encode(), request.content
        headers = {KEY: key.id, SENDER: self._sender, NUMBER: str(number), SIGNATURE: signature(key, *parts)}
        request.headers.update(headers)
        return request

    def _verify(self, key: SigningKey, request: httpx.Request, response: httpx.Response) -> None:
        expected = answer_signature(key, request.url.path, request.headers, response.status_code, response.content)
        if not hmac.compare_digest(response.headers.get(SIGNATURE, "").encode(), expected.encode()):
            raise httpx.RemoteProtocolError("the answer is not signed by the station", request=request)

    def _key(self, request: httpx.Request) -> SigningKey:
        try:
            key = next(iter(self._keys), None)
            reason = "the file of SDA_STATION_KEYS has no key"
        except Misconfigured as error:
            key, reason = None, str(error)
        if key is None:
            # As any failed call: the file may be back for the next one.
            self._show(request, reason)
            raise httpx.LocalProtocolError(reason, request=request)
        return key


def _reason(response: httpx.Response) -> str | None:
    """Return why a station refused; None: something else did, such as a proxy."""
    try:
        answer = response.json()
    except (ValueError, RecursionError):  # RecursionError: deep nesting
        return None
    reason = answer.get("reason") if isinstance(answer, dict) else None
    return reason if isinstance(reason, str) else None

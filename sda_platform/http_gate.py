"""The gate before the platform's HTTP servers: which requests a browser may send on behalf of a page.

A browser reaches servers of its machine and its network for any page that it shows. Three ways lead through an open
loopback port: a page of another origin sends a form or a `no-cors` request; a page's own name resolves to this machine
(DNS rebinding); an image or a redirect makes a GET that changes something. The gate closes the first two; servers that
it protects change nothing by GET.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REFUSED_HOST: Final = "the request names another host: SDA_UI_URL and SDA_HTTP_HOSTS state the names of this server"
BASIC_CHALLENGE: Final = 'Basic realm="SDA platform", charset="UTF-8"'
"""The header `WWW-Authenticate` that has a browser ask for name and token."""
READING: Final = frozenset({"GET", "HEAD"})
"""Methods of requests that change nothing."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_ONCE: Final = ("host", "origin", "content-type", "authorization", "sec-fetch-site")
"""Two of these could be read in two ways, by the gate and by what it protects."""
_POLICY_VIOLATION: Final = 1008
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d+)?", re.ASCII)


class HttpGate:
    """An ASGI application that passes to ``app`` what may pass, and answers 403 with the reason to the rest.

    - The Host of a request is an address, a name without a dot, `localhost` or one of ``hosts``. A page of a foreign
      name, which resolves to this machine, has that name there.
    - A request that may change something, and a WebSocket, come from a page of the same origin, or from no page.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one connection on, or refuse it."""
        is_request = scope["type"] in ("http", "websocket")
        if is_request and (reason := refusal(scope, self._hosts)) is not None:
            await refuse(scope, send, reason)
        else:
            await self._app(scope, receive, _without_frames(send) if scope["type"] == "http" else send)


def _without_frames(send: Send) -> Send:
    """Return ``send`` that forbids pages of others to show an answer as a part of theirs, where clicks would be led."""

    async def framed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"x-frame-options", b"SAMEORIGIN")]}
        await send(message)

    return framed


def refusal(scope: Scope, hosts: Collection[str]) -> str | None:
    """Return why the request of ``scope`` may not pass; None if it may."""
    sent = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    return refusal_of(scope.get("method", "WEBSOCKET"), sent, hosts)


def refusal_of(method: str, sent: Sequence[tuple[str, str]], hosts: Collection[str] = ()) -> str | None:
    """Return why a request with the headers ``sent`` may not pass; None if it may."""
    names = [name.lower() for name, _ in sent]
    if any(names.count(name) > 1 for name in _ONCE):
        return "the request has a header twice that says who sends it"
    headers = {name.lower(): value for name, value in sent}
    host = headers.get("host", "")
    if not is_own_host(host, hosts):
        return REFUSED_HOST
    if method in READING:
        return None
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and _server_of(origin) != host.lower():
        return "a page of another origin may not write here"
    return None if site in _OWN_SITES else "a page of another site may not write here"


def _server_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # a bracket that is none of an address
        return None


def is_own_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a server may be reached as ``host`` (name or address, with or without a port).

    An address and a name without a dot cannot be the name of an attacker's page.
    """
    if not host:
        return True  # HTTP/1.0, which no browser speaks
    if (found := _HOST.fullmatch(host)) is None:
        return False
    name = found["name"].strip("[]").lower()
    if name in hosts or name.endswith(".localhost") or ("." not in name and ":" not in name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def headers_of(scope: Scope) -> Mapping[str, str]:
    """Return the headers of a request by their names in lower case; of a repeated one the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def basic_login(authorization: str) -> tuple[str, str]:
    """Return name and password of a header ``authorization`` (HTTP Basic); both are empty in any other."""
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, password = base64.b64decode(sent.strip(), validate=True).decode().partition(":")
    except ValueError:  # it is not base64, or no text
        return "", ""
    return name, password


async def refuse(
    scope: Scope, send: Send, reason: str, status: int = 403, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with ``reason`` and ``more`` headers; a WebSocket is closed."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": reason[:100]})
        return
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

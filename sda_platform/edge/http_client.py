"""HTTP requests of collectors: bounded in time and size, repeated after Retry-After, stopped by a breaker.

Redirects are followed at the same server only, and a name may not resolve to this machine or a private network unless
that is declared. Otherwise a partner's server, or name server, could send requests to services inside. The address that
was judged is the one that is connected to: a name server may answer otherwise a moment later.

Retried: no connection, time-outs, 408, 429 and 5xx. Not retried: any other 4xx, and what is larger than allowed.
"""

import asyncio
import ipaddress
import socket
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.request import getproxies

import httpx
from typing_extensions import override

from sda_platform.edge.sources.source import SourceFailed
from sda_platform.resilience import Breaker, BreakerState, RetryPolicy, Transient, retry_after_s

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


_MOST_REDIRECTS: Final = 3
_ENCODINGS: Final = {"Accept-Encoding": "gzip"}
_GZIP: Final = ("gzip", "x-gzip")
_GZIP_WINDOW: Final = 31
_PIECE_BYTES: Final = 2**18


class HttpFailed(SourceFailed, Transient):
    """The server did not answer as it should; trying again later may help."""


class HttpRefused(SourceFailed):
    """The server refuses the request, or its answer cannot be used; repeating it at once does not help."""


class HttpTooLarge(HttpRefused):
    """The answer has more bytes than are taken."""


class HttpTooSlow(HttpFailed):
    """The answer was not there in time."""


Sink = Callable[[bytes], Awaitable[None]]
"""Takes a piece of an answer's body."""


@dataclass(frozen=True)
class HttpBounds(RetryPolicy):
    """Bounds of one request; seconds and bytes. ``longest_pause_s`` also caps the pause of a Retry-After header."""

    connect_s: float = 3.0
    total_s: float = 15.0
    max_bytes: int = 64 * 2**20


HTTP_BOUNDS: Final = HttpBounds()


@dataclass(frozen=True)
class HttpAnswer:
    """Status, headers (names in lower case) and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class HttpClient:
    """One pool of connections and one breaker for one server; ``internal`` names may resolve to private addresses.

    ``sleep`` is for tests.
    """

    def __init__(
        self,
        bounds: HttpBounds = HTTP_BOUNDS,
        *,
        internal: Collection[str] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._bounds, self._sleep = bounds, sleep
        self._internal = frozenset(name.lower() for name in internal)
        limits = httpx.Limits(max_connections=4, max_keepalive_connections=2, keepalive_expiry=90.0)
        timeout = httpx.Timeout(bounds.total_s, connect=bounds.connect_s)
        # Behind a proxy of the environment, the proxy connects.
        self._has_proxy = bool(getproxies().keys() & {"http", "https", "all"})
        transport = (
            None if self._has_proxy else _JudgedTransport(httpx.AsyncHTTPTransport(limits=limits), self._internal)
        )
        self._client = httpx.AsyncClient(
            timeout=timeout, limits=limits, follow_redirects=False, transport=transport, headers=_ENCODINGS
        )
        self._breaker = Breaker()

    @property
    def breaker_state(self) -> BreakerState:
        """The breaker's state now."""
        return self._breaker.state(time.monotonic())

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def get(
        self, url: str, *, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None,
        total_s: float | None = None, sink: Sink | None = None, max_bytes: int | None = 0,
    ) -> HttpAnswer:  # fmt: skip
        """A successful answer, or 304. Raises HttpFailed once all attempts failed, HttpRefused.

        ``sink`` takes the body as it comes, in the place of the answer's content; with it, allow one attempt only.
        ``max_bytes`` bounds the body, None: it has no bound, 0: that of the client.
        """
        request = self._client.build_request("GET", httpx.URL(url).copy_merge_params(dict(params or {})))
        request.headers.update(dict(headers or {}))
        return await self.send(request, total_s=total_s, sink=sink, max_bytes=max_bytes)

    async def post(self, url: str, form: Mapping[str, str]) -> HttpAnswer:
        """As `get`, for a form."""
        return await self.send(self._client.build_request("POST", url, data=dict(form)))

    async def send(
        self, request: httpx.Request, *, total_s: float | None = None, sink: Sink | None = None,
        max_bytes: int | None = 0,
    ) -> HttpAnswer:  # fmt: skip
        """Send a request as often as needed and allowed."""
        within_s = total_s or self._bounds.total_s
        most = self._bounds.max_bytes if max_bytes == 0 else max_bytes
        return await self._bounds.call_async(
            lambda: self._attempt(request, within_s, sink, most), seed=str(time.time_ns()), sleep=self._sleep
        )

    async def _attempt(self, request: httpx.Request, total_s: float, sink: Sink | None, most: int | None) -> HttpAnswer:
        began_s, shown = time.monotonic(), str(request.url.copy_with(query=None, userinfo=b""))
        if not self._breaker.allows(began_s):
            raise HttpFailed(f"{shown}: no request, because most recent requests failed")
        is_failure = True
        try:
            async with asyncio.timeout(total_s):
                answer = await self._answer(request, shown, sink, most)
            is_failure = False
            return answer
        except (httpx.TransportError, TimeoutError) as error:
            is_slow = isinstance(error, (TimeoutError, httpx.ReadTimeout))
            text = f"{shown}: {type(error).__name__}: {error}".rstrip(": ")
            raise (HttpTooSlow if is_slow else HttpFailed)(text) from error
        except SourceFailed as failure:
            is_failure = isinstance(failure, HttpFailed)  # else it answers
            raise
        finally:
            self._breaker.record(is_failure, began_s=began_s, now_s=time.monotonic())

    async def _response(self, request: httpx.Request, shown: str) -> httpx.Response:
        """Return the response, after at most three redirects at the same server. Raises HttpRefused for others."""
        for _ in range(_MOST_REDIRECTS + 1):
            if self._has_proxy:
                await _judged(request.url, self._internal)
            response = await self._client.send(request, stream=True)
            if (following := response.next_request) is None:
                return response
            await response.aclose()
            if not _is_same_server(request.url, following.url):
                raise HttpRefused(f"{shown} redirects to another server, {following.url.host}: name that one instead")
            request = following
        raise HttpRefused(f"{shown} redirects more than {_MOST_REDIRECTS} times")

    async def _answer(self, request: httpx.Request, shown: str, sink: Sink | None, most: int | None) -> HttpAnswer:
        response = await self._response(request, shown)
        try:
            status = response.status_code
            if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                failure = HttpFailed(f"{shown} answered {status}")
                failure.retry_after_s = retry_after_s(
                    response.headers.get("Retry-After"), now=datetime.now(UTC), cap_s=self._bounds.longest_pause_s
                )
                raise failure
            if not response.is_success and status != HTTPStatus.NOT_MODIFIED:
                raise HttpRefused(f"{shown} answered {status}")
            content, size = bytearray(), int(response.headers.get("Content-Length", "0"))
            if most is not None and size > most:
                raise HttpTooLarge(f"{shown} sends {size:,} bytes, more than {most:,}")
            size = 0
            async for chunk in _decoded(response, shown):
                size += len(chunk)
                if most is not None and size > most:
                    raise HttpTooLarge(f"{shown} sends more than {most:,} bytes")
                if sink is None:
                    content += chunk
                else:
                    await sink(chunk)
            return HttpAnswer(status, {name.lower(): value for name, value in response.headers.items()}, bytes(content))
        finally:
            await response.aclose()


async def _decoded(response: httpx.Response, shown: str) -> AsyncIterator[bytes]:
    """Yield the body in pieces of at most `_PIECE_BYTES`, however far it expands. Raises HttpRefused and HttpFailed.

    httpx would expand a whole chunk, through any number of encodings, before its size could be counted.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity", *_GZIP):
        raise HttpRefused(f"{shown} sends its answer as {encoding[:40]!r}; gzip is the only encoding that is read")
    decoder = zlib.decompressobj(_GZIP_WINDOW) if encoding in _GZIP else None
    is_whole = True
    async for raw in response.aiter_raw():
        if decoder is None:
            yield raw
            continue
        left = raw
        while left:
            try:
                piece = decoder.decompress(left, _PIECE_BYTES)
            except zlib.error as error:
                raise HttpFailed(f"{shown}: the answer is no sound gzip: {error}") from error
            left, is_whole = decoder.unconsumed_tail, decoder.eof
            if is_whole:  # further members follow
                left, decoder = decoder.unused_data, zlib.decompressobj(_GZIP_WINDOW)
            yield piece
            await asyncio.sleep(0)  # others have their turn
    if not is_whole:
        raise HttpFailed(f"{shown}: the answer breaks off within its gzip")


def _is_same_server(one: httpx.URL, other: httpx.URL) -> bool:
    """Return whether both name one server; a server may lead from plain HTTP to HTTPS at the usual ports."""
    to_tls = (one.scheme, one.port, other.scheme, other.port) == ("http", None, "https", None)
    return one.host == other.host and ((one.scheme, one.port) == (other.scheme, other.port) or to_tls)


class _JudgedTransport(httpx.AsyncBaseTransport):
    """Connects to the very addresses that were judged; the name goes into the TLS handshake and the Host header."""

    def __init__(self, inner: httpx.AsyncBaseTransport, internal: Collection[str]) -> None:
        self._inner, self._internal = inner, internal

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        places = await _judged(request.url, self._internal)
        extensions = {**request.extensions, "sni_hostname": request.url.host}
        for number, place in enumerate(places, 1):
            pinned = httpx.Request(
                request.method, request.url.copy_with(host=place), headers=request.headers, stream=request.stream,
                extensions=extensions if place != request.url.host else request.extensions,
            )  # fmt: skip
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if number == len(places):
                    raise
        raise HttpFailed(f"{request.url.host} has no address")

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


async def _judged(url: httpx.URL, internal: Collection[str]) -> list[str]:
    """Return the addresses of the name in ``url``, in the order of the resolver.

    Raises HttpRefused where one of them is this machine, or is private and the name is not ``internal``; HttpFailed for
    an unknown name. `localhost`, addresses, and names without a dot are meant as they are written.
    """
    if url.host == "localhost" or _address(url.host) is not None:
        return [url.host]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 0, type=socket.SOCK_STREAM)
    except OSError as error:
        raise HttpFailed(f"{url.host}: {error.strerror or error}") from error
    places = list(dict.fromkeys(str(each[4][0]) for each in found))
    for place in places:
        address = _address(place.partition("%")[0])
        if address is None or address.is_loopback or address.is_link_local or address.is_unspecified:
            raise HttpRefused(f"{url.host} resolves to {place}, which is this machine: write the address itself")
        if not address.is_global and "." in url.host and url.host.lower() not in internal:
            raise HttpRefused(f"{url.host} resolves to {place} in a private network: list the name in internal_names")
    return places


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read the address, an IPv4-mapped one as IPv4; None for a name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found

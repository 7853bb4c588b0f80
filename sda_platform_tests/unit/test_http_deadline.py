"""Headers of HTTP requests have a deadline: a peer who sends them slowly holds no connection (slowloris)."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sda_platform.edge.address import Address
from sda_platform.edge.http_server import HttpServer

_REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
_LATE = b"HTTP/1.1 408 Request Timeout"


async def _answer(request: Request) -> Response:
    await request.body()
    return PlainTextResponse("yes")


def _server(*, headers_s: float, max_connections: int = 64) -> HttpServer:
    app = Starlette(routes=[Route("/", _answer, methods=["GET", "POST"])])
    return HttpServer(app, Address("127.0.0.1", 0), headers_s=headers_s, max_connections=max_connections)


async def _connected(server: HttpServer, peer: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = server.address.rpartition(":")
    return await asyncio.open_connection(host, int(port), local_addr=(peer, 0))


async def _until_closed(server: HttpServer, parts: Sequence[bytes]) -> bytes:
    """Send ``parts``, then nothing; what the server answered until it closed."""
    reader, writer = await _connected(server)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.01)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        ([], [_LATE]),
        ([b"GE", b"T / HTTP/1.1\r\n", b"host: "], [_LATE]),
        ([_REQUEST, b"GET / HTTP/1.1\r\nslow: "], [b"HTTP/1.1 200 OK", _LATE]),
    ],
    ids=["no request", "headers", "headers of a later request"],
)
def test_a_connection_with_slow_headers_is_closed_at_its_deadline__F1(sent: list[bytes], answers: list[bytes]) -> None:
    async def scenario() -> bytes:
        async with asyncio.timeout(30), _server(headers_s=0.2) as server:
            return await _until_closed(server, sent)

    found = asyncio.run(scenario())
    assert re.findall(rb"HTTP/1\.1 [^\r]+", found) == answers


def test_bytes_that_trickle_in_do_not_extend_the_deadline__F1() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30), _server(headers_s=0.2) as server:
            reader, writer = await _connected(server)
            writer.write(b"GET / HTTP/1.1\r\nslow: ")
            while not reader.at_eof() and reader.exception() is None:
                writer.write(b"x")
                await asyncio.sleep(0.02)
            writer.close()

    asyncio.run(scenario())


def test_slow_peers_take_no_place_from_others_and_their_number_is_bounded__F1() -> None:
    async def scenario() -> None:
        async with asyncio.timeout(30), _server(headers_s=0.5, max_connections=8) as server:
            slow = [await _connected(server) for _ in range(40)]
            for _, writer in slow:
                writer.write(b"GET / HTTP/1.1\r\n")
            reader, writer = await _connected(server, "127.0.0.2")
            writer.write(_REQUEST)
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n", "another peer has a place"
            writer.close()
            ends = await asyncio.gather(*(reader.read() for reader, _ in slow), return_exceptions=True)
            late = [end for end in ends if isinstance(end, bytes) and end.startswith(_LATE)]
            assert len(late) == 4  # half of the places; the others were closed at once
            reader, writer = await _connected(server)
            writer.write(_REQUEST)
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            for _, each in (*slow, (reader, writer)):
                each.close()

    asyncio.run(scenario())


def test_complete_headers_end_the_deadline__F1() -> None:
    """A body has as long as its handler gives it."""

    async def scenario() -> None:
        async with asyncio.timeout(30), _server(headers_s=0.3) as server:
            reader, writer = await _connected(server)
            writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n")
            await asyncio.sleep(0.4)
            writer.write(b"x")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            writer.close()

    asyncio.run(scenario())


def test_a_peer_that_does_not_read_its_answer_is_closed__44() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def large(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(1000):
                await send({"type": "http.response.body", "body": bytes(2**16), "more_body": True})
            await send({"type": "http.response.body"})
            ended.set()

        server = HttpServer(large, Address("127.0.0.1", 0), stalled_s=0.1)
        async with asyncio.timeout(30), server:
            reader, writer = await _connected(server)
            writer.write(_REQUEST)
            await reader.readexactly(1)
            await ended.wait()  # the answer ends without its reader
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1000 * 2**16)
            writer.close()

    asyncio.run(scenario())


_ENDLESS = {
    "headers": [b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 4_000],
    "one header": [b"GET / HTTP/1.1\r\na: ", b"b" * 32_768],
    "a path": [b"GET /", b"b" * 32_768],
    "trailers": [b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 4_000],
    "sizes of chunks": [b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", b"1;" + b"x" * 32_768],
}


@pytest.mark.parametrize("which", _ENDLESS)
def test_headers_without_end_fill_no_memory__S7(which: str) -> None:
    begin, more = _ENDLESS[which]

    async def scenario() -> int:
        async with asyncio.timeout(60), _server(headers_s=50.0) as server:
            reader, writer = await _connected(server)
            writer.write(begin)
            sent = 0
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof() and sent < 2**26:
                    writer.write(more)
                    await writer.drain()
                    await asyncio.sleep(0)
                    sent += len(more)
            writer.close()
            return sent

    assert asyncio.run(scenario()) < 2**24, "what the kernel's buffers hold, and not 64 MiB"


def test_a_body_in_small_chunks_is_taken() -> None:
    async def scenario() -> bytes:
        async with asyncio.timeout(30), _server(headers_s=5.0) as server:
            reader, writer = await _connected(server)
            writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
            writer.write(b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
            await writer.drain()
            line = await reader.readline()
            writer.close()
            return line

    assert asyncio.run(scenario()) == b"HTTP/1.1 200 OK\r\n"

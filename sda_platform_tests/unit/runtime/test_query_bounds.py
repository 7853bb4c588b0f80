"""What one address may ask of the UI: fields of a query, queries at a time, connections; others are answered."""

import asyncio
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import parse
from starlette.requests import Request
from starlette.responses import JSONResponse
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from sda_platform.runtime.query_bounds import MOST_FIELDS, named_fields
from sda_platform.runtime.role_webserver import AT_ONCE, MOST_QUERIES, RoleWebserver
from sda_platform_tests.support.served_ui import served, ui

TYPES = "fragment F on __Schema { types { name fields { name type { name } } } }"


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("{ a b { c } }", 3),
        ("query A { a } query B { b c }", 3),
        ("{ ... on X { a b } ... { c } }", 3),
        ("{ x: a { ...F } y: a { ...F } } fragment F on X { b c { d } }", 8),
        ("{ ...A } fragment A on X { p { ...B } q { ...B } } fragment B on X { p { n } q { n } }", 10),
        ("{ ...Missing a }", 1),
    ],
)  # fmt: skip
def test_fields_are_counted_with_fragments_written_out(query: str, fields: int) -> None:
    assert named_fields(parse(query)) == fields


def test_a_count_that_no_memory_holds_is_still_counted() -> None:
    doubling = " ".join(f"fragment F{n} on X {{ a {{ ...F{n + 1} }} b {{ ...F{n + 1} }} }}" for n in range(100))
    assert named_fields(parse(f"{{ ...F0 }} {doubling} fragment F100 on X {{ a }}")) > 2**100
    with pytest.raises(RecursionError):
        named_fields(parse("{ ...A } fragment A on X { a { ...A } }"))


def test_a_query_with_too_many_fields_is_refused_with_their_number(tmp_path: Path) -> None:
    few = TYPES + "{" + " ".join(f"a{n}: __schema {{ ...F }}" for n in range(2)) + "}"
    many = TYPES + "{" + " ".join(f"a{n}: __schema {{ ...F }}" for n in range(MOST_FIELDS)) + "}"
    itself = "{ ...A } fragment A on Query { ...A }"
    with ui(tmp_path, has_users=False) as app, served(app) as port:
        answers = [
            httpx.post(f"http://127.0.0.1:{port}/graphql", json={"query": q}, timeout=60) for q in (few, many, itself)
        ]
    assert [each.status_code for each in answers] == [200, 400, 400]
    assert f"{7 * MOST_FIELDS:,} fields" in answers[1].text
    assert "nested too deeply" in answers[2].text or "itself" in answers[2].text


def test_an_address_waits_for_its_own_queries_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    async def play() -> None:
        may_end = asyncio.Event()

        async def answer(_: Any, request: Request) -> JSONResponse:
            begun.append(request.client.host if request.client else "")
            await may_end.wait()
            return JSONResponse({})

        monkeypatch.setattr("dagster_webserver.webserver.DagsterWebserver.execute_graphql_request", answer)
        web = RoleWebserver.__new__(RoleWebserver)
        web._bound_queries()
        request = {
            host: Request({"type": "http", "client": (host, 1), "headers": []}) for host in ("192.0.2.1", "192.0.2.2")
        }
        greedy = [asyncio.create_task(web.execute_graphql_request(request["192.0.2.1"])) for _ in range(MOST_QUERIES)]
        await asyncio.sleep(0)
        other = asyncio.create_task(web.execute_graphql_request(request["192.0.2.2"]))
        while "192.0.2.2" not in begun:
            await asyncio.sleep(0)
        assert begun.count("192.0.2.1") == AT_ONCE
        may_end.set()
        status = [(await each).status_code for each in greedy]
        assert (status.count(200), status.count(429)) == (MOST_QUERIES // 2, MOST_QUERIES // 2)
        assert (await other).status_code == 200
        assert (await web.execute_graphql_request(request["192.0.2.1"])).status_code == 200

    asyncio.run(play())


def test_websockets_count_as_connections_of_their_address(tmp_path: Path) -> None:
    held: list[ClientConnection] = []
    with ui(tmp_path, has_users=False) as app, served(app, most_connections=16) as port, ExitStack() as opened:
        with suppress(OSError, EOFError, WebSocketException):  # as the server closes the first that is too many
            for _ in range(16):
                page = connect(f"ws://127.0.0.1:{port}/graphql", subprotocols=["graphql-ws"])  # type: ignore[list-item]
                held.append(opened.enter_context(page))
        assert len(held) == 8, "half of the places"
        with socket.create_connection(("127.0.0.1", port), timeout=20, source_address=("127.0.0.2", 0)) as other:
            other.sendall(b"GET /server_info HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")

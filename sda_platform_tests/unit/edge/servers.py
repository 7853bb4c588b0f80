"""HTTP servers that answer what a test states, on loopback."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sda_platform.edge.address import Address
from sda_platform.edge.http_server import HttpServer

Answer = Callable[[Request], Response]


@dataclass
class Remote:
    """Where the server is and what it was asked; ``failed``: requests that the source counts as failed."""

    url: str = ""
    asked: list[Request] = field(default_factory=list)
    failed: int = 0


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Remote]:
    """A server that gives ``answer`` to everything."""
    remote = Remote()

    async def respond(request: Request) -> Response:
        await request.body()
        remote.asked.append(request)
        return answer(request)

    app = Starlette(routes=[Route("/{path:path}", respond, methods=["GET", "POST"])])
    async with HttpServer(app, Address("127.0.0.1", 0)) as server:
        remote.url = f"http://{server.address}"
        yield remote

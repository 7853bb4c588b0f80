"""An HTTP server inside the collector's event loop: uvicorn, without its own handling of signals and logs."""

import asyncio
import contextlib
import socket
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from sda_platform.edge.address import Address
from sda_platform.http_deadline import HEADERS_S, STALLED_S, with_deadline
from sda_platform.http_gate import HttpGate


class _Quiet(uvicorn.Server):
    """Leaves signals to the service that it is part of."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """Serves ``app`` at ``bind`` while the context lasts; connections are bounded, idle and slow ones closed.

    Behind `HttpGate`; ``hosts``: names with a dot under which it is reached.
    """

    def __init__(
        self,
        app: ASGIApp,
        bind: Address,
        *,
        hosts: Collection[str] = (),
        max_connections: int = 64,
        grace_s: int = 2,
        headers_s: float = HEADERS_S,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._bind = bind
        self._server = _Quiet(
            uvicorn.Config(
                HttpGate(app, hosts),
                http=with_deadline(headers_s, stalled_s),
                log_config=None,
                access_log=False,
                lifespan="off",
                limit_concurrency=max_connections,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=grace_s,
                server_header=False,
                proxy_headers=False,  # who sends is who connects, not who a header names
            )
        )
        self._socket: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens; empty while it does not."""
        return str(Address(*self._socket.getsockname()[:2])) if self._socket else ""

    async def __aenter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self._bind.host else socket.AF_INET
        self._socket = socket.create_server(self._bind, family=family, backlog=128)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not (self._server.started or self._serving.done()):
            await asyncio.sleep(0.005)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        if self._socket is not None:
            self._socket.close()
            self._socket = None

"""A client of an application in this process: no socket, no thread."""

import asyncio
from types import TracebackType
from typing import Any, Self

import httpx
from starlette.applications import Starlette


class Client:
    """Sends requests to ``app`` and waits for each answer."""

    def __init__(self, app: Starlette) -> None:
        self.app = app
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")

    def get(self, path: str, **options: Any) -> httpx.Response:
        """The answer to a GET."""
        return self._runner.run(self._client.get(path, **options))

    def post(self, path: str, **options: Any) -> httpx.Response:
        """The answer to a POST."""
        return self._runner.run(self._client.post(path, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

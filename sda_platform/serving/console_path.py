"""The address `/console/` of the endpoint: the same as `/`, for ingresses and proxies that pass paths on unchanged."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

CONSOLE_PATH: Final = "/console"


class ConsolePath:
    """An ASGI application that passes a request below `/console/` to ``app`` as one of the path that follows."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] == "http" and scope["path"].startswith(f"{CONSOLE_PATH}/"):
            scope = {**scope, "path": scope["path"].removeprefix(CONSOLE_PATH)}
            scope["raw_path"] = scope.get("raw_path", b"").removeprefix(CONSOLE_PATH.encode())
        await self._app(scope, receive, send)

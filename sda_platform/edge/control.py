"""The control plane: health, metrics, sources and ledger, read from the live collector and changing nothing."""

import hmac
from dataclasses import asdict
from http import HTTPStatus

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sda_platform.edge.collector import Collector
from sda_platform.edge.metrics import CollectorMetrics
from sda_platform.edge.report import report_sources


def control_plane(collector: Collector, token: str = "") -> ASGIApp:
    """``GET /health``, ``/metrics``, ``/sources``, ``/ledger``; with ``token`` only for who sends it as bearer."""
    metrics = CollectorMetrics(collector)

    async def health(_: Request) -> Response:
        wrong = collector.health
        status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        return JSONResponse({"healthy": not wrong, "problems": wrong}, status)

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def sources(_: Request) -> Response:
        return JSONResponse(report_sources(collector))

    async def ledger(_: Request) -> Response:
        entries = [{**asdict(each), "seconds": each.seconds} for each in collector.listening_log.entries]
        return JSONResponse({"accounts": collector.ledger.to_json(), "not_listened": entries})

    shown = {"/health": health, "/metrics": show_metrics, "/sources": sources, "/ledger": ledger}
    app = Starlette(routes=[Route(path, answer) for path, answer in shown.items()])
    return _Guarded(app, token) if token else app


class _Guarded:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = dict(scope.get("headers", [])).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(sent, self._expected):
            await JSONResponse({"error": "a token is needed"}, HTTPStatus.UNAUTHORIZED)(scope, receive, send)
            return
        await self._app(scope, receive, send)

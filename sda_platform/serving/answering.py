"""Who may ask, and how what is wrong with a request becomes an answer that names it."""

import json
from collections.abc import Mapping
from functools import wraps
from math import ceil
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sda_platform.http_gate import BASIC_CHALLENGE
from sda_platform.resilience import OverQuota
from sda_platform.serving.clients import LoginNeeded, NotAllowed
from sda_platform.serving.conditional import PreconditionFailed
from sda_platform.serving.errors import DamagedIndex, IndexMismatch, ServingError
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.kept_views import NotKept
from sda_platform.serving.logins import reader_of
from sda_platform.serving.parameters import Parameter
from sda_platform.serving.rendering import NotAcceptable
from sda_platform.serving.requests import BadRequest, Handler, NotFound, TooSlow
from sda_platform.serving.states import TooMany

_STATUS: Final[Mapping[type[Exception], int]] = {
    BadRequest: 400,
    TooMany: 400,
    LoginNeeded: 401,
    NotAllowed: 403,
    NotFound: 404,
    NotKept: 410,
    TooSlow: 408,
    OverQuota: 429,
    NotAcceptable: 406,
    PreconditionFailed: 412,
    DamagedIndex: 503,
    IndexMismatch: 503,
    Busy: 503,
    ServingError: 500,
    OSError: 507,
}
_HEADERS: Final = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},  # the rest of the body may never come
    503: {"Retry-After": "1"},
}


def answering(
    handler: Handler, parameters: Mapping[str, Parameter], *, for_readers: bool, of_every_source: bool = True
) -> Handler:
    """A handler that answers what is wrong with a request as JSON with ``error``.

    ``for_readers``: it is for those who may read. Any other identifies its sender itself, or is for everyone.
    ``of_every_source``: it is for those who may read what every source has brought.
    A parameter that is not one of ``parameters`` is refused: ignored, it would look as if it had selected. So is one
    that is given twice. Those that are declared in upper case, as CelesTrak's, may have any case.
    """

    @wraps(handler)
    async def answer(request: Request) -> Response:
        try:
            if for_readers:
                reader_of(request, of_every_source=of_every_source)
            _require_known(request, parameters)
            return await handler(request)
        except tuple(_STATUS) as error:
            return _refusal(error)

    return answer


class ReadersOnly:
    """An ASGI application that passes on to ``app`` what those ask who may read all; a browser is asked for a login."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        try:
            reader_of(Request(scope), of_every_source=True)
        except (LoginNeeded, NotAllowed, OverQuota) as error:
            refusal = _refusal(error)
            if isinstance(error, LoginNeeded):
                refusal.headers["WWW-Authenticate"] = BASIC_CHALLENGE
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _refusal(error: Exception) -> Response:
    status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    headers = {"Retry-After": str(ceil(error.wait_s))} if isinstance(error, OverQuota) else _HEADERS.get(status)
    return problem(str(error), status, headers)


def problem(text: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer to a request that is not served: what is wrong. No cache keeps it."""
    kept_nowhere = {"Cache-Control": "no-store", **(headers or {})}
    return Response(json.dumps({"error": text}), status, kept_nowhere, "application/json")


def _require_known(request: Request, parameters: Mapping[str, Parameter]) -> None:
    given: set[str] = set()
    for name, _ in request.query_params.multi_items():
        declared = name if name in parameters else name.upper()
        if declared not in parameters:
            has = f"the parameters are {', '.join(parameters)}" if parameters else "there are none here"
            raise BadRequest(f"no parameter is named {name[:40]!r}; {has}")
        if declared in given and not parameters[declared].is_repeated:
            raise BadRequest(f"{name[:40]} is given twice")
        given.add(declared)

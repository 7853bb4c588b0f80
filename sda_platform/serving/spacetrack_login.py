"""Space-Track's logins over this catalogue: a client's name and token, for a session or for one query."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sda_platform.resilience import Quotas
from sda_platform.serving.bodies import Bodies, media_type_of
from sda_platform.serving.clients import KnownClients
from sda_platform.serving.conditional import of_this_moment
from sda_platform.serving.logins import COOKIE, SESSION_S, Sessions, count_failure, reader_of
from sda_platform.serving.requests import BadRequest
from sda_platform.serving.spacetrack import query

LOGIN: Final = {"application/x-www-form-urlencoded": "form"}
_QUERY: Final = "/basicspacedata/query/"


async def login(request: Request) -> Response:
    """Begin a session of a client by its name and token; where no clients are declared, any may read.

    A body with `query`, the address of a query, is answered with what it finds.
    """
    clients: KnownClients = request.app.state.clients
    media_type_of(request, LOGIN)
    bodies: Bodies = request.app.state.logins
    async with bodies.received(request) as body:
        form = parse_qs(body.decode("utf-8", "replace"))
    identity, password, asked = (form.get(name, [""])[0] for name in ("identity", "password", "query"))
    client = clients.with_token(password)
    if clients.by_token and (client is None or client.name != identity):
        count_failure(request)
        return JSONResponse({"Login": "Failed"}, headers={"Cache-Control": "no-store"})
    cookie = None
    if client is not None:
        sessions: Sessions = request.app.state.sessions
        cookie = sessions.begin(client.name)
    answer = await _queried(request, asked, cookie) if asked else JSONResponse("")
    if asked and client is not None:  # what is read by POST counts as what is read by GET
        quotas: Quotas = request.app.state.reading_quotas
        quotas.spend(client.name, requests=1, bytes=len(answer.body))
    answer.headers["Cache-Control"] = "no-store"
    if cookie is not None:
        is_encrypted = request.url.scheme == "https"
        answer.set_cookie(COOKIE, cookie, SESSION_S, secure=is_encrypted, httponly=True, samesite="strict")
    return answer


async def logout(request: Request) -> Response:
    """End a session: the client forgets its cookie."""
    answer = JSONResponse("Successfully logged out")
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return of_this_moment(request, answer)


async def _queried(request: Request, address: str, cookie: str | None) -> Response:
    """Answer the query at an ``address``, of whatever server, as its client in the new session. Raises as queries."""
    try:
        path = urlsplit(address).path
    except ValueError:
        path = ""
    if _QUERY not in path or not path.isascii():
        raise BadRequest(f"query is {address[:80]!r}, must be an address with {_QUERY}")
    path = path[path.index(_QUERY) :]
    headers = [(name, value) for name, value in request.scope["headers"] if name == b"accept-encoding"]
    headers += [(b"cookie", f"{COOKIE}={cookie}".encode())] if cookie else []
    scope = {**request.scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    inner = Request({**scope, "headers": headers})
    reader_of(inner, of_every_source=False)
    return await query(inner)

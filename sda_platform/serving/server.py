"""The lookup endpoint as a server: the application, the thread that follows the catalogue, and their end."""

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute

from sda_platform.code_version import code_version
from sda_platform.fair_share import PeerTurns
from sda_platform.http_deadline import DeadlineProtocol
from sda_platform.http_gate import HttpGate
from sda_platform.serving.access_log import AccessLog
from sda_platform.serving.accesses import Accesses, RequestMetrics
from sda_platform.serving.answering import ReadersOnly, problem
from sda_platform.serving.bodies import Bodies, bodies_of_logins
from sda_platform.serving.bounded_answers import BoundedAnswers
from sda_platform.serving.clients import ANYONE, KnownClients
from sda_platform.serving.console_path import ConsolePath
from sda_platform.serving.event_stream import Connect, EventPublisher
from sda_platform.serving.events import Changes
from sda_platform.serving.first_seen import FirstSeen
from sda_platform.serving.groups import BUILT_IN
from sda_platform.serving.kept_answers import KeptAnswers
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.logins import People, Sessions, failed_logins, no_people
from sda_platform.serving.openapi import openapi
from sda_platform.serving.puts import Puts
from sda_platform.serving.requests import AT_ONCE
from sda_platform.serving.routes import ROUTES
from sda_platform.serving.submissions import Submissions

FOLLOW_S = 1.0
"""How often a newer version of the catalogue is looked up; the index lags by this, and by the update itself."""
_LOOKS = 20
"""So often the index is examined in that time: five years of history in a day."""
_MOST_WAIT_S = 0.0005
"""So long one of the server's threads computes while another waits; Python's 5 ms would be seen in lookups."""
MOST_REQUESTS = 512
"""Connections that may be open, of which a peer has a fair share."""
_LOG = logging.getLogger(__name__)


def application(
    live: LiveCatalogue,
    puts: Puts,
    submissions: Submissions,
    clients: KnownClients = ANYONE,
    hosts: Collection[str] = (),
    groups: Mapping[str, str] = BUILT_IN,
    pages: Sequence[StarletteRoute] = (),
    people: People = no_people,
    log: AccessLog | None = None,
    event_stream: Connect | None = None,
) -> Starlette:
    """Return the endpoint over ``live``; ``clients`` write element sets to ``puts``, and ephemerides to
    ``submissions``.

    ``hosts``: names under which it is reached, besides those that `HttpGate` accepts anyway. ``groups``: the queries of
    groups of objects, by name. ``pages``: routes for people, which come before the endpoint's own. ``people``: the
    users of the UI, who may read as clients may. ``log`` records every request. ``event_stream`` connects to the server
    that gets the events.
    """
    needs_login = bool(clients.reading.needs_login)
    document = openapi(version("sda-platform"), live.source.row_schemas(), reading_needs_login=needs_login)
    changes = Changes(live.source)
    publisher = EventPublisher(changes, event_stream) if event_stream else None
    metrics, quotas = RequestMetrics(publisher), clients.reading.quotas()

    async def describe(_: Request) -> Response:
        return JSONResponse(document)

    async def export(_: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    code_version()  # for the tags: found once, which takes milliseconds
    for_readers = [*pages, StarletteRoute("/metrics", export)]
    for page in for_readers:
        page.app = ReadersOnly(page.app)
    routes = [StarletteRoute(each.pattern, each.answer, methods=[each.method]) for each in ROUTES]
    accesses = Middleware(Accesses, metrics=metrics, quotas=quotas, log=log)
    app = Starlette(
        routes=[*for_readers, StarletteRoute("/openapi.json", describe), *routes],
        middleware=[Middleware(ConsolePath), accesses, Middleware(HttpGate, hosts=hosts), Middleware(BoundedAnswers)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        lifespan=_publishing,
    )
    app.state.bodies, app.state.logins, app.state.answers = Bodies(), bodies_of_logins(), KeptAnswers()
    app.state.turns, app.state.first_seen = PeerTurns(AT_ONCE), FirstSeen()
    app.state.groups, app.state.changes, app.state.publisher = groups, changes, publisher
    app.state.quotas, app.state.reading_quotas = clients.quota.quotas(), quotas
    app.state.people, app.state.sessions, app.state.failed_logins = people, Sessions(), failed_logins()
    app.state.live, app.state.puts, app.state.submissions, app.state.clients = live, puts, submissions, clients
    return app


@asynccontextmanager
async def _publishing(app: Starlette) -> AsyncIterator[None]:
    """Publish events while the application serves."""
    publisher: EventPublisher | None = app.state.publisher
    task = asyncio.create_task(publisher.run()) if publisher else None
    yield
    if task:  # it ends by itself as well, where the client of the stream takes the cancellation for none
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _refused(_: Request, error: Exception) -> Response:
    """Return what the router refuses: a path or a method that is none."""
    assert isinstance(error, HTTPException)
    return problem(f"{error.detail}: /openapi.json lists paths and methods", error.status_code, error.headers)


async def _failed(_: Request, error: Exception) -> Response:
    """A fault of the program; it is also raised again, for the log."""
    return problem(f"the endpoint failed ({type(error).__name__}); its log has the reason", 500)


class Follower:
    """Refreshes a live catalogue in a thread of its own until it is closed, and examines its index in between.

    An error is logged and tried again.
    """

    def __init__(self, live: LiveCatalogue, interval_s: float = FOLLOW_S) -> None:
        self._live, self._interval_s = live, interval_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow the catalogue", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End after the refresh that is at work."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        looks, is_sound = 0, True
        while not self._is_over.wait(self._interval_s / _LOOKS):
            looks += 1
            if looks % _LOOKS == 0:
                is_sound = self._has_done(self._live.refresh)
            elif is_sound:  # what fails is not tried again before that, or it would fill the log
                is_sound = self._has_done(self._live.examine)

    def _has_done(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception:
            _LOG.exception("the serving index could not follow the catalogue; trying again")
            return False
        return True


@dataclass(frozen=True)
class Tls:
    """The files of a certificate, with those between it and its issuer, and of its key (PEM)."""

    certificate: str
    key: str


def serve(app: Starlette, listening: socket.socket, announce: Callable[[], None], tls: Tls | None = None) -> None:
    """Serve the `application` at the socket ``listening`` until a signal ends it; what was put is committed before.

    ``announce`` is called once the index is open. With ``tls`` nothing is answered in plain text.
    """
    live, puts = app.state.live, app.state.puts
    sys.setswitchinterval(_MOST_WAIT_S)
    live.start()
    follower = Follower(live)
    config = uvicorn.Config(
        app, http=DeadlineProtocol, limit_concurrency=MOST_REQUESTS, log_level="warning", access_log=False,
        proxy_headers=False,  # who sends is who connects, not who a header names
        ssl_certfile=tls.certificate if tls else None, ssl_keyfile=tls.key if tls else None,
    )  # fmt: skip
    server = uvicorn.Server(config)
    # The server waits for its answers to end, and a stream has no end of its own.
    app.state.changes.is_over = lambda: server.should_exit
    try:
        announce()
        server.run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again that ended it
        return
    finally:
        follower.close()
        puts.close()
        live.close()

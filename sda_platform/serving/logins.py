"""Logins of readers: who sends a request, and whether it may read.

A program sends its client's token, or name and token as HTTP Basic; a browser the login of a user of the UI. Clients of
Space-Track log in once, and send the cookie of that session.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

from starlette.requests import Request

from sda_platform.fair_share import peer_of
from sda_platform.http_gate import basic_login
from sda_platform.resilience import Quotas
from sda_platform.serving.clients import Client, KnownClients, LoginNeeded, Right

COOKIE: Final = "sda_session"
SESSION_S: Final = 7200
"""How long a session lasts, as at Space-Track."""
MOST_FAILED: Final = 10
"""So many wrong logins a peer may send in a minute."""
_FAILED: Final = "failed logins"
People = Callable[[str], str | None]
"""Returns the name of the user of the UI whose login a header `Authorization` is; None: of no user."""
_READER: Final = frozenset({Right.READ})
_HOW: Final = (
    "a login is needed to read: Authorization: Bearer <token> of a client, or name and token as HTTP Basic (curl -u)"
)


def no_people(_: str) -> None:
    """Answer for an endpoint without users of the UI."""


class Sessions:
    """Logins that last. A cookie states name and end of one, authenticated by a key of this process; none is stored."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._key, self._now_s = secrets.token_bytes(32), now_s

    def begin(self, name: str) -> str:
        """Return the cookie of a new session of the client ``name``."""
        stated = f"{name}.{int(self._now_s()) + SESSION_S}"
        return f"{stated}.{self._proof(stated)}"

    def name_of(self, cookie: str) -> str | None:
        """Return the client whose session a cookie is of; None: of none that lasts."""
        stated, _, proof = cookie.rpartition(".")
        if not hmac.compare_digest(proof.encode(), self._proof(stated).encode()):
            return None
        name, _, end_s = stated.rpartition(".")
        return name if int(end_s) > self._now_s() else None

    def _proof(self, stated: str) -> str:
        return hmac.new(self._key, stated.encode(), hashlib.sha256).hexdigest()


def reader_of(request: Request, *, of_every_source: bool) -> Client:
    """Identify who reads, within its quota. Raises LoginNeeded, NotAllowed and OverQuota where reading needs a login;
    else every request may. ``of_every_source``: what is read rests on the element sets of all.
    """
    request.state.sources = None
    clients: KnownClients = request.app.state.clients
    found = _identified(request, clients)
    request.state.client, request.state.reader = found.name if found else None, found
    if not clients.reading.needs_login:
        return found or Client("anyone", may=_READER)
    if found is None:
        raise LoginNeeded(_HOW)
    if of_every_source:
        found.require_all_read()
    else:
        found.require_right(Right.READ)
    request.state.sources = found.sources
    quotas: Quotas = request.app.state.reading_quotas
    quotas.require(found.name)
    return found


def failed_logins() -> Quotas:
    """Return the accounts of peers that fail to log in."""
    return Quotas({_FAILED: MOST_FAILED})


def count_failure(request: Request) -> None:
    """Account for a login that was wrong. Raises OverQuota where its peer has sent too many.

    A right login is never held up: behind a proxy all readers are one peer, and tokens are too long to be guessed.
    """
    failures: Quotas = request.app.state.failed_logins
    failures.require(peer_of(request.client))
    failures.spend(peer_of(request.client), **{_FAILED: 1})


def _identified(request: Request, clients: KnownClients) -> Client | None:
    """Return who sends a request. A cookie is no attempt: one of a session that has ended is no wrong login."""
    authorization = request.headers.get("authorization", "")
    is_attempt = bool(authorization) and bool(clients.reading.needs_login)
    found = _known(request, clients, authorization)
    if is_attempt and found is None:
        count_failure(request)
    return found


def _known(request: Request, clients: KnownClients, authorization: str) -> Client | None:
    scheme, _, token = authorization.partition(" ")
    if scheme == "Bearer":
        return clients.with_token(token)
    if authorization:
        name, token = basic_login(authorization)
        client, people = clients.with_token(token), request.app.state.people
        if client is not None and client.name == name:
            return client
        user = people(authorization)
        return Client(f"user {user}", may=_READER) if user else None
    sessions: Sessions = request.app.state.sessions
    name_of_session = sessions.name_of(request.cookies.get(COOKIE, ""))
    return clients.named(name_of_session) if name_of_session else None

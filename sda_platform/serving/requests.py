"""Reading a request: its parameters, its sender, and the view that it is answered from."""

import math
import re
from asyncio import Semaphore
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.clock import iso, parse_iso_ns
from sda_platform.fair_share import PeerTurns, peer_of
from sda_platform.formats.segments import Sender
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.resilience import Quotas
from sda_platform.serving.clients import Client, KnownClients, LoginNeeded, Right
from sda_platform.serving.index import GREATEST_ID
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.logins import count_failure
from sda_platform.serving.record import StoredElements
from sda_platform.serving.view import Place, View

Found = TypeVar("Found")
Handler = Callable[[Request], Awaitable[Response]]
AT_ONCE: Final = 8
"""So many of the server's threads (40) work for one peer. Its other requests wait without one."""
LONGEST_PAGE: Final = 10_000
AS_OF, SNAPSHOT = "as_of", "snapshot"
"""Parameters of reads of the catalogue: a mission time in the past, and the view that further pages are of."""
_PLACE: Final = re.compile(r"(-?[0-9]{1,19})-([0-9a-f]{0,16})-([0-9]{1,18})")
PLACE_SCHEMA: Final = {"type": "string", "pattern": r"^-?[0-9]{1,18}-[0-9a-f]{16}-[0-9]{1,10}$"}
"""Where a page of a history begins: epoch, segment and record of the last set of the page before."""
_PAGE: Final = 1_000


class BadRequest(Exception):
    """A parameter or the body cannot be used; the text names it."""


class TooSlow(Exception):
    """The body of a request did not arrive in time."""


class NotFound(Exception):
    """There is no such object."""


async def in_thread(request: Request, work: Callable[..., Found], *arguments: Any) -> Found:
    """Return what ``work`` returns, done in a thread when the peer of ``request`` has its turn."""
    async with turn_of(request):
        return await run_in_threadpool(work, *arguments)


def turn_of(request: Request) -> Semaphore:
    """Return what is entered while something is done for the peer of a request."""
    turns: PeerTurns = request.app.state.turns
    return turns.of(peer_of(request.client))


def client_of(request: Request) -> Client:
    """Identify the client that sends the request. Raises LoginNeeded, NotAllowed and OverQuota."""
    clients: KnownClients = request.app.state.clients
    is_attempt = bool(clients.by_token) and "authorization" in request.headers
    try:
        client = clients.of(request)
    except LoginNeeded:
        if is_attempt:
            count_failure(request)
        raise
    request.state.client = client.name
    return client


def writer_of(request: Request) -> Client:
    """Identify the client of a request to write, within its quota. Raises LoginNeeded, NotAllowed and OverQuota."""
    client = client_of(request)
    client.require_right(Right.WRITE)
    quotas_of(request).require(client.name)
    return client


def quotas_of(request: Request) -> Quotas:
    """Return the quotas of clients: what each may write in a minute."""
    quotas: Quotas = request.app.state.quotas
    return quotas


def sender_of(request: Request, client: Client) -> Sender:
    """Identify the sender of a request: the client, and the address of its connection."""
    return Sender(client.name, request.client.host if request.client else None, client.rank)


def as_of(request: Request) -> int | None:
    """Return the mission time of what a request asks for, ns since 1970; None: now. Raises BadRequest."""
    text = {name.lower(): value for name, value in request.query_params.items()}.get(AS_OF)
    return None if text is None else parsed_instant(text, AS_OF)


@contextmanager
def view_of(request: Request) -> Iterator[View]:
    """Open the view that a request is answered from: of now, of the page before, or of a time in the past.

    Raises BadRequest and NotKept.
    """
    live: LiveCatalogue = request.app.state.live
    as_of_ns = as_of(request)
    with live.view(request.query_params.get(SNAPSHOT)) as view:
        seen = view.released(request.state.sources)
        seen = seen if as_of_ns is None else seen.past(as_of_ns)
        yield seen
        view.has_more = seen.has_more


def set_of(view: View, number: int) -> StoredElements:
    """Return the set in force of an object. Raises NotFound."""
    found = view.get(number)
    if found is None:
        raise NotFound(f"the catalogue has no object {number}")
    return found


def whole_number(request: Request, name: str, default: int, *, least: int = 0, most: int = GREATEST_ID) -> int:
    """A parameter as a whole number from ``least`` to ``most``. Raises BadRequest."""
    text = request.query_params.get(name)
    return default if text is None else parsed_number(text, name, least=least, most=most)


def parsed_number(text: str, name: str, *, least: int = 0, most: int = GREATEST_ID) -> int:
    """``text`` as a whole number. Raises BadRequest."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise BadRequest(f"{name} is {text[:40]!r}, must be a whole number from {least} to {most}")
    return int(text)


def seconds_of(request: Request, name: str, default: float, least: float, most: float) -> float:
    """A parameter as seconds from ``least`` to ``most``. Raises BadRequest."""
    text = request.query_params.get(name)
    try:
        found = default if text is None else float(text)
    except ValueError:
        found = math.nan
    if not least <= found <= most:
        raise BadRequest(f"{name} is {(text or '')[:40]!r}, must be {least:g} to {most:g} seconds")
    return found


def word_of(request: Request, name: str, words: Sequence[str]) -> str:
    """A parameter that is one of ``words``; without it the first. Raises BadRequest."""
    text = request.query_params.get(name, words[0])
    if text not in words:
        raise BadRequest(f"{name} is {text[:40]!r}, must be one of {', '.join(words)}")
    return text


def place_of(request: Request) -> Place | None:
    """Return the place in the history of an object after which the page begins. Raises BadRequest."""
    text = request.query_params.get("after")
    if text is None:
        return None
    if (found := _PLACE.fullmatch(text)) is None or not ALWAYS_NS < int(found[1]) < FOREVER_NS:
        raise BadRequest(f"after is {text[:40]!r}, must be as the Link header of the page before gives it")
    return Place(int(found[1]), found[2], int(found[3]))


def numbers_of(request: Request, name: str) -> list[int] | None:
    """Return the catalogue numbers that a parameter lists, ascending; None without it. Raises BadRequest."""
    text = request.query_params.get(name)
    return None if text is None else sorted({parsed_number(each, name, least=1) for each in text.split(",")})


def page_length(request: Request) -> int:
    """Read how many rows an answer may have. Raises BadRequest."""
    return whole_number(request, "limit", _PAGE, least=1, most=LONGEST_PAGE)


def object_number(request: Request) -> int:
    """Return the catalogue number in the path. Raises BadRequest."""
    return parsed_number(request.path_params["norad_id"], "norad_id", least=1)


def instant(request: Request, name: str, default: int) -> int:
    """A parameter that bounds a selection, as ns since 1970; beyond all data it is ALWAYS_NS or FOREVER_NS.

    Raises BadRequest.
    """
    text = request.query_params.get(name)
    return default if text is None else min(max(_parsed(text, name), ALWAYS_NS), FOREVER_NS)


def parsed_instant(text: str, name: str) -> int:
    """``text``, ISO 8601 and UTC, as ns since 1970 in 64 bits. Raises BadRequest."""
    time_ns = _parsed(text, name)
    if not ALWAYS_NS < time_ns < FOREVER_NS:
        first, last = (iso(bound)[:4] for bound in (ALWAYS_NS, FOREVER_NS))
        raise BadRequest(f"{name} is {text[:40]!r}, must be between the years {first} and {last}")
    return time_ns


def _parsed(text: str, name: str) -> int:
    try:
        # A plus sign in a query that was not quoted arrives as a space.
        return parse_iso_ns(text.strip().replace(" ", "+") if "T" in text else text)
    except (ValueError, OverflowError):
        raise BadRequest(f"{name} is {text[:40]!r}, must be an instant like 2024-11-01T00:00:00Z") from None

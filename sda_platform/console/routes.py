"""The paths of the console, beside those of the lookup endpoint that it is served with.

A page of an object has the address of the object's element set: what accepts HTML is answered with the page.
"""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Final

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope
from typing_extensions import override

from sda_platform.catalog.lookup import UnknownObject
from sda_platform.conjunction.acknowledging import UnusableAction
from sda_platform.conjunction.alert_ids import UnknownAlert
from sda_platform.conjunction.globe import ORBIT_VIEW
from sda_platform.console.actions import NotAllowedToAct, forms, log_in, sent_fields, take_action
from sda_platform.console.conjunctions import csv_of, listed, shown_rows
from sda_platform.console.event import PICTURES, event_page, event_picture
from sda_platform.console.filters import Filters, WrongFilter
from sda_platform.console.objects import object_page, search_page
from sda_platform.console.page import HEADERS, STATIC, ConsoleContext, currency, page
from sda_platform.console.readers import ConsoleReader
from sda_platform.console.schedule import schedule_page, schedule_picture
from sda_platform.console.sensors import UnknownSensor, sensor_page, sensor_picture, sensors_page
from sda_platform.console.waiting import waiting_page
from sda_platform.fair_share import PeerTurns, peer_of
from sda_platform.formats.listings import ListingError
from sda_platform.html_elements import element
from sda_platform.http_gate import headers_of
from sda_platform.serving.conditional import of_content
from sda_platform.serving.console_path import CONSOLE_PATH
from sda_platform.serving.negotiation import best

_HTML: Final = "text/html"
_OFFERED: Final = ("application/json", "text/csv", "text/plain", "application/xml", _HTML)
_FILES: Final = {
    "console.css": (STATIC / "console.css", "text/css"),
    "console.js": (STATIC / "console.js", "text/javascript"),
    "icon.svg": (STATIC / "icon.svg", "image/svg+xml"),
    "orbit_view.js": (ORBIT_VIEW, "text/javascript"),
}
_GREATEST_ID: Final = 2**63 - 1
_LONGEST: Final = 200
MOST_AT_ONCE: Final = 4
"""Pages and pictures that are made at once, half of them for one peer. Others wait and hold no thread, so that lookups
beside them keep theirs."""
_STATUS: Final = {
    UnknownAlert: 404, UnknownObject: 404, UnknownSensor: 404, WrongFilter: 400, UnusableAction: 400,
    NotAllowedToAct: 403, ListingError: 500,
}  # fmt: skip
_OF_A_LIST: Final = (
    "Mend the file: it counts from the next look on, here and in runs. Runs that need it fail meanwhile. The next one "
    "does their work."
)
_Page = Callable[[ConsoleContext, Request], Response]


class PageRoute(Route):
    """A route that only takes requests which accept HTML above all else, and name no format of data."""

    @override
    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Leave every other request to the routes that come after."""
        match, found = super().matches(scope)
        if match is Match.NONE or "format" in QueryParams(scope["query_string"]):
            return Match.NONE, {}
        return (match, found) if best(headers_of(scope).get("accept"), _OFFERED) == _HTML else (Match.NONE, {})


def console_routes(context: ConsoleContext) -> list[Route]:
    """Return the routes of the console; they come before those of the endpoint."""

    at_once, turns, bodies = CapacityLimiter(MOST_AT_ONCE), PeerTurns(MOST_AT_ONCE // 2), forms()

    async def in_turn(answer: Callable[[Request], Response], request: Request) -> Response:
        async with turns.of(peer_of(request.client)):
            return await to_thread.run_sync(partial(answer, request), limiter=at_once)

    def of(make: _Page, root: str = "") -> Callable[[Request], Awaitable[Response]]:
        answer = _answered(context, make, root)

        @wraps(make)
        async def made(request: Request) -> Response:
            return await in_turn(answer, request)

        return made

    async def action(request: Request) -> Response:
        """Read the form outside the threads: a slow sender holds none."""
        path, headers = request.path_params["event_id"], request.headers
        try:
            sent = await sent_fields(request, bodies)
        except UnusableAction as error:
            return _wrong(context, error, "../")
        take = _answered(context, lambda known, _: take_action(known, path, headers, sent), "../")
        return await in_turn(take, request)

    return [
        Route("/login", of(_log_in)),
        Route("/conjunctions/{event_id}", action, methods=["POST"]),
        Route("/", of(_conjunctions)),
        Route("/conjunctions.csv", of(_csv)),
        Route("/conjunctions/{event_id}", of(_event, "../")),
        Route("/conjunctions/{event_id}/{name}.svg", of(_picture, "../../")),
        Route("/static/{name}", _file),
        Route(CONSOLE_PATH, _to_first_page),
        Route("/waiting", of(_waiting)),
        Route("/sensors", of(_sensors)),
        Route("/sensors/{source_id}", of(_sensor, "../")),
        Route("/sensors/{source_id}/{name}.svg", of(_sensor_picture, "../../")),
        PageRoute("/schedule", of(_schedule)),
        Route("/schedule/sensors.svg", of(_schedule_picture, "../")),
        PageRoute("/objects", of(_search)),
        PageRoute("/objects/{norad_id}", of(_object, "../")),
    ]


def _answered(context: ConsoleContext, make: _Page, root: str) -> Callable[[Request], Response]:
    """A handler that answers what is wrong with a request as a page."""

    def answer(request: Request) -> Response:
        try:
            return make(context, request)
        except tuple(_STATUS) as error:
            return _wrong(context, error, root)

    return answer


def _wrong(context: ConsoleContext, error: Exception, root: str) -> Response:
    status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    title = "A list cannot be used" if status == 500 else "Not found" if status == 404 else "Refused"
    text = element("p", str(error), role="alert")
    remedy = element("p", _OF_A_LIST) if status == 500 else None
    return page(context, title, element("h1", title), text, remedy, root=root, status=status)


def _conjunctions(context: ConsoleContext, request: Request) -> Response:
    filters, overview = Filters.of(request.query_params), context.overviews.now()
    members = context.members()
    rows = shown_rows(overview, filters, filters.selection(members, overview.currency.now_ns))
    form = filters.form(sorted({each.operator for each in members if each.operator}))
    live = element("div", listed(overview, rows, filters), id="live")
    keys = element("p", "Keys: j and k move, Enter opens, / searches.", class_="keys")
    top = element("div", currency(context, overview), id="live-currency")
    return page(context, "Conjunctions", element("h1", "Conjunctions"), top, form, live, keys)


def _csv(context: ConsoleContext, request: Request) -> Response:
    filters, overview = Filters.of(request.query_params), context.overviews.now()
    rows = shown_rows(overview, filters, filters.selection(context.members(), overview.currency.now_ns))
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="conjunctions.csv"'}
    return Response(csv_of(rows, overview.currency.now_ns), 200, headers, "text/csv")


def _event(context: ConsoleContext, request: Request) -> Response:
    return event_page(context, request.path_params["event_id"], _reader(context, request))


def _log_in(context: ConsoleContext, request: Request) -> Response:
    return log_in(context, request.headers, request.query_params.get("to", ""))


def _reader(context: ConsoleContext, request: Request) -> ConsoleReader:
    return context.reader(request.headers.get("authorization", ""))


def _picture(context: ConsoleContext, request: Request) -> Response:
    name = request.path_params["name"]
    return _svg(event_picture(context, request.path_params["event_id"], name) if name in PICTURES else None)


def _svg(text: str | None) -> Response:
    """Answer with a picture; it loads nothing, and its own styles stand in it."""
    if text is None:
        return Response("there is no such picture", 404, HEADERS, "text/plain")
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return Response(text, 200, headers, "image/svg+xml")


def _waiting(context: ConsoleContext, request: Request) -> Response:
    return waiting_page(context, _text(request, "person"), _reader(context, request))


def _sensors(context: ConsoleContext, request: Request) -> Response:
    return sensors_page(context, _text(request, "text"))


def _sensor(context: ConsoleContext, request: Request) -> Response:
    return sensor_page(context, request.path_params["source_id"])


def _sensor_picture(context: ConsoleContext, request: Request) -> Response:
    return _svg(sensor_picture(context, request.path_params["source_id"], request.path_params["name"]))


def _schedule(context: ConsoleContext, request: Request) -> Response:
    return schedule_page(context, _text(request, "sensor"), _text(request, "object"))


def _schedule_picture(context: ConsoleContext, _: Request) -> Response:
    return _svg(schedule_picture(context))


def _search(context: ConsoleContext, request: Request) -> Response:
    return search_page(context, _text(request, "text"))


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")[:_LONGEST].strip()


def _object(context: ConsoleContext, request: Request) -> Response:
    number = request.path_params["norad_id"]
    if not (number.isascii() and number.isdigit() and len(number) < 20 and 0 < int(number) <= _GREATEST_ID):
        raise UnknownObject(f"{number[:40]!r} is no catalogue number")
    return object_page(context, int(number), _reader(context, request))


def _to_first_page(request: Request) -> Response:
    """Add the slash that relative links need; the host is left to the browser, which may see another one."""
    query = request.url.query
    return RedirectResponse(f"{CONSOLE_PATH}/?{query}" if query else f"{CONSOLE_PATH}/", 308)


def _file(request: Request) -> Response:
    found = _FILES.get(request.path_params["name"])
    if found is None:
        return Response("there is no such file", 404, HEADERS, "text/plain")
    path, media_type = found
    return of_content(request, Response(path.read_bytes(), 200, {**HEADERS}, media_type))

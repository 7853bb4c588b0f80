"""What the lookup endpoint answers: objects, their history and states, conjunctions, alerts, and puts."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sda_platform.formats.designators import navigation_number
from sda_platform.formats.element_set import ElementSet
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.risk.levels import RISK_LEVELS
from sda_platform.serving.bodies import bodies_of, media_type_of
from sda_platform.serving.changes_since import cursor_headers, may_have_changed
from sda_platform.serving.clients import REFUSED
from sda_platform.serving.conditional import answered, of_tables, of_this_moment, of_view
from sda_platform.serving.event_stream import EventPublisher
from sda_platform.serving.index import GREATEST_ID
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts, accepted_sets
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import LEFT_OUT, chosen, json_rows, rendered
from sda_platform.serving.requests import (
    SNAPSHOT,
    BadRequest,
    as_of,
    in_thread,
    instant,
    numbers_of,
    object_number,
    page_length,
    parsed_instant,
    place_of,
    quotas_of,
    sender_of,
    set_of,
    view_of,
    whole_number,
    writer_of,
)
from sda_platform.serving.states import states
from sda_platform.serving.view import View, place

PUT_FORMATS: Final = {
    "application/json": "omm-json",
    "text/csv": "omm-csv",
    "text/plain": "tle",
    "application/xml": "omm-xml",
    "text/xml": "omm-xml",
    "application/x-ccsds-kvn": "omm-kvn",
}
"""The formats in which element sets may be put, by media type."""
_TOLD: Final = 10
"""Of so many refused records the error names the reason."""


async def health(request: Request) -> Response:
    """Return the version that is served, what waits, the engine's counters, and how the stream of events is."""
    publisher: EventPublisher | None = request.app.state.publisher
    facts = await in_thread(request, _live(request).health)
    facts["event_stream"] = await publisher.health() if publisher else None
    return of_this_moment(request, _json(facts, 200))


async def one_object(request: Request) -> Response:
    """Return the set in force of an object."""
    number = object_number(request)
    return _sets(request, lambda view: ([set_of(view, number)], None), is_many=False)


async def objects(request: Request) -> Response:
    """Return the sets in force of many objects, ascending by number, page by page."""
    return await answered(request, _objects, request)


def _objects(request: Request) -> Response:
    query, limit, after = request.query_params, page_length(request), whole_number(request, "after", 0)
    first, last = whole_number(request, "id_min", 0), whole_number(request, "id_max", GREATEST_ID)
    epochs = instant(request, "epoch_min", ALWAYS_NS), instant(request, "epoch_max", FOREVER_NS)
    wanted = numbers_of(request, "id")
    by_epoch = "epoch_min" in query or "epoch_max" in query
    if sum((wanted is not None, "name" in query, "designator" in query, by_epoch)) > 1:
        raise BadRequest("give one of id, name, designator, or epoch_min and epoch_max")

    def selected(view: View) -> Iterable[StoredElements]:
        if wanted is not None:
            return (each for number in wanted if (each := view.get(number)))
        if "name" in query or "designator" in query:
            return view.found({name: query[name] for name in ("name", "designator") if name in query})
        if by_epoch:
            return view.by_epoch(*epochs)
        return view.objects(max(after, first - 1), last)

    def page(view: View) -> tuple[list[StoredElements], int | None]:
        found = (each for each in selected(view) if after < each.norad_id and first <= each.norad_id <= last)
        rows = list(islice(filter(may_have_changed(request, view), found), limit + 1))
        return rows[:limit], rows[limit - 1].norad_id if len(rows) > limit else None

    return _sets(request, page)


async def history(request: Request) -> Response:
    """Every set of an object, by epoch."""
    return await answered(request, _history, request)


def _history(request: Request) -> Response:
    number, after, limit = object_number(request), place_of(request), page_length(request)
    since_ns, until_ns = instant(request, "since", ALWAYS_NS), instant(request, "until", FOREVER_NS)

    def page(view: View) -> tuple[list[StoredElements], str | None]:
        found = view.history(number, max(since_ns, after.epoch_time_ns if after else ALWAYS_NS), until_ns)
        rows = list(islice((each for each in found if after is None or place(each) > after), limit + 1))
        return rows[:limit], "-".join(map(str, place(rows[limit - 1]))) if len(rows) > limit else None

    return _sets(request, page)


async def object_states(request: Request) -> Response:
    """States of one object at times."""
    number = object_number(request)
    return await answered(request, _states, request, number)


async def all_states(request: Request) -> Response:
    """States of several objects, or of a page of all, at times."""
    return await answered(request, _states, request, None)


def _states(request: Request, number: int | None) -> Response:
    live, at = _live(request), request.query_params.getlist("at")
    times_ns = [parsed_instant(text, "at") for text in at] or [live.now_ns()]
    wanted = [number] if number else numbers_of(request, "id")
    after, limit = (0, 1) if number else (whole_number(request, "after", 0), page_length(request))

    def answer() -> Response:
        if wanted is not None:
            if len(wanted) == 1:
                set_of(view, wanted[0])
            return _rows(states(view, wanted, times_ns))
        norad_ids = [each.norad_id for each in islice(view.objects(after), limit + 1)]
        following = norad_ids[limit - 1] if len(norad_ids) > limit else None
        return _rows(states(view, norad_ids[:limit], times_ns), _next(request, view, following))

    with view_of(request) as view:
        if not at:
            return of_this_moment(request, answer())
        return of_view(request, view, "states", answer)


async def conjunctions(request: Request) -> Response:
    """Return the current assessments of an object's conjunctions."""
    number = object_number(request)
    found = await in_thread(request, _live(request).source.conjunctions, number, as_of(request))
    return of_tables(request, _rows(found))


async def alerts(request: Request) -> Response:
    """Answer the current conjunction alerts that the parameters select, highest level first, then Pc."""
    level, until_ns = request.query_params.get("risk"), instant(request, "until", FOREVER_NS)
    if level not in (None, *RISK_LEVELS[1:]):
        raise BadRequest(f"risk is {level[:40]!r}, must be one of {', '.join(RISK_LEVELS[1:])}")
    number = whole_number(request, "norad_id", 0, least=1)
    found = await in_thread(request, _live(request).source.alerts, as_of(request))
    selected = [
        row
        for row in found
        if level in (None, row["risk"])
        and number in (0, row["norad_id_1"], row["norad_id_2"])
        and row["tca_time_ns"] < until_ns
    ]
    return of_tables(request, _rows(selected))


async def put_elements(request: Request) -> Response:
    """Take element sets; they are durable, and served, when the answer comes."""
    client = writer_of(request)
    segment_format = media_type_of(request, PUT_FORMATS)
    live, puts = _live(request), _puts(request)
    async with bodies_of(request).received(request) as body:
        sets, refused = await in_thread(request, accepted_sets, body, segment_format, live.now_ns())
        client.require([each.norad_id for each in sets])
        if client.norad_ids is not None:
            client.require(await in_thread(request, _designated, live, sets))
        if sets:
            await asyncio.wrap_future(puts.put(sets, sender_of(request, client)))
        quotas_of(request).spend(client.name, bytes=len(body), records=len(sets), **{REFUSED: len(refused)})
    facts = {"accepted": len(sets), "refused": [asdict(each) for each in refused]}
    if not sets:
        reasons = "; ".join(each.reason for each in refused[:_TOLD]) or "the body holds no element set"
        return _json({"error": reasons, **facts}, 422)
    return _json(facts, 200)


def _designated(live: LiveCatalogue, sets: Sequence[ElementSet]) -> set[int]:
    """Return the numbers of the objects that have a designator of ``sets``, also where a set has another number.

    With another's designator an object would be found, and its ephemerides read, as that other one; as with the number
    within a navigation system, which its name states.
    """
    designators = {each.international_designator for each in sets if each.international_designator}
    stated = {navigation_number(each.object_name or "") for each in sets} - {None}
    with live.view() as view:
        others = view.found({"name": "("}) if stated else ()
        named = {each.norad_id for each in others if navigation_number(each.object_name or "") in stated}
        return named.union(*map(view.numbers_of, designators))


def _live(request: Request) -> LiveCatalogue:
    live: LiveCatalogue = request.app.state.live
    return live


def _puts(request: Request) -> Puts:
    puts: Puts = request.app.state.puts
    return puts


def _sets(
    request: Request, page: Callable[[View], tuple[Sequence[StoredElements], object]], *, is_many: bool = True
) -> Response:
    """Return the sets that ``page`` finds in one view of the catalogue; it also says after what the next page
    begins.
    """
    name = chosen(request.query_params.get("format"), request.headers.get("accept"))

    def answer() -> Response:
        records, following = page(view)
        body, media_type, left_out = rendered(name, records)
        headers = {LEFT_OUT: str(left_out)} if left_out else {}
        headers |= cursor_headers(view) if is_many else {}
        return Response(body, 200, {**headers, **_next(request, view, following)}, media_type)

    with view_of(request) as view:
        return of_view(request, view, name, answer, is_many=is_many)


def _next(request: Request, view: View, following: object) -> dict[str, str]:
    """Return the header that leads to the next page, of the same state, where there is one."""
    if following is None:
        return {}
    given = [each for each in request.query_params.multi_items() if each[0] not in ("after", SNAPSHOT)]
    query = urlencode([*given, (SNAPSHOT, view.snapshot), ("after", following)])
    return {"Link": f'<{request.url.path}?{query}>; rel="next"'}


def _rows(rows: Sequence[Mapping[str, Any]], headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_rows(rows), 200, headers, "application/json")


def _json(facts: Mapping[str, Any], status: int) -> Response:
    return Response(json.dumps(facts), status, media_type="application/json")

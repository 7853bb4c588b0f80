"""What the lookup endpoint answers: objects, their history and states, conjunctions, alerts, and puts."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.risk.probability import RISK_LEVELS
from sda_platform.serving.bodies import body_of, media_type_of
from sda_platform.serving.clients import REFUSED
from sda_platform.serving.index import GREATEST_ID
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts, accepted_sets
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import chosen, json_rows, rendered
from sda_platform.serving.requests import (
    BadRequest,
    NotFound,
    instant,
    object_number,
    page_length,
    parsed_instant,
    parsed_number,
    quotas_of,
    sender_of,
    whole_number,
    writer_of,
)
from sda_platform.serving.states import states

PUT_FORMATS: Final = {
    "application/json": "omm-json",
    "text/csv": "omm-csv",
    "text/plain": "tle",
    "application/xml": "omm-xml",
    "text/xml": "omm-xml",
    "application/x-ccsds-kvn": "omm-kvn",
}
"""The formats in which element sets may be put, by media type."""


async def health(request: Request) -> Response:
    """The version that is served, what waits, and the engine's counters."""
    facts = await run_in_threadpool(_live(request).health)
    return _json(request, facts, 200)


async def one_object(request: Request) -> Response:
    """The set in force of an object."""
    if (unchanged := _unchanged(request)) is not None:
        return unchanged
    number = object_number(request)
    found = _live(request).get(number)
    if found is None:
        raise NotFound(f"the catalogue has no object {number}")
    return _sets(request, [found])


async def objects(request: Request) -> Response:
    """The sets in force of many objects, ascending by number, page by page."""
    return await _unless_known(request, _objects)


def _objects(request: Request) -> Response:
    live, query, limit = _live(request), request.query_params, page_length(request)
    after = whole_number(request, "after", 0)
    first, last = whole_number(request, "id_min", 0), whole_number(request, "id_max", GREATEST_ID)
    found: Iterable[StoredElements]
    if "id" in query:
        wanted = sorted({parsed_number(each, "id", least=1) for each in query["id"].split(",")})
        found = (each for number in wanted if (each := live.get(number)))
    elif "name" in query or "designator" in query:
        found = live.found({"name": query["name"]} if "name" in query else {"designator": query["designator"]})
    elif "epoch_min" in query or "epoch_max" in query:
        found = live.by_epoch(instant(request, "epoch_min", ALWAYS_NS), instant(request, "epoch_max", FOREVER_NS))
    else:
        found = live.objects(max(after, first - 1), last)
    page = list(islice((each for each in found if after < each.norad_id and first <= each.norad_id <= last), limit + 1))
    return _sets(request, page[:limit], following=page[limit - 1].norad_id if len(page) > limit else None)


async def history(request: Request) -> Response:
    """Every set of an object, by epoch."""
    return await _unless_known(request, _history)


def _history(request: Request) -> Response:
    since_ns, until_ns = instant(request, "since", ALWAYS_NS), instant(request, "until", FOREVER_NS)
    found = _live(request).history(object_number(request), since_ns, until_ns)
    start, limit = whole_number(request, "after", 0), page_length(request)
    more = start + limit if start + limit < len(found) else None
    return _sets(request, found[start : start + limit], following=more)


async def object_states(request: Request) -> Response:
    """States of one object at times."""
    number = object_number(request)
    return await _unless_known(request, lambda each: _states(each, [number]))


async def all_states(request: Request) -> Response:
    """States of several objects, or of all, at times."""
    return await _unless_known(request, lambda each: _states(each, None))


def _states(request: Request, norad_ids: list[int] | None) -> Response:
    live, query = _live(request), request.query_params
    times_ns = [parsed_instant(text, "at") for text in query.getlist("at")] or [live.now_ns()]
    if norad_ids is None and "id" in query:
        norad_ids = [parsed_number(each, "id", least=1) for each in query["id"].split(",")]
    elif norad_ids is None:
        after = whole_number(request, "after", 0)
        norad_ids = [each.norad_id for each in islice(live.objects(after), page_length(request))]
    found = states(live, norad_ids, times_ns)
    if not found and len(norad_ids) == 1:
        raise NotFound(f"the catalogue has no object {norad_ids[0]}")
    return _rows(request, found)


async def conjunctions(request: Request) -> Response:
    """The current assessments of an object's conjunctions."""
    number = object_number(request)
    return _rows(request, await run_in_threadpool(_live(request).source.conjunctions, number))


async def alerts(request: Request) -> Response:
    """The current conjunction alerts, highest level first, then Pc; those that the request's parameters select."""
    level, until_ns = request.query_params.get("risk"), instant(request, "until", FOREVER_NS)
    if level not in (None, *RISK_LEVELS[1:]):
        raise BadRequest(f"risk is {level[:40]!r}, must be one of {', '.join(RISK_LEVELS[1:])}")
    number = whole_number(request, "norad_id", 0, least=1)
    found = await run_in_threadpool(_live(request).source.alerts)
    selected = [
        row
        for row in found
        if level in (None, row["risk"])
        and number in (0, row["norad_id_1"], row["norad_id_2"])
        and row["tca_time_ns"] < until_ns
    ]
    return _rows(request, selected)


async def put_elements(request: Request) -> Response:
    """Take element sets; they are durable, and served, when the answer comes."""
    client = writer_of(request)
    segment_format = media_type_of(request, PUT_FORMATS)
    body = await body_of(request)
    live, puts = _live(request), _puts(request)
    sets, refused = await run_in_threadpool(accepted_sets, body, segment_format, live.now_ns())
    client.require([each.norad_id for each in sets])
    if sets:
        await asyncio.wrap_future(puts.put(sets, sender_of(request, client)))
    quotas_of(request).spend(client.name, bytes=len(body), records=len(sets), **{REFUSED: len(refused)})
    facts = {"accepted": len(sets), "refused": [asdict(each) for each in refused]}
    return _json(request, facts, 200 if sets or not refused else 422)


def _live(request: Request) -> LiveCatalogue:
    live: LiveCatalogue = request.app.state.live
    return live


def _puts(request: Request) -> Puts:
    puts: Puts = request.app.state.puts
    return puts


async def _unless_known(request: Request, make: Callable[[Request], Response]) -> Response:
    """The answer of ``make``, computed in a thread; only the tag for a client that has this state."""
    unchanged = _unchanged(request)
    return await run_in_threadpool(make, request) if unchanged is None else unchanged


def _unchanged(request: Request) -> Response | None:
    """The answer to a client that has this state already."""
    etag = _live(request).etag
    known = request.headers.get("if-none-match")
    is_known = known is not None and etag in [each.strip().removeprefix("W/") for each in known.split(",")]
    # States without a time are of now, which no tag covers.
    if not is_known or ("states" in request.url.path and "at" not in request.query_params):
        return None
    return Response(status_code=304, headers={"ETag": etag})


def _sets(request: Request, records: Sequence[StoredElements], following: int | None = None) -> Response:
    name = chosen(request.query_params.get("format"), request.headers.get("accept"))
    body, media_type, left_out = rendered(name, records)
    headers = {"ETag": _live(request).etag, "Vary": "Accept"}
    if left_out:
        headers["X-Left-Out"] = str(left_out)
    if following is not None:
        query = urlencode({**request.query_params, "after": following})
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return Response(body, 200, headers, media_type)


def _rows(request: Request, rows: Sequence[Mapping[str, Any]]) -> Response:
    return Response(json_rows(rows), 200, {"ETag": _live(request).etag}, "application/json")


def _json(request: Request, facts: Mapping[str, Any], status: int) -> Response:
    return Response(json.dumps(facts), status, {"ETag": _live(request).etag}, "application/json")

"""Space-Track's API over this catalogue, so that clients written for it need another address only.

`/basicspacedata/query/class/…` takes the query language of `serving.query`, `/basicspacedata/modeldef/class/…` lists
the fields of a class. As there, every value of JSON is text. `serving.spacetrack_login` has the logins.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response

from sda_platform.foreign_text import in_csv
from sda_platform.formats.satcat import STATUSES
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.serving.changes_since import SINCE, cursor_headers, may_have_changed
from sda_platform.serving.conditional import answered, of_content, of_tables, of_view
from sda_platform.serving.groups import group_of
from sda_platform.serving.index import GREATEST_ID, records
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.logins import reader_of
from sda_platform.serving.query import FieldCondition, Query, parsed
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import LEFT_OUT, NotAcceptable, rendered
from sda_platform.serving.requests import BadRequest, as_of, view_of
from sda_platform.serving.satellites import CataloguedObject
from sda_platform.serving.source import CatalogueSource
from sda_platform.serving.spacetrack_classes import CLASSES, with_objects
from sda_platform.serving.view import View, place

_TABLES: Final = ("json", "csv", "xml")
_OF_SETS: Final = ("tle", "3le", "kvn", "xml")
"""Formats that write element sets, not rows."""
_SET_CLASSES: Final = ("gp", "gp_history")
_MOST_OBJECTS: Final = 1_000
"""Bound of the objects whose history one query reads."""
_MOST_SETS: Final = 100_000
"""Bound of the sets of one query by the time of their arrival."""
_LINES: Final = {"tle": slice(1, 3), "3le": slice(0, 3)}
_Found = list[Any]


async def model(request: Request) -> Response:
    """Return the fields of a class and their types."""
    name = request.path_params["name"].lower()
    if name not in CLASSES:
        raise BadRequest(f"no class is named {name[:40]!r}; there are: {', '.join(CLASSES)}")
    facts = {"Null": "YES", "Key": "", "Default": None, "Extra": ""}
    rows = [{"Field": each.name, "Type": each.kind, **facts} for each in CLASSES[name]]
    document = {"controller": "basicspacedata", "data": rows}
    return of_content(request, Response(json.dumps(document), 200, media_type="application/json"))


async def query(request: Request) -> Response:
    """Return rows of a class by conditions on any field."""
    return await answered(request, _query, request)


def _query(request: Request) -> Response:
    with view_of(request) as view:
        # "now" is the time of the view: what it answers depends on no clock.
        asked = parsed(_path(request), CLASSES, view.as_of_ns)
        _require_format(asked)
        if SINCE in request.query_params and asked.name != "gp":
            raise BadRequest(f"{SINCE} is for class gp, not for {asked.name}")
        if asked.group is not None:
            asked.conditions += group_of(request, asked.group, view.as_of_ns).conditions
        if asked.name == "cdm_public":
            reader_of(request, of_every_source=True)
            live: LiveCatalogue = request.app.state.live
            return of_tables(
                request,
                _answer(asked, asked.chosen(with_objects(each, view) for each in live.source.alerts(as_of(request)))),
            )
        return of_view(request, view, asked.format, lambda: _of_view(request, asked, view))


def _of_view(request: Request, asked: Query, view: View) -> Response:
    live: LiveCatalogue = request.app.state.live
    rows = _rows(asked, view, live.source)
    if asked.name != "gp":
        return _answer(asked, asked.chosen(rows))
    may_be_new = may_have_changed(request, view)
    response = _answer(asked, asked.chosen(each for each in rows if each.record and may_be_new(each.record)))
    response.headers.update(cursor_headers(view))
    return response


def _path(request: Request) -> list[str]:
    """Return the parts of the query in the path, decoded one by one: a value may hold a slash."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    text = raw.decode("ascii", "replace").partition("?")[0].partition("/query/")[2]
    return [unquote(part) for part in text.strip("/").split("/")]


def _require_format(asked: Query) -> None:
    if asked.group is not None and asked.name not in _SET_CLASSES:
        raise BadRequest("favorites are groups of objects with element sets: ask for class gp or gp_history")
    formats = [*_TABLES, *(each for each in _OF_SETS if each not in _TABLES and asked.name in _SET_CLASSES)]
    if asked.format not in formats:
        raise BadRequest(f"format is {asked.format[:40]!r}, of class {asked.name} must be one of {', '.join(formats)}")


def _rows(asked: Query, view: View, source: CatalogueSource) -> Iterable[CataloguedObject]:
    """Return what a query chooses from; where it names objects, only those."""
    named = asked.condition("NORAD_CAT_ID")
    numbers: Sequence[Any] = [] if named is None else named.values or []
    # What is no number of an object is left to the condition.
    wanted = sorted({each for each in numbers if isinstance(each, int) and 0 < each <= GREATEST_ID})
    wanted = wanted if len(numbers) == len(wanted) else []
    if asked.name == "satcat":
        return view.every_object()
    if asked.name == "decay":
        return chain((each for each in view.every_object() if each.decay_ns is not None), view.predictions())
    if asked.name == "tip":
        return view.predictions()
    if asked.name == "gp_history":
        return map(view.known, _history(asked, view, source, wanted))
    if wanted:
        return (view.known(found) for number in wanted if (found := view.get(number)))
    return (view.known(each) for each in view.objects())


def _history(asked: Query, view: View, source: CatalogueSource, wanted: Sequence[int]) -> Iterable[StoredElements]:
    """Return the sets of objects that are named, or those that were received from a time on. Raises BadRequest."""
    created = asked.condition("CREATION_DATE")
    if 0 < len(wanted) <= _MOST_OBJECTS:
        span_ns = _span_ns(asked.condition("EPOCH"))
        return (each for number in wanted for each in view.history(number, *span_ns))
    if created is None or created.low is None:
        raise BadRequest(
            f"class gp_history needs NORAD_CAT_ID, up to {_MOST_OBJECTS:,} objects, or CREATION_DATE from a time on: "
            ">now-1 or 2024-11-01--2024-11-02"
        )
    span_ns = _span_ns(created)
    stored = records(source.received_between(view.binding, span_ns, _MOST_SETS + 1)) if view.binding else []
    if len(stored) > _MOST_SETS:
        raise BadRequest(f"more than {_MOST_SETS:,} sets were received in that time: ask for a shorter one")
    seen = {place(each) for each in stored}
    return [*filter(view.knows, stored), *(each for each in view.waiting_sets() if place(each) not in seen)]


def _span_ns(of: FieldCondition | None) -> tuple[int, int]:
    return (_bounded(of.low, ALWAYS_NS), _bounded(of.high, FOREVER_NS)) if of else (ALWAYS_NS, FOREVER_NS)


def _bounded(time_ns: int | None, default: int) -> int:
    return default if time_ns is None else min(max(time_ns, ALWAYS_NS), FOREVER_NS)


def _answer(asked: Query, found: _Found) -> Response:
    if asked.format in _LINES:
        return _lines(asked.format, found)
    if asked.name in _SET_CLASSES and asked.format in _OF_SETS:
        try:
            body, media_type, left_out = rendered(asked.format, [each.record for each in found])
        except NotAcceptable as error:
            raise BadRequest(str(error)) from None
        return Response(body, 200, {LEFT_OUT: str(left_out)} if left_out else {}, media_type)
    rows = [{each.name: each.stated(row) for each in asked.fields} for row in found]
    write, media_type = _WRITERS[asked.format]
    return Response(write(asked, rows), 200, media_type=media_type)


def _lines(name: str, found: Sequence[CataloguedObject]) -> Response:
    lines = [each.lines[_LINES[name]] for each in found if each.lines]
    left_out = len(found) - len(lines)
    body = "".join(f"{line}\r\n" for each in lines for line in each)
    return Response(body, 200, {LEFT_OUT: str(left_out)} if left_out else {}, "text/plain")


Rows = Sequence[Mapping[str, str | None]]


def _as_json(asked: Query, rows: Rows) -> bytes:
    facts = {"Total": len(rows), "Limit": asked.limit, "LimitOffset": asked.offset, "ReturnedRows": len(rows)}
    document = {"request_metadata": facts, "data": rows} if asked.has_metadata else rows
    return json.dumps(document).encode()


def _as_csv(asked: Query, rows: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, [each.name for each in asked.fields], quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: value and _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


def _cell(value: str) -> str:
    """Return a cell of CSV; a status code may be a sign alone, of which a spreadsheet makes no formula."""
    return value if value in STATUSES else in_csv(value)


def _as_xml(_: Query, rows: Rows) -> bytes:
    items = (
        "".join(f"<{name}>{escape(value)}</{name}>" for name, value in row.items() if value is not None) for row in rows
    )
    body = "".join(f"<item>{item}</item>" for item in items)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<xml>{body}</xml>\n'.encode()


_WRITERS: Final[Mapping[str, tuple[Callable[[Query, Rows], bytes], str]]] = {
    "json": (_as_json, "application/json"),
    "csv": (_as_csv, "text/csv"),
    "xml": (_as_xml, "application/xml"),
}

"""CelesTrak's queries `gp.php` and `sup-gp.php`, so that clients written for them can use this catalogue.

The parameters are those of CelesTrak's pages "A New Way to Obtain GP Data" and "How to Perform SupGP Queries": one of
CATNR, INTDES, NAME, SPECIAL and GROUP, which is FILE in the second, and there also SOURCE; and FORMAT, which is TLE
unless given. Names and values have any case. An empty result is the text "No GP data found", with status 200, as there.
`serving.groups` has the groups.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sda_platform.orbits.element_order import rank
from sda_platform.orbits.elements import apogee_altitude_km, perigee_altitude_km
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.serving.changes_since import cursor_headers, may_have_changed
from sda_platform.serving.conditional import answered, of_view
from sda_platform.serving.groups import group_of
from sda_platform.serving.parameters import Parameter
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import LEFT_OUT, NotAcceptable, chosen, rendered
from sda_platform.serving.requests import BadRequest, parsed_number, view_of
from sda_platform.serving.satellites import CataloguedObject
from sda_platform.serving.states import elements_of
from sda_platform.serving.view import View
from sda_platform.units import DAY_NS

_NOTHING: Final = "No GP data found"
_GROUP, _FILE, _SOURCE = "GROUP", "FILE", "SOURCE"
OPERATOR_RANK: Final = 30
"""Sources from this rank on bring what operators determine."""
SUPPLEMENTAL_NS: Final = 7 * DAY_NS
"""So old a set of an operator may be."""
Search = Callable[[View], Iterable[StoredElements]]
_Choice = Callable[[View, Iterable[StoredElements], str | None], Iterable[StoredElements]]
_QUERY: Final = {
    "CATNR": Parameter("Catalogue number, or several, separated by commas."),
    "INTDES": Parameter("International designator of a launch or an object."),
    "NAME": Parameter("A part of the name."),
    "SPECIAL": Parameter("gpz, gpz-plus: the geostationary protected region, or all that reaches it; decaying."),
    "FORMAT": Parameter("TLE (with the name), 3LE, 2LE, XML, KVN, JSON, JSON-PRETTY or CSV."),
}
_A_GROUP: Final = Parameter("A group, such as starlink, geo or fengyun-1c-debris.")
GP_QUERY: Final = {**_QUERY, _GROUP: _A_GROUP}
SUP_GP_QUERY: Final = {**_QUERY, _FILE: _A_GROUP, _SOURCE: Parameter("Who brought the sets.")}
_PROTECTED_KM: Final = (35_586.0, 35_986.0)
_OVERDUE_NS: Final = 7 * DAY_NS
"""So long after the predicted time an object still counts as decaying."""
_PROTECTED_INCLINATION_DEG: Final = 15.0
"""The geostationary protected region: 35,786 km and 200 km to each side, 15 deg north and south (IADC-02-01)."""


async def gp(request: Request) -> Response:
    """Element sets by catalogue number, launch, name or group."""
    return await answered(request, _answered, request, {**_SEARCHES, _GROUP: partial(_group, request)}, _as_found)


async def sup_gp(request: Request) -> Response:
    """Element sets of operators, by the same, or by their source."""
    searches = {**_SEARCHES, _FILE: partial(_group, request), _SOURCE: lambda _: lambda view: view.objects()}
    return await answered(request, _answered, request, searches, _supplemental)


def _answered(request: Request, searches: Mapping[str, Callable[[str], Search]], choose: _Choice) -> Response:
    query = {name.upper(): value for name, value in request.query_params.items()}
    try:
        name = chosen(query.get("FORMAT") or "tle", None)
    except NotAcceptable as error:
        raise BadRequest(f"Invalid query: {error}") from None
    given = [each for each in searches if query.get(each)]
    if len(given) != 1:
        raise BadRequest(f"Invalid query: give one of {', '.join(searches)}")
    value = query[given[0]].strip()
    search, source = searches[given[0]](value), value if given[0] == _SOURCE else None

    def answer() -> Response:
        records = list(filter(may_have_changed(request, view), choose(view, search(view), source)))
        headers = cursor_headers(view)
        if not records:
            return PlainTextResponse(_NOTHING, headers=headers)
        try:
            body, media_type, left_out = rendered(name, records)
        except NotAcceptable as error:
            return PlainTextResponse(f"{_NOTHING}: {error}", headers=headers)
        return Response(body, 200, {**headers, **({LEFT_OUT: str(left_out)} if left_out else {})}, media_type)

    with view_of(request) as view:
        return of_view(request, view, name, answer)


def _as_found(_: View, records: Iterable[StoredElements], __: str | None) -> Iterable[StoredElements]:
    return records


def _supplemental(view: View, records: Iterable[StoredElements], source: str | None) -> Iterator[StoredElements]:
    """Yield of the objects of ``records``, and of each source of theirs, the set in force of the last days.

    ``source``: that source alone, in any case; else those that rank as an operator.
    """
    since_ns, until_ns = view.as_of_ns - SUPPLEMENTAL_NS, view.as_of_ns + EPOCH_TOLERANCE_NS
    for number in dict.fromkeys(each.norad_id for each in records):
        best: dict[str, StoredElements] = {}
        for each in view.history(number, since_ns, until_ns):
            named = each.source_name or ""
            is_wanted = each.source_priority >= OPERATOR_RANK if source is None else named.upper() == source.upper()
            if is_wanted:
                best[named] = max(best.get(named, each), each, key=lambda one: rank(one._asdict(), view.as_of_ns))
        yield from (best[named] for named in sorted(best))


def _by_number(value: str) -> Search:
    try:
        numbers = [parsed_number(each.strip(), "CATNR") for each in value.split(",")]
    except BadRequest as error:
        raise BadRequest(f"Invalid query: {error}") from None
    return lambda view: [found for number in numbers if (found := view.get(number))]


def _group(request: Request, value: str) -> Search:
    try:
        group_of(request, value, 0)
    except BadRequest as error:
        raise BadRequest(f"Invalid query: {error}") from None

    def found(view: View) -> Iterable[StoredElements]:
        objects = group_of(request, value, view.as_of_ns).chosen(map(view.known, view.objects()))
        return [each.record for each in objects if each.record]

    return found


def _special(value: str) -> Search:
    """Return the objects whose orbits stay in the geostationary protected region (gpz), or touch its heights
    (gpz-plus).

    ``decaying``: those that are predicted to decay.
    """
    special = value.lower()
    if special == "decaying":
        return lambda view: [each for each in view.objects() if _is_decaying(view.known(each), view.as_of_ns)]
    if special not in ("gpz", "gpz-plus"):
        raise BadRequest(f"Invalid query: SPECIAL is {value[:40]!r}, must be gpz, gpz-plus or decaying")
    return lambda view: _protected(list(view.objects()), is_whole=special == "gpz")


def _is_decaying(each: CataloguedObject, time_ns: int) -> bool:
    predicted_ns: int | None = each.facts.get("predicted_decay_time_ns")
    return each.is_in_orbit(time_ns) and predicted_ns is not None and predicted_ns > time_ns - _OVERDUE_NS


def _protected(records: list[StoredElements], *, is_whole: bool) -> list[StoredElements]:
    elements = elements_of(records)
    perigee_km, apogee_km = perigee_altitude_km(elements), apogee_altitude_km(elements)
    low_km, high_km = _PROTECTED_KM
    stays = (perigee_km >= low_km) & (apogee_km <= high_km) & (elements.inclination_deg <= _PROTECTED_INCLINATION_DEG)
    touches = (perigee_km <= high_km) & (apogee_km >= low_km)
    chosen = stays if is_whole else touches
    return [record for record, is_chosen in zip(records, chosen.tolist(), strict=True) if is_chosen]


_SEARCHES: Final[Mapping[str, Callable[[str], Search]]] = {
    "CATNR": _by_number,
    "INTDES": lambda value: lambda view: view.found({"designator": value}),
    "NAME": lambda value: lambda view: view.found({"name": value}),
    "SPECIAL": _special,
}

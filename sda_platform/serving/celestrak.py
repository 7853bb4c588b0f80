"""CelesTrak's query `gp.php`, so that clients written for it can use this catalogue.

The parameters are those of CelesTrak's page "A New Way to Obtain GP Data": one of CATNR, INTDES, NAME, GROUP and
SPECIAL, and FORMAT, which is TLE unless given. Names and values have any case. An empty result is the text "No GP data
found", with status 200, as there. CelesTrak keeps lists of the objects of its groups; here names, numbers and orbits
decide, so that groups are approximations: which satellites still work is not known. SPECIAL=DECAYING needs predictions
that are not made here.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sda_platform.orbits.elements import FOREVER_NS, ElementSets, apogee_altitude_km, perigee_altitude_km
from sda_platform.serving.conditional import of_view
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import LEFT_OUT, NotAcceptable, chosen, rendered
from sda_platform.serving.requests import BadRequest, parsed_number, view_of
from sda_platform.serving.view import View

_NOTHING: Final = "No GP data found"
Search = Callable[[View], Iterable[StoredElements]]
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "beidou": ("BEIDOU",),
    "cosmos-1408-debris": ("COSMOS 1408",),
    "cosmos-2251-debris": ("COSMOS 2251",),
    "fengyun-1c-debris": ("FENGYUN 1C",),
    "eutelsat": ("EUTELSAT",),
    "galileo": ("GSAT0",),
    "globalstar": ("GLOBALSTAR",),
    "goes": ("GOES ",),
    "gorizont": ("GORIZONT",),
    "gps-ops": ("GPS ", "NAVSTAR"),
    "hulianwang": ("HULIANWANG",),
    "intelsat": ("INTELSAT",),
    "iridium": ("IRIDIUM",),
    "iridium-33-debris": ("IRIDIUM 33",),
    "kuiper": ("KUIPER",),
    "molniya": ("MOLNIYA",),
    "noaa": ("NOAA ",),
    "oneweb": ("ONEWEB",),
    "orbcomm": ("ORBCOMM",),
    "planet": ("FLOCK", "SKYSAT"),
    "qianfan": ("QIANFAN",),
    "raduga": ("RADUGA",),
    "ses": ("SES-",),
    "spire": ("LEMUR",),
    "starlink": ("STARLINK",),
    "stations": ("ISS (", "CSS (", "PROGRESS", "SOYUZ-MS", "TIANZHOU", "SHENZHOU", "CREW DRAGON", "CYGNUS"),
    "telesat": ("TELSTAR", "ANIK", "NIMIQ"),
}
"""Groups by how the names of their objects begin. Debris and rocket bodies are of groups of debris only."""
_PATTERNS: Final = {"iridium-next": re.compile(r"IRIDIUM 1[0-9]{2}\b")}
"""Groups by a pattern of names: satellites of the first generation have numbers below 100."""
_DEBRIS: Final = "-debris"
_NO_SATELLITE: Final = re.compile(r"\b(DEB|AKM|PKM)\b|R/B")
_ANALYST: Final = ((80_000, 90_000), (270_000, 340_000))
"""Catalogue numbers of analyst satellites."""
_GEO_MEAN_MOTION_REV_PER_DAY: Final = (0.99, 1.01)
_GEO_ECCENTRICITY: Final = 0.01
_PROTECTED_KM: Final = (35_586.0, 35_986.0)
_PROTECTED_INCLINATION_DEG: Final = 15.0
"""The geostationary protected region: 35,786 km and 200 km to each side, 15 deg north and south (IADC-02-01)."""


async def gp(request: Request) -> Response:
    """Element sets by catalogue number, launch, name or group."""
    return await run_in_threadpool(_gp, request)


def _gp(request: Request) -> Response:
    query = {name.upper(): value for name, value in request.query_params.items()}
    try:
        name = chosen(query.get("FORMAT") or "tle", None)
    except NotAcceptable as error:
        raise BadRequest(f"Invalid query: {error}") from None
    searches = [each for each in _SEARCHES if query.get(each)]
    if len(searches) != 1:
        raise BadRequest(f"Invalid query: give one of {', '.join(_SEARCHES)}")
    search = _SEARCHES[searches[0]](query[searches[0]].strip())

    def answer() -> Response:
        records = list(search(view))
        if not records:
            return PlainTextResponse(_NOTHING)
        try:
            body, media_type, left_out = rendered(name, records)
        except NotAcceptable as error:
            return PlainTextResponse(f"{_NOTHING}: {error}")
        return Response(body, 200, {LEFT_OUT: str(left_out)} if left_out else {}, media_type)

    with view_of(request) as view:
        return of_view(request, view, name, answer)


def _by_number(value: str) -> Search:
    try:
        numbers = [parsed_number(each.strip(), "CATNR") for each in value.split(",")]
    except BadRequest as error:
        raise BadRequest(f"Invalid query: {error}") from None
    return lambda view: [found for number in numbers if (found := view.get(number))]


def _group(value: str) -> Search:
    group = value.lower()
    if group == "all":
        return lambda view: view.objects()
    if group == "active":  # whether an object works is not known here
        return lambda view: _that(view, lambda each: (each.decay_time_ns or FOREVER_NS) > view.as_of_ns)
    if group == "geo":
        return lambda view: _that(view, _is_geostationary)
    if group == "analyst":
        return lambda view: _that(view, lambda each: any(low <= each.norad_id < high for low, high in _ANALYST))
    beginnings, pattern = _NAMES.get(group), _PATTERNS.get(group)
    if beginnings is None and pattern is None:
        known = ", ".join(sorted(("active", "all", "analyst", "geo", *_NAMES, *_PATTERNS)))
        raise BadRequest(f"Invalid query: no group {value[:40]!r} here; the groups are: {known}")
    takes_debris = group.endswith(_DEBRIS)

    def is_of_group(record: StoredElements) -> bool:
        name = (record.object_name or "").upper()
        is_named = pattern.match(name) is not None if pattern else name.startswith(beginnings or ())
        return is_named and (takes_debris or _NO_SATELLITE.search(name) is None)

    return lambda view: _that(view, is_of_group)


def _that(view: View, is_chosen: Callable[[StoredElements], bool]) -> Iterable[StoredElements]:
    return filter(is_chosen, view.objects())


def _is_geostationary(record: StoredElements) -> bool:
    low, high = _GEO_MEAN_MOTION_REV_PER_DAY
    return low < record.mean_motion_rev_per_day < high and record.eccentricity < _GEO_ECCENTRICITY


def _special(value: str) -> Search:
    """The objects whose orbits stay in the geostationary protected region (gpz), or touch its heights (gpz-plus)."""
    special = value.lower()
    if special not in ("gpz", "gpz-plus"):
        raise BadRequest(f"Invalid query: SPECIAL is {value[:40]!r}, must be gpz or gpz-plus")
    return lambda view: _protected(list(view.objects()), is_whole=special == "gpz")


def _protected(records: list[StoredElements], *, is_whole: bool) -> list[StoredElements]:
    columns = {field.name: [getattr(each, field.name) for each in records] for field in fields(ElementSets)}
    elements = ElementSets.from_columns(columns)
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
    "GROUP": _group,
    "SPECIAL": _special,
}

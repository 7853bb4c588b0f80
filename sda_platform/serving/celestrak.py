"""CelesTrak's query `gp.php`, so that clients written for it can use this catalogue.

The parameters are those of CelesTrak's page "A New Way to Obtain GP Data": one of CATNR, INTDES, NAME, GROUP and
SPECIAL, and FORMAT, which is TLE unless given. Names and values have any case. An empty result is the text "No GP data
found", with status 200, as there. CelesTrak keeps lists of the objects of its groups; here names, numbers and orbits
decide, so that groups are approximations. SPECIAL=DECAYING needs predictions that are not made here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sda_platform.orbits.elements import ElementSets, apogee_altitude_km, perigee_altitude_km
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import NotAcceptable, chosen, rendered

_NOTHING: Final = "No GP data found"
_SEARCHES: Final = ("CATNR", "INTDES", "NAME", "GROUP", "SPECIAL")
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
    "iridium-next": ("IRIDIUM 1",),
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
"""Groups by how the names of their objects begin."""
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
    live: LiveCatalogue = request.app.state.live
    query = {name.upper(): value for name, value in request.query_params.items()}
    try:
        name = chosen(query.get("FORMAT") or "tle", None)
    except NotAcceptable as error:
        return PlainTextResponse(f"Invalid query: {error}", 400)
    searches = [each for each in _SEARCHES if query.get(each)]
    if len(searches) != 1:
        return PlainTextResponse(f"Invalid query: give one of {', '.join(_SEARCHES)}", 400)
    found = _found(live, searches[0], query[searches[0]].strip())
    if found is None:
        known = ", ".join(("active", "analyst", "geo", *_NAMES))
        text = f"no such group or number here; the groups are: {known}; SPECIAL is gpz or gpz-plus"
        return PlainTextResponse(f"Invalid query: {text}", 400)
    records = list(found)
    if not records:
        return PlainTextResponse(_NOTHING)
    try:
        body, media_type, left_out = rendered(name, records)
    except NotAcceptable as error:
        return PlainTextResponse(f"{_NOTHING}: {error}")
    headers = {"ETag": live.etag, **({"X-Left-Out": str(left_out)} if left_out else {})}
    return Response(body, 200, headers, media_type)


def _found(live: LiveCatalogue, search: str, value: str) -> Iterable[StoredElements] | None:
    """What the search finds; None where it cannot be carried out."""
    if search == "CATNR":
        numbers = value.split(",")
        if not all(number.isascii() and number.isdigit() and len(number) <= 9 for number in numbers):
            return None
        return [found for number in numbers if (found := live.get(int(number)))]
    if search == "INTDES":
        return live.found({"designator": value})
    if search == "NAME":
        return live.found({"name": value})
    if search == "SPECIAL":
        return _protected(live, value.lower())
    return _group(live, value.lower())


def _group(live: LiveCatalogue, group: str) -> Iterable[StoredElements] | None:
    if group in ("active", "all"):  # whether an object works is not known here
        return live.objects()
    if group == "geo":
        return (each for each in live.objects() if _is_geostationary(each))
    if group == "analyst":
        return (each for each in live.objects() if any(low <= each.norad_id < high for low, high in _ANALYST))
    beginnings = _NAMES.get(group)
    if beginnings is None:
        return None
    return (each for each in live.objects() if (each.object_name or "").upper().startswith(beginnings))


def _is_geostationary(record: StoredElements) -> bool:
    low, high = _GEO_MEAN_MOTION_REV_PER_DAY
    return low < record.mean_motion_rev_per_day < high and record.eccentricity < _GEO_ECCENTRICITY


def _protected(live: LiveCatalogue, special: str) -> Iterable[StoredElements] | None:
    """The objects whose orbits stay in the geostationary protected region (gpz), or touch its heights (gpz-plus)."""
    if special not in ("gpz", "gpz-plus"):
        return None
    records = list(live.objects())
    columns = {field.name: [getattr(each, field.name) for each in records] for field in fields(ElementSets)}
    elements = ElementSets.from_columns(columns)
    perigee_km, apogee_km = perigee_altitude_km(elements), apogee_altitude_km(elements)
    low_km, high_km = _PROTECTED_KM
    stays = (perigee_km >= low_km) & (apogee_km <= high_km) & (elements.inclination_deg <= _PROTECTED_INCLINATION_DEG)
    touches = (perigee_km <= high_km) & (apogee_km >= low_km)
    chosen = stays if special == "gpz" else touches
    return [record for record, is_chosen in zip(records, chosen.tolist(), strict=True) if is_chosen]

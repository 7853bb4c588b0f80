"""CelesTrak's query `gp.php`, so that clients written for it can use this catalogue.

The parameters are those of CelesTrak's page "A New Way to Obtain GP Data": one of CATNR, INTDES, NAME and
GROUP, and FORMAT. An empty result is the text "No GP data found", with status 200, as there.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import NotAcceptable, chosen, rendered

_NOTHING: Final = "No GP data found"
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "beidou": ("BEIDOU",),
    "cosmos-1408-debris": ("COSMOS 1408",),
    "cosmos-2251-debris": ("COSMOS 2251",),
    "fengyun-1c-debris": ("FENGYUN 1C",),
    "galileo": ("GSAT0",),
    "globalstar": ("GLOBALSTAR",),
    "gps-ops": ("GPS ", "NAVSTAR"),
    "intelsat": ("INTELSAT",),
    "iridium": ("IRIDIUM",),
    "iridium-33-debris": ("IRIDIUM 33",),
    "oneweb": ("ONEWEB",),
    "orbcomm": ("ORBCOMM",),
    "planet": ("FLOCK", "SKYSAT"),
    "starlink": ("STARLINK",),
}
"""Groups by how the names of their objects begin. CelesTrak keeps curated lists: these are approximations."""
_GEO_MEAN_MOTION_REV_PER_DAY: Final = (0.99, 1.01)
_GEO_ECCENTRICITY: Final = 0.01


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
    searches = [each for each in ("CATNR", "INTDES", "NAME", "GROUP") if query.get(each)]
    if len(searches) != 1:
        return PlainTextResponse("Invalid query: give one of CATNR, INTDES, NAME and GROUP", 400)
    found = _found(live, searches[0], query[searches[0]].strip())
    if found is None:
        known = ", ".join(("active", "geo", *_NAMES))
        return PlainTextResponse(f"Invalid query: no such group or number here; the groups are: {known}", 400)
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
    return _group(live, value.lower())


def _group(live: LiveCatalogue, group: str) -> Iterable[StoredElements] | None:
    if group in ("active", "all"):  # whether an object works is not known here
        return live.objects()
    if group == "geo":
        return (each for each in live.objects() if _is_geostationary(each))
    beginnings = _NAMES.get(group)
    if beginnings is None:
        return None
    return (each for each in live.objects() if (each.object_name or "").upper().startswith(beginnings))


def _is_geostationary(record: StoredElements) -> bool:
    low, high = _GEO_MEAN_MOTION_REV_PER_DAY
    return low < record.mean_motion_rev_per_day < high and record.eccentricity < _GEO_ECCENTRICITY

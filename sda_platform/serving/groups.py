"""Groups of objects, each a query in the language of `serving.query`, over the fields of class `gp`.

CelesTrak keeps lists of the objects of some of its groups. Here types, statuses, launches, orbits and names decide. A
file adds lists and groups of one's own:

    [groups.visual]
    norad_ids = [25544, 20580]

    [groups.old-rocket-bodies]
    query = "OBJECT_TYPE/ROCKET BODY/LAUNCH_DATE/<1980-01-01"

Queries with ` or ` between them make one group of the objects of each.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from starlette.requests import Request

from sda_platform.formats.element_set import UNKNOWN
from sda_platform.formats.satcat import DEBRIS, PAYLOAD, TO_BE_ASSIGNED, WORKING
from sda_platform.serving.errors import ServingError
from sda_platform.serving.query import NULL, TEXT, FieldCondition, Query, QueryField, parsed
from sda_platform.serving.requests import BadRequest
from sda_platform.serving.spacetrack_classes import CLASSES
from sda_platform.toml_file import read_toml

_SATELLITES: Final = f"OBJECT_TYPE/{PAYLOAD},{UNKNOWN},{TO_BE_ASSIGNED}/DECAY_DATE/{NULL},>now"
_WORKING: Final = f"{_SATELLITES}/OPS_STATUS_CODE/{','.join(WORKING)},{NULL}"
_DEBRIS_OF: Final = {
    "cosmos-1408-debris": "1982-092",
    "cosmos-2251-debris": "1993-036",
    "fengyun-1c-debris": "1999-025",
    "iridium-33-debris": "1997-051",
}
"""The launches whose debris are groups of CelesTrak."""
_NAMED: Final = {
    "beidou": ("BEIDOU",),
    "eutelsat": ("EUTELSAT",),
    "galileo": ("GSAT0",),
    "globalstar": ("GLOBALSTAR",),
    "goes": ("GOES ",),
    "gorizont": ("GORIZONT",),
    "hulianwang": ("HULIANWANG",),
    "intelsat": ("INTELSAT",),
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
"""Groups of one operator's satellites, by how their names begin."""
_IRIDIUM: Final = f"OBJECT_NAME/^IRIDIUM/{_SATELLITES}"
_WEATHER: Final = (
    "NOAA ", "GOES ", "METEOSAT", "METEOR-M", "METOP", "FENGYUN", "HIMAWARI", "ELEKTRO-L", "ARKTIKA-M", "DMSP", "JPSS",
    "SUOMI NPP", "INSAT-3", "GEO-KOMPSAT-2A", "MSG-",
)  # fmt: skip
_OR: Final = " or "
"""Between the queries of a group that has the objects of each."""
_NAVIGATION: Final = {
    "gps-ops": f"OBJECT_NAME/^GPS ,^NAVSTAR/MEAN_MOTION/1.9--2.1/{_WORKING}",
    "glo-ops": f"OBJECT_NAME/^COSMOS/MEAN_MOTION/2.1--2.2/INCLINATION/63--67/{_WORKING}",
}
BUILT_IN: Final[Mapping[str, str]] = {
    "all": "",
    "active": _WORKING,
    "analyst": "NORAD_CAT_ID/80000--89999,270000--339999",
    "geo": "MEAN_MOTION/0.99--1.01/ECCENTRICITY/<0.01",
    "last-30-days": "LAUNCH_DATE/>now-30",
    # One launch has the first generation, the other the second: their numbers overlap.
    "iridium": f"{_IRIDIUM}/OBJECT_ID/<2017",
    "iridium-next": f"{_IRIDIUM}/OBJECT_ID/>2017",
    **_NAVIGATION,
    "gnss": _OR.join(
        [*_NAVIGATION.values(), f"OBJECT_NAME/^GSAT0,^BEIDOU,^QZS-,^IRNSS,^NVS-/MEAN_MOTION/0.9--2.2/{_WORKING}"]
    ),
    "weather": f"OBJECT_NAME/{','.join(f'^{each}' for each in _WEATHER)}/{_WORKING}",
    **{group: f"OBJECT_ID/^{launch}/OBJECT_TYPE/{DEBRIS}" for group, launch in _DEBRIS_OF.items()},
    **{group: f"OBJECT_NAME/{','.join(f'^{each}' for each in names)}/{_SATELLITES}" for group, names in _NAMED.items()},
}
"""The groups that every catalogue has."""


class GroupsError(ServingError):
    """The file of groups cannot be used; the text names it, the group and what is wrong."""


class GroupConfig(BaseModel):
    """One group of the file: its objects, or the query that finds them."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    norad_ids: list[PositiveInt] = Field(default_factory=list, max_length=100_000)
    query: str = ""

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if bool(self.norad_ids) == bool(self.query):
            raise ValueError("give norad_ids or query")
        if self.query:
            try:
                group_query(self.query, 0)
            except BadRequest as error:
                raise ValueError(str(error)) from None
        return self

    @property
    def text(self) -> str:
        """Its query."""
        return self.query or f"NORAD_CAT_ID/{','.join(map(str, self.norad_ids))}"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    groups: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")], GroupConfig]


def load_groups(path: Path | None) -> Mapping[str, str]:
    """Return the queries of all groups by name, with those of the file at ``path``. Raises GroupsError."""
    own = read_toml(path, _File, GroupsError).groups if path else {}
    return {**BUILT_IN, **{name: group.text for name, group in own.items()}}


def group_query(text: str, now_ns: int) -> Query:
    """Read the query of a group, or its queries with `or` between them. Raises BadRequest."""
    found = [_one_query(each, now_ns) for each in text.split(_OR)]
    if len(found) == 1:
        return found[0]
    itself = QueryField("any of several", TEXT, lambda each: each)
    any_of = FieldCondition(
        itself,
        lambda row: any(all(each.is_met(each.field.value(row)) for each in one.conditions) for one in found),
        comparisons=sum(each.comparisons for one in found for each in one.conditions),
    )
    return replace(found[0], conditions=[any_of])


def _one_query(text: str, now_ns: int) -> Query:
    parts = [unquote(part) for part in text.split("/")] if text else []
    return parsed(["class", "gp", *parts], CLASSES, now_ns)


def group_of(request: Request, name: str, now_ns: int) -> Query:
    """Find the query of a group of the endpoint. Raises BadRequest with the groups that there are."""
    groups: Mapping[str, str] = request.app.state.groups
    if name.lower() not in groups:
        raise BadRequest(f"no group {name[:40]!r} here; the groups are: {', '.join(sorted(groups))}")
    return group_query(groups[name.lower()], now_ns)

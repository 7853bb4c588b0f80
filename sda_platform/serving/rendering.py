"""Element sets in the requested format, chosen by `format=` or by the Accept header."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.omm import encode_omm, encode_omm_csv, encode_omm_json
from sda_platform.formats.tle_writing import MOST_ALPHA_5, encode_tles
from sda_platform.serving.negotiation import best
from sda_platform.serving.record import StoredElements

LEFT_OUT: Final = "X-Left-Out"
"""Header that counts what an answer lacks: sets that do not fit into its format, tasks whose object has none."""


class NotAcceptable(Exception):
    """The requested format is not supported, or the set does not fit into it."""


@dataclass(frozen=True)
class Rendering:
    """One format: its media type, and what writes sets in it; that raises ValueError for one that does not fit."""

    media_type: str
    write: Callable[[Sequence[ElementSet]], bytes]


def _two_lines(sets: Sequence[ElementSet]) -> bytes:
    return b"".join(b"\n".join(encode_tles([each]).splitlines()[-2:]) + b"\n" for each in sets)


def _pretty(sets: Sequence[ElementSet]) -> bytes:
    return json.dumps(json.loads(encode_omm_json(sets)), indent=4, ensure_ascii=False).encode()


RENDERINGS: Final[Mapping[str, Rendering]] = {
    "json": Rendering("application/json", encode_omm_json),
    "json-pretty": Rendering("application/json", _pretty),
    "csv": Rendering("text/csv", encode_omm_csv),
    "tle": Rendering("text/plain", encode_tles),
    "3le": Rendering("text/plain", encode_tles),
    "2le": Rendering("text/plain", _two_lines),
    "xml": Rendering("application/xml", partial(encode_omm, encoding="xml")),
    "kvn": Rendering("application/x-ccsds-kvn", partial(encode_omm, encoding="kvn")),
}
"""The formats by the names that CelesTrak gives them, in lower case."""
_BY_MEDIA_TYPE: Final = {
    "application/json": "json",
    "text/csv": "csv",
    "text/plain": "tle",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/x-ccsds-kvn": "kvn",
}
"""The format by which each accepted media type is answered; the first is the default."""


def chosen(requested: str | None, accept: str | None) -> str:
    """Return the name of the format to answer in: the one ``requested``, else the best of the Accept header.

    Raises NotAcceptable.
    """
    if requested is not None:
        name = requested.lower()
        if name not in RENDERINGS:
            raise NotAcceptable(f"format {requested[:40]!r} is not written here; there are: {', '.join(RENDERINGS)}")
        return name
    media_type = best(accept, tuple(_BY_MEDIA_TYPE))
    if media_type is None:
        raise NotAcceptable(f"Accept: {(accept or '')[:80]} names no media type that is written here")
    return _BY_MEDIA_TYPE[media_type]


def rendered(name: str, records: Sequence[StoredElements]) -> tuple[bytes, str, int]:
    """Return the sets in a format, its media type, and how many were left out because they do not fit into it.

    Raises NotAcceptable where there are sets and none fits.
    """
    rendering = RENDERINGS[name]
    sets = [element_set(record) for record in records]
    try:
        return rendering.write(sets), rendering.media_type, 0
    except ValueError as error:
        reason = str(error)
    fitting = [each for each in sets if _fits(rendering, each)]
    if not fitting:
        wider = f"json and xml also hold numbers above {MOST_ALPHA_5}"
        raise NotAcceptable(f"format {name} holds none of these sets: {reason}; {wider}")
    return rendering.write(fitting), rendering.media_type, len(sets) - len(fitting)


def _fits(rendering: Rendering, element: ElementSet) -> bool:
    try:
        rendering.write([element])
    except ValueError:
        return False
    return True


def element_set(record: StoredElements) -> ElementSet:
    """Return the record as the formats write it."""
    return ElementSet(
        norad_id=record.norad_id,
        object_name=record.object_name,
        international_designator=record.international_designator,
        epoch_time_ns=record.epoch_time_ns,
        mean_motion_rev_per_day=record.mean_motion_rev_per_day,
        eccentricity=record.eccentricity,
        inclination_deg=record.inclination_deg,
        raan_deg=record.raan_deg,
        arg_of_pericenter_deg=record.arg_of_pericenter_deg,
        mean_anomaly_deg=record.mean_anomaly_deg,
        bstar_per_earth_radius=record.bstar_per_earth_radius or 0.0,
        mean_motion_dot_rev_per_day2=record.mean_motion_dot_rev_per_day2,
        mean_motion_ddot_rev_per_day3=record.mean_motion_ddot_rev_per_day3,
        element_set_number=record.element_set_number,
        originator=record.originator,
        classification=record.classification,
        revolution_at_epoch=record.revolution_at_epoch,
        decay_time_ns=record.decay_time_ns,
        data_mode=record.data_mode,
        owner=record.owner,
        source_name=record.source_name,
    )


def json_rows(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows of a table as JSON; a number that is none, or infinite, is null there."""
    try:
        return json.dumps(list(rows), allow_nan=False, default=str).encode()
    except ValueError:
        return json.dumps(_finite(list(rows)), allow_nan=False, default=str).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value

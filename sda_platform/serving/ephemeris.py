"""The ephemeris of an object over HTTP: states with covariances in a frame, as OEM, OCM or JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.markings import highest
from sda_platform.formats.ocm_writing import write_ocm_kvn, write_ocm_xml
from sda_platform.formats.oem_writing import write_oem_kvn, write_oem_xml
from sda_platform.formats.predicted_ephemeris import predicted_ephemeris
from sda_platform.orbits.earth_orientation import covariances_from_teme, states_from_teme
from sda_platform.orbits.earth_parameters import UnknownOrientation
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.serving.clients import Client, KnownClients
from sda_platform.serving.conditional import of_content, of_this_moment
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.negotiation import best
from sda_platform.serving.predictions import ELEMENT_SET, Prediction, Stretch, predicted
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import LEFT_OUT, NotAcceptable
from sda_platform.serving.requests import (
    BadRequest,
    as_of,
    in_thread,
    object_number,
    parsed_instant,
    seconds_of,
    set_of,
    view_of,
    word_of,
)
from sda_platform.units import DAY_NS, SECOND_NS

FRAMES: Final = ("TEME", "GCRF", "ITRF")
BEST, BY_SETS = SOURCES = ("best", "element_sets")
"""Which states are asked for: by the best source of each time, or by element sets alone."""
MOST_STATES: Final = 10_000
"""Bound of the states of one answer, each with a covariance."""
MOST_DAYS: Final = 31
STEP_S: Final = 0.001, 86_400.0
"""Shortest and longest step."""
_STEP_S: Final = 60.0
_LOWER: Final = np.tril_indices(6)


@dataclass(frozen=True, eq=False)
class PredictedObject:
    """What an answer is made of."""

    record: StoredElements
    frame: str
    created_ns: int
    prediction: Prediction
    numbers: tuple[tuple[FloatArray, FloatArray], ...]
    """Of each stretch states (n, 6) and lower triangles of covariances (n, 21), in the frame."""

    def segments(self) -> list[EphemerisSegment]:
        """Return the segments of a message."""
        marking = highest(each.marking for each in self.prediction.stretches)
        pairs = zip(self.prediction.stretches, self.numbers, strict=True)
        return [
            predicted_ephemeris(
                self.record.norad_id,
                self.record.object_name,
                frame=self.frame,
                created_ns=self.created_ns,
                time_ns=stretch.time_ns,
                states=states,
                covariance_time_ns=stretch.time_ns[known := _are_known(lower)],
                covariances=lower[known],
                comments=_comments(stretch),
                marking=marking,
            )
            for stretch, (states, lower) in pairs
        ]

    def facts(self) -> dict[str, Any]:
        """Return the answer in JSON; a covariance that is not known is null."""
        marking = highest(each.marking for each in self.prediction.stretches)
        pairs = zip(self.prediction.stretches, self.numbers, strict=True)
        segments = [
            {
                "origin": stretch.origin,
                "name": stretch.name,
                "error_scales": list(stretch.error_scales),
                "time_ns": stretch.time_ns.tolist(),
                "states": states.tolist(),
                "covariances": [
                    terms if known else None
                    for terms, known in zip(lower.tolist(), _are_known(lower).tolist(), strict=True)
                ],
            }
            for stretch, (states, lower) in pairs
        ]
        return {
            "norad_id": self.record.norad_id,
            "object_name": self.record.object_name,
            "frame": self.frame,
            **marking.columns(),
            "segments": segments,
        }


FORMATS: Final[Mapping[str, tuple[str, Callable[[PredictedObject], bytes]]]] = {
    "json": ("application/json", lambda each: json.dumps(each.facts(), allow_nan=False).encode()),
    "oem": ("application/x-ccsds-kvn", lambda each: write_oem_kvn(each.segments())),
    "oem-xml": ("application/xml", lambda each: write_oem_xml(each.segments())),
    "ocm": (
        "application/x-ccsds-kvn",
        lambda each: write_ocm_kvn(each.segments(), each.record.international_designator),
    ),
    "ocm-xml": (
        "application/xml",
        lambda each: write_ocm_xml(each.segments(), each.record.international_designator),
    ),
}
"""The formats by name: the media type, and what writes it; the first one of a media type is negotiated."""


async def ephemeris(request: Request) -> Response:
    """Return states of an object with covariances, from a time to another by a step."""
    return await in_thread(request, _ephemeris, request, object_number(request))


def _ephemeris(request: Request, number: int) -> Response:
    name, frame = _format(request), word_of(request, "frame", FRAMES)
    source = word_of(request, "source", SOURCES)
    live: LiveCatalogue = request.app.state.live
    times_ns = _times(request, live.now_ns())
    with view_of(request) as view:
        record = set_of(view, number)
        # What readers of some sources alone get rests on the sets of these.
        is_by_sets = source == BY_SETS or request.state.sources is not None
        span_ns = int(times_ns[0]), int(times_ns[-1])
        paths = [] if is_by_sets else live.source.paths(number, span_ns, as_of(request))
        paths = [each for each in paths if each.is_own or _may_see_plans(request, number)]
        found = predicted(view, record, times_ns, paths)
        created_ns = view.as_of_ns
    if not found.stretches:
        raise BadRequest(f"object {number} has no state in this span: {found.reason}")
    try:
        numbers = tuple(in_frame(frame, each) for each in found.stretches)
    except UnknownOrientation as error:
        raise BadRequest(f"frame {frame}: {error}") from None
    media_type, write = FORMATS[name]
    body = write(PredictedObject(record, frame, created_ns, found, numbers))
    headers = {LEFT_OUT: str(found.missing)} if found.missing else {}
    response = Response(body, 200, headers, media_type)
    return of_content(request, response) if "from" in request.query_params else of_this_moment(request, response)


def _may_see_plans(request: Request, number: int) -> bool:
    """Return whether the ephemerides of operators, which have their plans, are for the reader.

    A client gets those of the objects for which it may write. Who is no client gets none, unless all may write.
    """
    clients: KnownClients = request.app.state.clients
    reader: Client | None = request.state.reader
    if reader is None:
        return clients.is_open and not clients.by_token
    return reader.may_write_for(number)


def _format(request: Request) -> str:
    if "format" in request.query_params:
        return word_of(request, "format", tuple(FORMATS))
    accept = request.headers.get("accept")
    by_media_type = {media_type: name for name, (media_type, _) in reversed(list(FORMATS.items()))}
    found = best(accept, tuple(dict.fromkeys(media_type for media_type, _ in FORMATS.values())))
    if found is None:
        raise NotAcceptable(f"Accept: {(accept or '')[:80]} names no media type that is written here")
    return by_media_type[found]


def _times(request: Request, now_ns: int) -> IntArray:
    given = request.query_params
    from_ns = parsed_instant(given["from"], "from") if "from" in given else now_ns
    until_ns = parsed_instant(given["until"], "until") if "until" in given else min(from_ns + DAY_NS, FOREVER_NS - 1)
    step_ns = round(seconds_of(request, "step", _STEP_S, *STEP_S) * SECOND_NS)
    if until_ns < from_ns:
        raise BadRequest("until is before from")
    if until_ns - from_ns > MOST_DAYS * DAY_NS:
        raise BadRequest(f"from and until are more than {MOST_DAYS} days apart: ask for a part at a time")
    count = (until_ns - from_ns) // step_ns + 1
    if count > MOST_STATES:
        raise BadRequest(f"that is {count:,} states, must be at most {MOST_STATES:,}: take a longer step")
    return from_ns + step_ns * np.arange(count, dtype=np.int64)


def in_frame(frame: str, stretch: Stretch) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of a stretch in one of FRAMES. Raises UnknownOrientation."""
    r, v = states_from_teme(frame, stretch.states[:, :3], stretch.states[:, 3:], stretch.time_ns)
    covariances = covariances_from_teme(frame, stretch.covariances, stretch.time_ns)
    return np.concatenate([r, v], axis=1), covariances[:, _LOWER[0], _LOWER[1]]


def _are_known(lower: FloatArray) -> Any:
    return np.isfinite(lower).all(axis=1)


def _comments(stretch: Stretch) -> Sequence[str]:
    if stretch.origin != ELEMENT_SET:
        return [f"STATES AND COVARIANCES: {stretch.origin.replace('_', ' ')} {stretch.name}"]
    scales = " ".join(f"{each:.3f}" for each in stretch.error_scales)
    return [
        f"STATES: SGP4 from the element set of {stretch.name}",
        f"COVARIANCES: a model of element sets by regime and age; error scales R T N {scales}",
    ]

"""Segments of ephemerides to bronze rows: states and covariances in TEME of date, UTC, whatever was sent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.ephemeris_covariances import (
    OF_DATE,
    frame_named,
    with_covariances,
    with_default_covariances,
)
from sda_platform.catalog.single_states import coast_until_ns, propagated
from sda_platform.catalog.tables import BY_DEFAULT, EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.clock import iso
from sda_platform.formats.designators import (
    NumbersOf,
    catalogue_number,
    is_navigation_number,
    no_objects,
    normal_designator,
)
from sda_platform.formats.element_set import stated_data_mode
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.keywords import values_of
from sda_platform.formats.limits import FIRST_TIME_NS, LAST_TIME_NS
from sda_platform.formats.markings import Marking, classification_of, stated, stated_in
from sda_platform.formats.ndm import COMMENT
from sda_platform.formats.orbit_keywords import EARTH
from sda_platform.formats.parameter_messages import ParameterMessage
from sda_platform.formats.single_state import as_ephemeris
from sda_platform.landing.record_rows import SegmentDecoder, record_decoder
from sda_platform.orbits.earth_orientation import states_in_teme
from sda_platform.orbits.earth_parameters import UnknownOrientation
from sda_platform.orbits.ephemerides import Ephemeris, gaps_of, joined
from sda_platform.orbits.path_quality import fault_of_path, pieces_of_path
from sda_platform.units import DAY_NS, SECOND_NS

_NEAREST_KM, _FARTHEST_KM, _FASTEST_KM_S = 6_356.0, 1e6, 20.0
_J2000_NS: Final = 946_728_000_000_000_000
_SHORTEST_NS: Final = SECOND_NS
_NOTHING: Final = (np.empty(0, np.int64), np.empty((0, 6, 6)))


NO_COVARIANCE: Final = "it has no covariance, without which no Pc follows from it"


def decoder(numbers_of: NumbersOf, is_catalogued: Callable[[int], bool] | None = None) -> SegmentDecoder:
    """Return the decoder of segments of ephemerides; ``numbers_of`` finds the objects that messages name by a
    designator.

    ``is_catalogued``: whether the catalogue has a number, where that can be asked. One that only a file's name says
    must be there. An ephemeris of an object that cannot be found is an error: nothing would use it.
    """
    facts = partial(_facts, numbers_of=numbers_of, is_catalogued=is_catalogued)
    return record_decoder(EPHEMERIDES, EPHEMERIDES_FEED, facts)


def _facts(
    message: EphemerisSegment | ParameterMessage, *, numbers_of: NumbersOf, is_catalogued: Callable[[int], bool] | None
) -> dict[str, Any]:
    ephemeris = as_ephemeris(message) if isinstance(message, ParameterMessage) else message
    with ephemeris.located("CENTER_NAME"):
        if ephemeris.value("CENTER_NAME").upper() not in EARTH:
            raise RecordError("out_of_range", f"CENTER_NAME is {ephemeris.value('CENTER_NAME')[:40]!a}, must be EARTH")
    with ephemeris.located("REF_FRAME"):
        frame = frame_named(ephemeris.value("REF_FRAME"), "REF_FRAME")
    with ephemeris.located("REF_FRAME_EPOCH"):
        frame_epoch_ns = _frame_epoch_ns(ephemeris, frame)
    time_ns = ephemeris.utc_ns(ephemeris.time_ns)
    if not FIRST_TIME_NS <= time_ns[0] <= time_ns[-1] <= LAST_TIME_NS:
        raise RecordError("out_of_range", "an epoch is not between 1957 and 2099")
    _require_distances(ephemeris)
    created = values_of(ephemeris.header).get("CREATION_DATE")
    created_ns = parse_epoch_ns(created) if created else None
    try:
        r, v = states_in_teme(frame, ephemeris.states[:, :3], ephemeris.states[:, 3:6], time_ns, frame_epoch_ns)
        pieces = _pieces(ephemeris, time_ns, np.concatenate([r, v], axis=1))
        pieces, covariance_source = with_covariances(ephemeris, pieces, frame_epoch_ns, created_ns)
        if len(time_ns) == 1:
            pieces = [_propagated(message, ephemeris, pieces[0])]
            if covariance_source == BY_DEFAULT:
                pieces = [with_default_covariances(pieces[0], created_ns)]
    except UnknownOrientation as error:
        raise RecordError("out_of_range", str(error)) from None
    last_ns = int(max(time_ns[-1], pieces[-1].usable_until_ns))
    usable_from_ns, usable_until_ns = _usable_span(ephemeris, pieces)
    header, object_id = values_of(ephemeris.header), ephemeris.value("OBJECT_ID")
    with ephemeris.located("OBJECT_ID"):
        norad_id = _norad_id(object_id, numbers_of)
    if ephemeris.is_by_file_name and is_catalogued is not None and not is_catalogued(norad_id):
        reason = f"the name of the file says object {norad_id}, which the catalogue does not have"
        raise RecordError("out_of_range", f"{reason}; if it is right, state it in the file")
    return {
        "norad_id": norad_id,
        "object_name": ephemeris.value("OBJECT_NAME") or None,
        "object_id": object_id or None,
        "originator": header.get("ORIGINATOR"),
        "message_id": header.get("MESSAGE_ID"),
        "created_time_ns": created_ns,
        "reference_frame": ephemeris.value("REF_FRAME"),
        "first_time_ns": int(time_ns[0]),
        "last_time_ns": last_ns,
        **joined(pieces, int(time_ns[0]), last_ns),
        "usable_from_ns": usable_from_ns,
        "usable_until_ns": usable_until_ns,
        "covariance_source": covariance_source,
        **_marking(message, ephemeris).columns(),
    }


def _marking(message: EphemerisSegment | ParameterMessage, ephemeris: EphemerisSegment) -> Marking:
    """Return the marking that the message states: its classification in the header, its data mode in a user-defined
    value or, as no ephemeris has these, in a comment. Raises RecordError.
    """
    of_header = Marking(classification_of(values_of(ephemeris.header).get("CLASSIFICATION")))
    of_user = stated_data_mode(message.values()) if isinstance(message, ParameterMessage) else None
    entries = (entry.value for entry in (*ephemeris.header, *ephemeris.metadata) if entry.keyword == COMMENT)
    return stated((of_header, Marking(data_mode=of_user), stated_in([*entries, *ephemeris.comments])))


def _frame_epoch_ns(ephemeris: EphemerisSegment, frame: str) -> int | None:
    """Return the instant of the frame's axes by REF_FRAME_EPOCH; None: they are those of the date, or of no date."""
    text = ephemeris.value("REF_FRAME_EPOCH")
    if not text:
        return None
    epoch_ns = _instant_ns(ephemeris, text, "REF_FRAME_EPOCH")
    if frame in OF_DATE:
        return epoch_ns
    if frame == "ITRF" or abs(epoch_ns - _J2000_NS) > DAY_NS:
        reason = f"REF_FRAME_EPOCH is {text[:40]!a}, but REF_FRAME {frame} has an epoch of its own; leave it out"
        raise RecordError("out_of_range", reason)
    return None


def _pieces(ephemeris: EphemerisSegment, time_ns: IntArray, states: FloatArray) -> list[Ephemeris]:
    """Return the path (n, 6) as states, without covariances: in one piece, or what lies between gaps. Raises
    RecordError.
    """
    rows = [slice(0, len(time_ns))]
    if fault := fault_of_path(time_ns, states):
        rows = pieces_of_path(time_ns, states) if fault.is_between else []
        if not rows:
            with ephemeris.located_state(fault.row):
                raise RecordError("out_of_range", fault.reason)
    pieces = [
        Ephemeris(time_ns[each], states[each], *_NOTHING, int(time_ns[each][0]), int(time_ns[each][-1]))
        for each in rows
    ]
    _require_whole(ephemeris, int(time_ns[-1]), max(int(np.diff(each.state_time_ns).max(initial=0)) for each in pieces))
    return pieces


def _require_whole(ephemeris: EphemerisSegment, last_ns: int, step_ns: int) -> None:
    """Refuse a message whose states end more than a step before its STOP_TIME: it lost its end on the way."""
    stop_ns = _bound(ephemeris, "STOP_TIME", last_ns)
    if stop_ns > last_ns + step_ns:
        with ephemeris.located("STOP_TIME"):
            reason = f"it states to end at {iso(stop_ns)}, but its last state is of {iso(last_ns)}"
            raise RecordError("torn_record", f"{reason}: it is not whole")


def _propagated(message: EphemerisSegment | ParameterMessage, ephemeris: EphemerisSegment, at: Ephemeris) -> Ephemeris:
    """Return the path from the one state of a message, up to its first manoeuvre. Raises RecordError."""
    epoch_ns, spacecraft, until_ns = at.usable_from_ns, dict[str, str](), None
    if isinstance(message, ParameterMessage):
        spacecraft = message.section("spacecraftParameters")
        burns = [values_of(entries) for name, entries in message.sections if name == "maneuverParameters"]
        ignitions_ns = [_instant_ns(ephemeris, each["MAN_EPOCH_IGNITION"], "MAN_EPOCH_IGNITION") for each in burns]
        ends_ns = [
            t + round(float(each["MAN_DURATION"]) * SECOND_NS) for t, each in zip(ignitions_ns, burns, strict=True)
        ]
        until_ns = coast_until_ns(epoch_ns, list(zip(ignitions_ns, ends_ns, strict=True)))
    path = propagated(epoch_ns, at.state[0], at.covariance[0], spacecraft)
    return path if until_ns is None else replace(path, usable_until_ns=min(path.usable_until_ns, until_ns))


def _usable_span(ephemeris: EphemerisSegment, pieces: Sequence[Ephemeris]) -> tuple[int, int]:
    """First and last instant to use: of the states, or what of them the message declares usable; neither in a gap."""
    first_ns, last_ns = pieces[0].usable_from_ns, pieces[-1].usable_until_ns
    from_ns = _bound(ephemeris, "USEABLE_START_TIME", first_ns)
    until_ns = _bound(ephemeris, "USEABLE_STOP_TIME", last_ns)
    spans = [(max(from_ns, each.usable_from_ns), min(until_ns, each.usable_until_ns)) for each in pieces]
    used = [(begin_ns, end_ns) for begin_ns, end_ns in spans if end_ns - begin_ns > _SHORTEST_NS]
    if not used:
        usable = f"{iso(from_ns)} to {iso(until_ns)}"
        known = ", ".join(f"{iso(each.usable_from_ns)} to {iso(each.usable_until_ns)}" for each in pieces[:9])
        which = "USEABLE_STOP_TIME" if ephemeris.value("USEABLE_STOP_TIME") else "USEABLE_START_TIME"
        with ephemeris.located(which):
            reason = f"it is usable from {usable}, and has states from {known}: they share no second"
            raise RecordError("out_of_range", reason)
    return used[0][0], used[-1][1]


def _require_distances(ephemeris: EphemerisSegment) -> None:
    """Refuse what no unit or frame makes an orbit of the Earth."""
    states = ephemeris.states
    distance_km = np.linalg.norm(states[:, :3], axis=1)
    speed_km_s = np.linalg.norm(states[:, 3:6], axis=1)
    wrong = (distance_km < _NEAREST_KM) | (distance_km > _FARTHEST_KM) | (speed_km_s > _FASTEST_KM_S)
    for row in np.flatnonzero(wrong)[:1].tolist():
        reason = f"{distance_km[row]:.6g} km from the Earth's centre at {speed_km_s[row]:.6g} km/s is no orbit"
        with ephemeris.located_state(row):
            raise RecordError("out_of_range", f"state {row + 1}: {reason}")


def _bound(ephemeris: EphemerisSegment, keyword: str, otherwise: int) -> int:
    text = ephemeris.value(keyword)
    return _instant_ns(ephemeris, text, keyword) if text else otherwise


def _instant_ns(ephemeris: EphemerisSegment, text: str, keyword: str) -> int:
    return int(ephemeris.utc_ns(np.array([parse_epoch_ns(text, keyword)]))[0])


def _norad_id(object_id: str, numbers_of: NumbersOf) -> int:
    """Return the catalogue number of an OBJECT_ID: that number itself, or the international designator (502.0-B-3).

    Of navigation satellites also their number in their system, as the catalogue's names state it now.
    """
    number = catalogue_number(object_id)
    if number is not None:
        return number
    designator, named = normal_designator(object_id), f"OBJECT_ID is {ascii(object_id)[:40]}"
    if is_navigation_number(object_id):
        designator, named = object_id, f"the satellite is {object_id}"
    if designator is None:
        raise RecordError("bad_field", f"{named}, must be a catalogue number or a designator like 1998-067A")
    numbers = numbers_of(designator)
    if len(numbers) != 1:
        objects = "no object" if not numbers else f"the objects {', '.join(map(str, numbers))}"
        remedy = f"; in SP3 by a comment: /* OBJECT {object_id} = 12345" if designator == object_id[:3] else ""
        raise RecordError(
            "out_of_range", f"{named}, the designator of {objects} of the catalogue; state its number{remedy}"
        )
    return int(numbers[0])


def why_not_used(row: Mapping[str, Any], received_ns: int) -> str | None:
    """State why no assessment uses an ephemeris that was received then (Unix time, UTC); None: it is used."""
    if row["error_kind"]:
        return str(row["error"])
    if not row["covariance_time_ns"]:
        return NO_COVARIANCE  # rows of earlier versions
    end_ns = row["usable_until_ns"]
    return None if end_ns > received_ns else f"it ended at {iso(end_ns)}, before it was received"


def parts_not_used(row: Mapping[str, Any]) -> list[str]:
    """State which parts of a sound row no assessment uses, beside those that its sender declares unusable."""
    gaps = [] if row["error_kind"] else gaps_of(row)
    return [
        f"it is not used from {iso(begin_ns)} to {iso(end_ns)}: its states are too far apart there to interpolate"
        for begin_ns, end_ns in gaps
    ]


def remarks(row: Mapping[str, Any]) -> list[str]:
    """State what a sender should learn of a sound row: the parts that are not used, and a missing covariance."""
    is_assumed = not row["error_kind"] and row["covariance_source"] == BY_DEFAULT
    assumed = "it states no covariance: that of element sets is assumed, and a state with a smaller one counts first"
    return [*parts_not_used(row), *([assumed] if is_assumed else [])]


decode = decoder(no_objects)
"""The decoder where no catalogue is at hand: a designator is an error."""

"""Segments of ephemerides to bronze rows: states and covariances in TEME of date, UTC, whatever was sent."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.tables import BY_DEFAULT, BY_MESSAGE, EPHEMERIDES, EPHEMERIDES_FEED
from sda_platform.clock import iso
from sda_platform.formats.designators import (
    NumbersOf,
    catalogue_number,
    is_navigation_number,
    no_objects,
    normal_designator,
)
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.keywords import values_of
from sda_platform.formats.limits import FIRST_TIME_NS, LAST_TIME_NS
from sda_platform.formats.parameter_messages import ParameterMessage
from sda_platform.formats.single_state import as_ephemeris
from sda_platform.landing.record_rows import SegmentDecoder, record_decoder
from sda_platform.orbits.covariance import rtn_to_teme, tnw_to_teme
from sda_platform.orbits.earth_orientation import FRAMES, covariances_in_teme, states_in_teme
from sda_platform.orbits.earth_parameters import UnknownOrientation
from sda_platform.orbits.element_errors import path_covariance_rtn
from sda_platform.orbits.ephemerides import covariances_from_lower, states_at
from sda_platform.orbits.path_quality import fault_of_path
from sda_platform.units import DAY_NS, SECOND_NS

_NEAREST_KM, _FARTHEST_KM, _FASTEST_KM_S = 6_356.0, 1e6, 20.0
_LARGEST_SIGMA_KM: Final = 1e3
# Frames that the orbit gives, by their names in messages (502.0-B-3, 3.2.4.11).
_ORBITAL: Final = {"RTN": rtn_to_teme, "RSW": rtn_to_teme, "QSW": rtn_to_teme, "TNW": tnw_to_teme}
_LOWER = np.tril_indices(6)
_OF_DATE: Final = ("TOD", "TEME")
_J2000_NS: Final = 946_728_000_000_000_000
_SHORTEST_NS: Final = SECOND_NS


NO_COVARIANCE: Final = "it has no covariance, without which no Pc follows from it"
SINGLE_STATE: Final = (
    "it is a single state, which holds at its epoch alone, and is not propagated; send an ephemeris (OEM) of the span"
)
_MOST_DEFAULTS: Final = 200


def decoder(numbers_of: NumbersOf, is_catalogued: Callable[[int], bool] | None = None) -> SegmentDecoder:
    """The decoder of segments of ephemerides; ``numbers_of`` finds the objects that messages name by a designator.

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
        if ephemeris.value("CENTER_NAME").upper() != "EARTH":
            raise RecordError("out_of_range", f"CENTER_NAME is {ephemeris.value('CENTER_NAME')[:40]!a}, must be EARTH")
    with ephemeris.located("REF_FRAME"):
        frame = _frame(ephemeris.value("REF_FRAME"), "REF_FRAME")
    with ephemeris.located("REF_FRAME_EPOCH"):
        frame_epoch_ns = _frame_epoch_ns(ephemeris, frame)
    time_ns = ephemeris.utc_ns(ephemeris.time_ns)
    if len(time_ns) == 1:
        raise RecordError("out_of_range", SINGLE_STATE)
    if not FIRST_TIME_NS <= time_ns[0] <= time_ns[-1] <= LAST_TIME_NS:
        raise RecordError("out_of_range", "an epoch is not between 1957 and 2099")
    _require_whole(ephemeris, time_ns)
    _require_distances(ephemeris)
    try:
        r, v = states_in_teme(frame, ephemeris.states[:, :3], ephemeris.states[:, 3:6], time_ns, frame_epoch_ns)
        states = np.concatenate([r, v], axis=1)
        if fault := fault_of_path(time_ns, states):
            with ephemeris.located_state(fault.row):
                raise RecordError("out_of_range", fault.reason)
        covariance_ns, covariances = _covariances(ephemeris, time_ns, states, frame_epoch_ns)
        created = values_of(ephemeris.header).get("CREATION_DATE")
        created_ns = parse_epoch_ns(created) if created else None
        covariance_source = BY_MESSAGE if len(covariance_ns) else None
        if covariance_source is None:
            covariance_source = BY_DEFAULT
            covariance_ns, covariances = default_covariances(time_ns, states, created_ns)
    except UnknownOrientation as error:
        raise RecordError("out_of_range", str(error)) from None
    usable_from_ns, usable_until_ns = _usable_span(ephemeris, time_ns)
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
        "last_time_ns": int(time_ns[-1]),
        "usable_from_ns": usable_from_ns,
        "usable_until_ns": usable_until_ns,
        "state_time_ns": time_ns.tolist(),
        "state": states.ravel().tolist(),
        "covariance_time_ns": covariance_ns.tolist(),
        "covariance": covariances.ravel().tolist(),
        "covariance_source": covariance_source,
    }


def _frame(text: str, keyword: str, allowed: Collection[str] = FRAMES) -> str:
    name = text.upper()
    name = "ITRF" if name.startswith("ITRF") else name
    if name not in FRAMES:
        raise RecordError("out_of_range", f"{keyword} is {ascii(text)[:40]}, must be one of {', '.join(allowed)}")
    return name


def _frame_epoch_ns(ephemeris: EphemerisSegment, frame: str) -> int | None:
    """The instant of the frame's axes by REF_FRAME_EPOCH; None: they are those of the date, or of no date."""
    text = ephemeris.value("REF_FRAME_EPOCH")
    if not text:
        return None
    epoch_ns = int(ephemeris.utc_ns(np.array([parse_epoch_ns(text, "REF_FRAME_EPOCH")]))[0])
    if frame in _OF_DATE:
        return epoch_ns
    if frame == "ITRF" or abs(epoch_ns - _J2000_NS) > DAY_NS:
        reason = f"REF_FRAME_EPOCH is {text[:40]!a}, but REF_FRAME {frame} has an epoch of its own; leave it out"
        raise RecordError("out_of_range", reason)
    return None


def _require_whole(ephemeris: EphemerisSegment, time_ns: IntArray) -> None:
    """Refuse a message whose states end more than a step before its STOP_TIME: it lost its end on the way."""
    step_ns = int(np.diff(time_ns).max(initial=0))
    stop_ns = _bound(ephemeris, "STOP_TIME", int(time_ns[-1]))
    if stop_ns > time_ns[-1] + step_ns:
        with ephemeris.located("STOP_TIME"):
            reason = f"it states to end at {iso(stop_ns)}, but its last state is of {iso(int(time_ns[-1]))}"
            raise RecordError("torn_record", f"{reason}: it is not whole")


def _usable_span(ephemeris: EphemerisSegment, time_ns: IntArray) -> tuple[int, int]:
    """First and last instant to use: the states' own, or what of that the message declares usable."""
    first_ns, last_ns = int(time_ns[0]), int(time_ns[-1])
    from_ns = _bound(ephemeris, "USEABLE_START_TIME", first_ns)
    until_ns = _bound(ephemeris, "USEABLE_STOP_TIME", last_ns)
    if min(until_ns, last_ns) - max(from_ns, first_ns) <= _SHORTEST_NS:
        usable, known = (f"{iso(begin)} to {iso(end)}" for begin, end in ((from_ns, until_ns), (first_ns, last_ns)))
        which = "USEABLE_STOP_TIME" if ephemeris.value("USEABLE_STOP_TIME") else "USEABLE_START_TIME"
        with ephemeris.located(which):
            reason = f"it is usable from {usable}, and has states from {known}: they share no second"
            raise RecordError("out_of_range", reason)
    return max(from_ns, first_ns), min(until_ns, last_ns)


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


def _covariances(
    ephemeris: EphemerisSegment, time_ns: IntArray, states: FloatArray, frame_epoch_ns: int | None
) -> tuple[IntArray, FloatArray]:
    """The times (m,) and the covariances (m, 21) in TEME; an orbital frame is that of the state at the time."""
    at_ns = ephemeris.utc_ns(ephemeris.covariance_time_ns)
    if not len(at_ns):
        return at_ns, ephemeris.covariances
    given = covariances_from_lower(ephemeris.covariances)
    sigmas_km = np.sqrt(np.abs(np.einsum("nii->ni", given)[:, :3]))
    if np.any(np.einsum("nii->ni", given) < 0) or np.any(sigmas_km > _LARGEST_SIGMA_KM):
        raise RecordError("out_of_range", "a covariance has a negative variance, or a sigma above 1,000 km")
    if np.any(np.diff(at_ns) <= 0):
        raise RecordError("out_of_range", "the epochs of the covariances do not ascend")
    if at_ns[0] < time_ns[0] or at_ns[-1] > time_ns[-1]:
        raise RecordError("out_of_range", "a covariance is at a time without a state")
    turned_back = np.empty_like(given)
    own = ephemeris.value("REF_FRAME").upper()
    names = np.array([name.upper() or own for name in ephemeris.covariance_frames])
    for name in np.unique(names).tolist():
        rows = np.flatnonzero(names == name)
        if name in _ORBITAL:
            state = states_at(time_ns, states, at_ns[rows])
            turned_back[rows] = _ORBITAL[name](given[rows], state[:, :3], state[:, 3:])
        else:
            frame = _frame(name, "COV_REF_FRAME", (*FRAMES, *_ORBITAL))
            if frame_epoch_ns is not None and frame in _OF_DATE and name != own:
                raise RecordError("out_of_range", f"COV_REF_FRAME is {name}, of an epoch that is not stated")
            epoch_ns = frame_epoch_ns if name == own else None
            turned_back[rows] = covariances_in_teme(frame, given[rows], at_ns[rows], epoch_ns)
    return at_ns, turned_back[:, _LOWER[0], _LOWER[1]]


def default_covariances(time_ns: IntArray, states: FloatArray, created_ns: int | None) -> tuple[IntArray, FloatArray]:
    """Covariances (m, 21) in TEME of a path (n, 6) without any, and their times (m,), which are some of its own.

    They grow as the errors of element sets do (`orbits.element_errors`), from ``created_ns`` on, or from the first
    state. Raises RecordError for a state on no closed orbit.
    """
    rows = np.unique(np.linspace(0, len(time_ns) - 1, min(len(time_ns), _MOST_DEFAULTS)).round().astype(np.int64))
    r, v = states[rows, :3], states[rows, 3:]
    since_ns = int(time_ns[0]) if created_ns is None else created_ns
    age_days = np.maximum(time_ns[rows] - since_ns, 0) / DAY_NS
    found = rtn_to_teme(path_covariance_rtn(age_days, r, v), r, v)[:, _LOWER[0], _LOWER[1]]
    if not np.isfinite(found).all():
        raise RecordError(
            "out_of_range", "it has no covariance, and none can be assumed: a state is on no closed orbit"
        )
    return time_ns[rows], found


def _bound(ephemeris: EphemerisSegment, keyword: str, otherwise: int) -> int:
    text = ephemeris.value(keyword)
    return int(ephemeris.utc_ns(np.array([parse_epoch_ns(text, keyword)]))[0]) if text else otherwise


def _norad_id(object_id: str, numbers_of: NumbersOf) -> int:
    """The catalogue number of an OBJECT_ID: that number itself, or the international designator (502.0-B-3).

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
    """Why no assessment uses an ephemeris of the table that was received then, Unix time UTC; None: it is used."""
    if row["error_kind"]:
        return str(row["error"])
    if not row["covariance_time_ns"]:
        return NO_COVARIANCE  # rows of earlier versions
    end_ns = row["usable_until_ns"]
    return None if end_ns > received_ns else f"it ended at {iso(end_ns)}, before it was received"


decode = decoder(no_objects)
"""The decoder where no catalogue is at hand: a designator is an error."""

"""Tracking data messages as observations: which measurements the observation model can use, and in its units.

A station is one sensor: PATH goes from it to one object and back, or from the object to it. It measures range, azimuth
and elevation (a radar), or right ascension and declination (a telescope). Its sigmas are those of the sensor list, and
so are aberration and refraction, unless a comment of the metadata states them (`TrackingData.stated`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, fmod, hypot, radians, sin
from typing import Any, Final

import numpy as np

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import repeated
from sda_platform.formats.limits import FARTHEST_M, OBSERVATION_LIMITS, SPEED_OF_LIGHT_M_S, violation_text
from sda_platform.formats.optical import STATE_OF_OBSERVER
from sda_platform.formats.tracking_data import TrackingData
from sda_platform.orbits.earth_orientation import FRAMES, frame_of, states_in_teme, to_gcrf
from sda_platform.orbits.earth_parameters import UnknownOrientation
from sda_platform.units import SECOND_NS

# A station's clock is disciplined; messages have no further information on it.
_CLOCK: Final = {"clock_quality": "gps_locked", "clock_age_s": 0.0}
# A mean over a longer time differs from the rate at its middle by more than a radar's noise.
_LONGEST_INTEGRATION_S: Final = 1.0
_CORRECTION: Final = "CORRECTION_"
_FULL_TURN_DEG: Final = 360.0
_RADAR, _OPTICAL = "radar", "optical"
_USED: Final = frozenset({"ANGLE_1", "ANGLE_2", "RANGE", "DOPPLER_INSTANTANEOUS", "DOPPLER_INTEGRATED"})
_OF_RADARS: Final = _USED - {"ANGLE_1", "ANGLE_2"}


@dataclass(frozen=True, slots=True)
class TrackingObservation:
    """One observation: columns of OBSERVATION_SCHEMA by name, and the bytes that its identity follows from."""

    columns: Mapping[str, Any]
    identity: bytes


def observation_of(data: TrackingData) -> TrackingObservation:
    """Return the observation that ``data`` is. Raises RecordError with what the observation model does not have."""
    metadata, measured = data.values(), data.numbers()
    station, target = _participants(metadata)
    if metadata.get("DATA_QUALITY", "").upper() == "BAD":
        raise RecordError("out_of_range", "DATA_QUALITY is BAD")
    kind = _kind(metadata, measured)
    _require_each_once(data)
    time_ns = data.utc_ns() - _delay_ns(metadata, station, kind)
    references: dict[str, str] = {}
    corrections = _corrections(metadata)
    angles = _angles(measured, corrections)
    if kind == _RADAR:
        range_m = _range_m(metadata, measured["RANGE"] + corrections.get("RANGE", 0.0))
        values = {"range_m": range_m, "azimuth_rad": angles[0], "elevation_rad": angles[1]}
        values |= _range_rate(metadata, measured, corrections)
        time_ns += _to_reflection_ns(metadata, range_m)
    else:
        _require_limits({"right_ascension_rad": angles[0], "declination_rad": angles[1]})
        direction = _in_teme(metadata, angles, time_ns)
        values = {"right_ascension_rad": direction[0], "declination_rad": direction[1]}
        references = {"angle_frame": "TEME", **_aberration(metadata)}
    stated = data.stated()
    if any(name in stated for name in STATE_OF_OBSERVER):
        stated |= _observer_in_teme(metadata, stated, kind, time_ns)
    _require_limits(values | stated)
    columns = {
        "source_kind": kind,
        "source_id": sensor_id(kind, station),
        "native_track_id": metadata.get("TRACK_ID") or target,
        "sensor_time_ns": time_ns,
        **values,
        **references,
        **_CLOCK,
        **stated,
    }
    text = " ".join(f"{entry.keyword}={entry.value}" for entry in sorted(data.measured, key=lambda e: e.keyword))
    # Of messages that state nothing beyond the standard, the identity is as it was before they could.
    own = json.dumps(stated, sort_keys=True) if stated else ""
    return TrackingObservation(columns, f"{data.epoch} {text}{own}".encode())


def sensor_id(kind: str, participant: str) -> str:
    """Return the ``source_id`` of a station: ``radar-dss-25`` for the participant DSS-25; as it is where it
    begins so.
    """
    name = re.sub(r"[^a-z0-9]+", "-", participant.lower()).strip("-")
    return name if name.startswith(f"{kind}-") else f"{kind}-{name}"


def _participants(metadata: Mapping[str, str]) -> tuple[str, str]:
    """Return the station and what it tracks."""
    if metadata.get("MODE", "SEQUENTIAL").upper() != "SEQUENTIAL":
        raise RecordError("out_of_range", f"MODE is {metadata['MODE'][:40]!a}, only SEQUENTIAL can be used")
    if "PATH" not in metadata:
        raise RecordError("missing_field", "PATH of metadata is missing")
    path = [number.strip() for number in metadata["PATH"].split(",")]
    if len(path) not in (2, 3) or len(set(path)) != 2 or (len(path) == 3 and path[0] != path[2]):
        allowed = "one station that sends and receives (1,2,1) or receives (2,1)"
        raise RecordError("out_of_range", f"PATH is {metadata['PATH'][:40]!a}, must be of {allowed}")
    names = [metadata.get(f"PARTICIPANT_{number}", "") for number in (path[-1], path[-2])]
    if not all(names):
        raise RecordError("missing_field", f"a participant of PATH {metadata['PATH'][:40]!a} is missing")
    return names[0], names[1]


def _kind(metadata: Mapping[str, str], measured: Mapping[str, float]) -> str:
    """``radar`` or ``optical``, by what was measured."""
    angle_type = metadata.get("ANGLE_TYPE", "").upper()
    if not {"ANGLE_1", "ANGLE_2"} <= measured.keys():
        found = ", ".join(sorted(measured))
        raise RecordError("missing_field", f"has {found}; an observation needs ANGLE_1 and ANGLE_2")
    if angle_type == "RADEC":
        if others := sorted(measured.keys() & _OF_RADARS):
            reason = f"ANGLE_TYPE is RADEC with {', '.join(others)}: they are read with AZEL only; send two segments"
            raise RecordError("out_of_range", reason)
        return _OPTICAL
    if angle_type != "AZEL":
        raise RecordError("out_of_range", f"ANGLE_TYPE is {ascii(angle_type)[:40]}, must be AZEL or RADEC")
    if "RANGE" not in measured:
        raise RecordError("missing_field", "has azimuth and elevation without RANGE")
    return _RADAR


def _require_each_once(data: TrackingData) -> None:
    if twice := repeated(entry.keyword for entry in data.measured if entry.keyword in _USED):
        raise RecordError("bad_field", f"{twice} is given twice at {data.epoch}")


def _corrections(metadata: Mapping[str, str]) -> dict[str, float]:
    """Return what is still to be added to measurements, by keyword."""
    stated = {
        name.removeprefix(_CORRECTION): float(metadata[name]) for name in metadata if name.startswith(_CORRECTION)
    }
    is_applied = metadata.get("CORRECTIONS_APPLIED", "").upper()
    if stated and is_applied not in ("YES", "NO"):  # 503.0-B-2 demands it then
        found = f"is {ascii(is_applied)[:40]}" if is_applied else "is missing"
        raise RecordError(
            "missing_field", f"CORRECTIONS_APPLIED {found}, must be YES or NO where corrections are given"
        )
    return stated if is_applied == "NO" else {}


def _angles(measured: Mapping[str, float], corrections: Mapping[str, float]) -> tuple[float, ...]:
    """Both angles with their corrections, rad; a correction may take the first one past a full turn."""
    first, second = (measured[name] + corrections.get(name, 0.0) for name in ("ANGLE_1", "ANGLE_2"))
    if abs(measured["ANGLE_1"]) <= _FULL_TURN_DEG < abs(first):
        first = fmod(first, _FULL_TURN_DEG)
    return radians(first), radians(second)


def _aberration(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return whether the annual aberration is corrected, where the message states it."""
    if "CORRECTION_ABERRATION_YEARLY" not in metadata:
        return {}
    is_left = metadata["CORRECTIONS_APPLIED"].upper() == "NO"
    return {"angle_aberration": "annual" if is_left else "corrected"}


def _range_m(metadata: Mapping[str, str], value: float) -> float:
    """Return the distance of the object. The standard leaves open what s and RU mean on the way there and back."""
    units = metadata.get("RANGE_UNITS", "km")
    if units.lower() != "km":
        raise RecordError("bad_field", f"RANGE_UNITS is {units[:40]!a}, only km can be used")
    modulus_km = float(metadata.get("RANGE_MODULUS", 0.0))
    if 0 < modulus_km * 1000 < FARTHEST_M:
        raise RecordError("out_of_range", f"RANGE_MODULUS is {modulus_km:g} km: the range is ambiguous")
    return value * 1000


def _range_rate(
    metadata: Mapping[str, str], measured: Mapping[str, float], corrections: Mapping[str, float]
) -> dict[str, float]:
    """Return the range rate, where one was measured. Raises RecordError for a mean that is not that of the time tag."""
    rate = measured.get("DOPPLER_INSTANTANEOUS")
    if rate is None and "DOPPLER_INTEGRATED" in measured:
        interval_s, reference = float(metadata.get("INTEGRATION_INTERVAL", 0.0)), metadata.get("INTEGRATION_REF", "")
        if reference.upper() != "MIDDLE" or not 0 < interval_s <= _LONGEST_INTEGRATION_S:
            raise RecordError(
                "out_of_range",
                f"DOPPLER_INTEGRATED is a mean over {interval_s:g} s, INTEGRATION_REF {ascii(reference)[:20]}: only "
                f"one of at most {_LONGEST_INTEGRATION_S:g} s about the time tag (MIDDLE) is its range rate; leave it "
                "out, or give DOPPLER_INSTANTANEOUS",
            )
        rate = measured["DOPPLER_INTEGRATED"]
    return {} if rate is None else {"range_rate_m_s": 1000 * (rate + corrections.get("DOPPLER", 0.0))}


def _to_reflection_ns(metadata: Mapping[str, str], range_m: float) -> int:
    """From the time tag to the instant at which the object was where it was measured."""
    light_ns = round(range_m / SPEED_OF_LIGHT_M_S * SECOND_NS)
    reference = metadata.get("TIMETAG_REF", "RECEIVE").upper()
    if reference not in ("TRANSMIT", "RECEIVE"):
        raise RecordError("out_of_range", f"TIMETAG_REF is {ascii(reference)[:40]}, must be TRANSMIT or RECEIVE")
    return light_ns if reference == "TRANSMIT" else -light_ns


def _delay_ns(metadata: Mapping[str, str], station: str, kind: str) -> int:
    """From the antenna to the receiver of the station. Raises RecordError for delays of a radar.

    The standard does not say whether its range contains them.
    """
    number = next(n for n in metadata["PATH"].split(",")[::-1] if metadata.get(f"PARTICIPANT_{n.strip()}") == station)
    delays = [f"{way}_DELAY_{number.strip()}" for way in ("RECEIVE", "TRANSMIT")]
    stated = {name: float(metadata[name]) for name in delays if float(metadata.get(name, 0.0))}
    if stated and kind == _RADAR:
        reason = ", ".join(f"{name} is {value:g} s" for name, value in stated.items())
        raise RecordError(
            "out_of_range", f"{reason}: a range with delays cannot be used; correct it, and leave them out"
        )
    return round(stated.get(delays[0], 0.0) * SECOND_NS)


def _in_teme(metadata: Mapping[str, str], angles: tuple[float, ...], time_ns: int) -> tuple[float, float]:
    """Right ascension and declination in TEME of date, as observations have them."""
    stated = metadata.get("REFERENCE_FRAME", "")
    frame = frame_of(stated)
    if frame is None or frame == "ITRF":
        allowed = ", ".join(name for name in FRAMES if name != "ITRF")
        raise RecordError("out_of_range", f"REFERENCE_FRAME is {ascii(stated)[:40]}, must be one of {allowed}")
    right_ascension, declination = angles
    direction = np.array(
        [cos(declination) * cos(right_ascension), cos(declination) * sin(right_ascension), sin(declination)]
    )
    at = np.array([time_ns], np.int64)
    try:
        x, y, z = (to_gcrf("TEME", at)[0].T @ to_gcrf(frame, at)[0] @ direction).tolist()
    except UnknownOrientation as error:
        raise RecordError("out_of_range", str(error)) from None
    return float(np.arctan2(y, x) % (2 * np.pi)), float(np.arctan2(z, hypot(x, y)))


def _observer_in_teme(
    metadata: Mapping[str, str], stated: Mapping[str, Any], kind: str, time_ns: int
) -> dict[str, float]:
    """Where an orbiting observer was, in TEME of date, by column."""
    absent = [name for name in STATE_OF_OBSERVER if name not in stated]
    if absent or kind != _OPTICAL:
        what = f"{absent[0]} is missing" if absent else "it is of a radar"
        raise RecordError("missing_field", f"a comment states an orbiting observer, but {what}")
    state_km = np.array([[stated[name] / 1000 for name in STATE_OF_OBSERVER[:6]]])
    frame, at = frame_of(metadata["REFERENCE_FRAME"]) or "", np.array([time_ns], np.int64)
    place, speed = (1000 * each[0] for each in states_in_teme(frame, state_km[:, :3], state_km[:, 3:], at))
    _require_limits({"geocentric_distance_m": float(np.linalg.norm(place)), "speed_m_s": float(np.linalg.norm(speed))})
    return dict(zip(STATE_OF_OBSERVER[:6], [*place.tolist(), *speed.tolist()], strict=True))


def _require_limits(values: Mapping[str, float]) -> None:
    for limit in OBSERVATION_LIMITS:
        value = values.get(limit.column)
        if value is not None and not limit.low <= value <= limit.high:
            raise RecordError("out_of_range", violation_text(limit, value))

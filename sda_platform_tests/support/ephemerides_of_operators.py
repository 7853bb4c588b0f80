"""Builders of orbit ephemeris messages (OEM) as operators send them."""

import numpy as np

from sda_platform.formats.instants import format_epoch
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.segments import after

_SPEED_KM_S = 7.546
_COVARIANCE = [" ".join(["0.0"] * row + ["1e-4" if row < 3 else "1e-10"]) for row in range(6)]


def oem_of(norad_id: int, *, start_ns: int = after(0), states: int = 5, broken: bool = False) -> bytes:
    """An OEM of one object on a straight line, with a state each minute and a covariance at the first.

    Where it is ``broken``, the last state has a word instead of a number.
    """
    times = [start_ns + 60_000_000_000 * n for n in range(states)]
    places = [f"7000.0 {_SPEED_KM_S * 60 * n:.3f} 0.0 0.0 {_SPEED_KM_S} 0.0" for n in range(states)]
    text = _oem(norad_id, times, places)
    return (text.replace(f" {_SPEED_KM_S} 0.0\nCOV", " nonsense 0.0\nCOV") if broken else text).encode()


def oem_through(
    norad_id: int, at_ns: int, position_km: np.ndarray, velocity_km_s: np.ndarray, *, begin_ns: int, end_ns: int
) -> bytes:
    """An OEM of one object on the orbit through this state, TEME, with a state each minute from begin to end."""
    times = np.arange(begin_ns, end_ns + 1, 60_000_000_000)
    orbit = Propagator(mean_elements(position_km[None], velocity_km_s[None], at_ns))
    _, r, v = orbit.at(np.zeros(len(times), np.int64), times)
    places = [" ".join(f"{number:.9f}" for number in state) for state in np.hstack([r, v]).tolist()]
    return _oem(norad_id, times.tolist(), places).encode()


def _oem(norad_id: int, times_ns: list[int], places: list[str]) -> str:
    first, last = format_epoch(times_ns[0]), format_epoch(times_ns[-1])
    lines = [
        "CCSDS_OEM_VERS = 3.0",
        f"CREATION_DATE = {first}",
        "ORIGINATOR = OPERATOR",
        "META_START",
        f"OBJECT_NAME = OBJECT {norad_id}",
        f"OBJECT_ID = {norad_id}",
        "CENTER_NAME = EARTH",
        "REF_FRAME = TEME",
        "TIME_SYSTEM = UTC",
        f"START_TIME = {first}",
        f"STOP_TIME = {last}",
        "META_STOP",
        *(f"{format_epoch(t)} {place}" for t, place in zip(times_ns, places, strict=True)),
        "COVARIANCE_START",
        f"EPOCH = {first}",
        "COV_REF_FRAME = RTN",
        *_COVARIANCE,
        "COVARIANCE_STOP",
    ]
    return "\n".join(lines) + "\n"

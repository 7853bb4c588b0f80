"""Builders of orbit ephemeris messages (OEM) as operators send them."""

from sda_platform.formats.instants import format_epoch
from sda_platform_tests.support.segments import after

_SPEED_KM_S = 7.546


def oem_of(norad_id: int, *, start_ns: int = after(0), states: int = 5, broken: bool = False) -> bytes:
    """An OEM of one object on a straight line, with a state each minute and a covariance at the first.

    Where it is ``broken``, the last state has a word instead of a number.
    """
    times = [start_ns + 60_000_000_000 * n for n in range(states)]
    first, last = format_epoch(times[0]), format_epoch(times[-1])
    positions = [f"7000.0 {_SPEED_KM_S * 60 * n:.3f} 0.0" for n in range(states)]
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
        *(f"{format_epoch(t)} {at} 0.0 {_SPEED_KM_S} 0.0" for t, at in zip(times, positions, strict=True)),
        "COVARIANCE_START",
        f"EPOCH = {first}",
        "COV_REF_FRAME = RTN",
        *(" ".join(["0.0"] * row + ["1e-4" if row < 3 else "1e-10"]) for row in range(6)),
        "COVARIANCE_STOP",
    ]
    text = "\n".join(lines) + "\n"
    return (text.replace(f" {_SPEED_KM_S} 0.0\nCOV", " nonsense 0.0\nCOV") if broken else text).encode()

"""The optical archive's REST record, one JSON object a line; angles are topocentric.

Required: obs_id (text), timestamp_ns (integer, UTC since the Unix epoch), ra_rad, dec_rad, sigma_arcsec
(numbers), site_id (text). Optional, as the collector or the site adds them: received_ns (integer),
clock_quality (one of CLOCK_KINDS, `ntp_synced` when absent), clock_age_s (number, 0 when absent). Also optional:
angle_frame, angle_aberration, angle_refraction (text, `angle_references`; as the list of sensors states when absent).
Other fields are kept in the payload, unread.

An orbiting observer states where it was at timestamp_ns, by its own ephemeris: the numbers OBSERVER, all seven.
Position and velocity are TEME of date, in m and m/s, and observer_sigma_m is the 1-sigma of each position component.
"""

import json
from dataclasses import dataclass
from math import pi
from typing import Any, Final

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.errors import RecordError
from sda_platform.formats.isl import CLOCK_KINDS
from sda_platform.formats.json_fields import integer_field, json_object, number_field, text_field

RADIANS_PER_ARCSECOND: Final = pi / 648_000
OBSERVER: Final = (
    "observer_x_m",
    "observer_y_m",
    "observer_z_m",
    "observer_vx_m_s",
    "observer_vy_m_s",
    "observer_vz_m_s",
    "observer_sigma_m",
)
"""The fields of an orbiting observer's own state."""
STATE_OF_OBSERVER: Final = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s", "position_sigma_m")
"""The columns of observations that hold it."""


@dataclass(frozen=True, slots=True)
class OpticalRecord:
    """One archive record as on the wire."""

    obs_id: str
    timestamp_ns: int
    ra_rad: float
    dec_rad: float
    sigma_arcsec: float
    site_id: str
    received_ns: int | None = None
    clock_quality: str = "ntp_synced"
    clock_age_s: float = 0.0
    angle_frame: str | None = None
    angle_aberration: str | None = None
    angle_refraction: str | None = None
    observer_x_m: float | None = None
    observer_y_m: float | None = None
    observer_z_m: float | None = None
    observer_vx_m_s: float | None = None
    observer_vy_m_s: float | None = None
    observer_vz_m_s: float | None = None
    observer_sigma_m: float | None = None


def encode_optical_record(record: OpticalRecord) -> bytes:
    """Return the record's JSON line without its line feed; what is None is left out."""
    fields = {name: value for name in OpticalRecord.__slots__ if (value := getattr(record, name)) is not None}
    return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()


def parse_optical_record(payload: bytes) -> OpticalRecord:
    """Raises RecordError: bad_json, missing_field, bad_field or out_of_range."""
    fields = json_object(payload)
    clock_quality = text_field(fields, "clock_quality") if "clock_quality" in fields else "ntp_synced"
    if clock_quality not in CLOCK_KINDS:
        raise RecordError("out_of_range", f"clock_quality is {clock_quality!r}, must be one of {CLOCK_KINDS}")
    references: dict[str, Any] = {
        name: text_field(fields, name) for name in ANGLE_REFERENCES if fields.get(name) is not None
    }
    for name, value in references.items():
        if value not in ANGLE_REFERENCES[name]:
            raise RecordError("out_of_range", f"{name} is {value[:40]!a}, must be one of {ANGLE_REFERENCES[name]}")
    observer: dict[str, Any] = {name: number_field(fields, name) for name in OBSERVER if fields.get(name) is not None}
    if observer and (absent := [name for name in OBSERVER if name not in observer]):
        raise RecordError("missing_field", f"{absent[0]} is missing: an orbiting observer states {', '.join(OBSERVER)}")
    return OpticalRecord(
        obs_id=text_field(fields, "obs_id"),
        timestamp_ns=integer_field(fields, "timestamp_ns"),
        ra_rad=number_field(fields, "ra_rad"),
        dec_rad=number_field(fields, "dec_rad"),
        sigma_arcsec=number_field(fields, "sigma_arcsec"),
        site_id=text_field(fields, "site_id"),
        received_ns=integer_field(fields, "received_ns") if fields.get("received_ns") is not None else None,
        clock_quality=clock_quality,
        clock_age_s=number_field(fields, "clock_age_s") if "clock_age_s" in fields else 0.0,
        **references,
        **observer,
    )

"""Strategies and builders of sensor observations within the physical limits."""

from dataclasses import dataclass, replace
from math import pi

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sda_platform.foreign_text import is_plain
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.isl import CLOCK_KINDS, encode_isl_frames
from sda_platform.formats.observations import cut_observations, decode_cut_observations
from sda_platform.formats.optical import OBSERVER, OpticalRecord
from sda_platform.formats.radar import encode_radar_frames

GOLDEN_OPTICAL = (
    b'{"obs_id":"m-1","timestamp_ns":1730419200000000000,"ra_rad":1.5,"dec_rad":-0.5,'
    b'"sigma_arcsec":1.0,"site_id":"maui","clock_quality":"ntp_synced","clock_age_s":0.0}'
)

SEALED_TIME_NS = 1_730_419_205_000_000_000
SENSOR_TIME_NS = 1_730_419_200_000_000_000

u32 = st.integers(1, 2**32 - 1)
sensor_times = st.integers(0, SEALED_TIME_NS)
sigmas = st.floats(0.125, 1e6, width=32)
angles = st.floats(0, 2 * pi)
elevations = st.floats(-pi / 2, pi / 2)


@dataclass(frozen=True)
class RadarReading:
    """The fields of one radar frame."""

    array_id: int = 7
    target_track_id: int = 4242
    timestamp_ns: int = SENSOR_TIME_NS
    range_m: float = 1_234_567.5
    range_rate_m_s: float = -1500.25
    azimuth_rad: float = 1.5
    elevation_rad: float = 0.5
    sigma_range_m: float = 15.0
    sigma_rate_m_s: float = 0.25

    def payload(self) -> bytes:
        """Its 60 bytes."""
        fields = {name: np.array([getattr(self, name)]) for name in self.__dataclass_fields__}
        return encode_radar_frames(**fields)[0]


radar_readings = st.builds(
    RadarReading,
    array_id=u32,
    target_track_id=u32,
    timestamp_ns=sensor_times,
    range_m=st.floats(1.0, 1e9),
    range_rate_m_s=st.floats(-2e4, 2e4),
    azimuth_rad=angles,
    elevation_rad=elevations,
    sigma_range_m=sigmas,
    sigma_rate_m_s=sigmas,
)

_of_telescopes = st.builds(
    OpticalRecord,
    obs_id=st.text(st.characters(codec="utf-8"), min_size=1).filter(is_plain),
    timestamp_ns=sensor_times,
    ra_rad=angles,
    dec_rad=elevations,
    sigma_arcsec=st.floats(0.01, 100),
    site_id=st.sampled_from(["maui", "optical-socorro"]),
    received_ns=st.none() | st.integers(SEALED_TIME_NS, 2**63 - 1),
    clock_quality=st.sampled_from(CLOCK_KINDS),
    clock_age_s=st.floats(0, 1e6),
    **{name: st.none() | st.sampled_from(values) for name, values in ANGLE_REFERENCES.items()},
)
_in_orbit = st.fixed_dictionaries(
    {
        **dict.fromkeys(OBSERVER[:3], st.floats(6.4e6, 5e8)),
        **dict.fromkeys(OBSERVER[3:6], st.floats(-1e4, 1e4)),
        OBSERVER[6]: st.floats(1e-6, 1e5),
    }
)
optical_records = st.builds(
    lambda record, state: replace(record, **state), _of_telescopes, st.just(dict[str, float]()) | _in_orbit
)


def isl_payload(
    position_m: tuple[float, float, float] = (7e6, 0.0, 1e5),
    velocity_m_s: tuple[float, float, float] = (0.0, 7500.0, 10.0),
    *,
    norad_id: int = 270_387,
    timestamp_ns: int = SENSOR_TIME_NS,
    position_sigma_m: float = 5.0,
    clock_quality: str = "onboard_drift",
    clock_age_s: float = 120.0,
) -> bytes:
    """One 80-byte beacon body."""
    return encode_isl_frames(
        norad_id=np.array([norad_id]),
        timestamp_ns=np.array([timestamp_ns]),
        position_m=np.array([position_m]),
        velocity_m_s=np.array([velocity_m_s]),
        position_sigma_m=np.array([position_sigma_m]),
        velocity_sigma_m_s=np.array([0.0625]),
        clock_quality=[clock_quality],
        clock_age_s=np.array([clock_age_s]),
    )[0]


def decode_observations(data: bytes, *, feed: str, segment_format: str, sealed_time_ns: int) -> pa.Table:
    """Every record of the segment as a row of OBSERVATION_SCHEMA; never raises for any bytes.

    A row either has `error_kind` and `error` (and its source, where that could be read), or a full envelope.
    `received_time_ns` falls back to `sealed_time_ns`. A feed that does not carry this format gives every record the
    kind `unknown_format`.
    """
    records = cut_observations(data, segment_format)
    sealed = np.full(len(records), sealed_time_ns, np.int64)
    return decode_cut_observations(records, feed=feed, segment_format=segment_format, sealed_time_ns=sealed)


def decode_radar(*payloads: bytes, received_time_ns: int = SEALED_TIME_NS) -> pa.Table:
    """A radar segment of these payloads, decoded."""
    data = pack_records(payloads, [received_time_ns] * len(payloads))
    return decode_observations(data, feed="radar", segment_format="radar-frames", sealed_time_ns=SEALED_TIME_NS)


def decode_isl(*payloads: bytes) -> pa.Table:
    """An ISL segment of these payloads, decoded."""
    data = pack_records(payloads, [SEALED_TIME_NS] * len(payloads))
    return decode_observations(data, feed="isl", segment_format="isl-frames", sealed_time_ns=SEALED_TIME_NS)


def decode_optical(*lines: bytes) -> pa.Table:
    """An optical segment of these lines, decoded."""
    data = b"\n".join(lines) + b"\n"
    return decode_observations(data, feed="optical", segment_format="optical-jsonl", sealed_time_ns=SEALED_TIME_NS)

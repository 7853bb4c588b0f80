"""Builders of segments: wire payloads with their metadata, and what may be wrong with either."""

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.radar import encode_radar_frames
from sda_platform.formats.registry import ZONES
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import durable
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import GENESIS, CommitManifest
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.units import SECOND_NS

START_NS = parse_iso_ns("2024-11-01T00:00:00Z")
CATALOGUE = Path(__file__).parents[2] / "sda_platform/simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"


def put(zone: LandingZone, name: str, data: bytes) -> None:
    """Put one file into what waits in ``zone``, past the rules of sealing."""
    durable.write(zone.root / "pending" / name, data)


def after(seconds: float) -> int:
    """The instant ``seconds`` after the start of the data's day, ns."""
    return START_NS + round(seconds * SECOND_NS)


def radar_payloads(count: int, *, first_track: int = 0, seconds: float = 0.0) -> list[bytes]:
    """Frames of radar-7, one a millisecond, of what may be any object."""
    one = np.ones(count)
    return encode_radar_frames(
        array_id=np.full(count, 7),
        target_track_id=np.arange(first_track, first_track + count),
        timestamp_ns=after(seconds) + np.arange(count) * 1_000_000,
        range_m=one * 1_234_567.5,
        range_rate_m_s=one * -1500.25,
        azimuth_rad=one * 1.5,
        elevation_rad=one * 0.5,
        sigma_range_m=one * 15.0,
        sigma_rate_m_s=one * 0.25,
    )


def radar_segment(count: int, *, first_track: int = 0, seconds: float = 0.0) -> bytes:
    """A segment of such frames, each received 50 ms after it was measured."""
    payloads = radar_payloads(count, first_track=first_track, seconds=seconds)
    return pack_records(payloads, [after(seconds) + 50_000_000 + 1_000_000 * i for i in range(count)])


# What tests land where they name no format; elsewhere the zone's first.
_USUAL = {"messages": "cdm-kvn"}


def described(
    data: bytes, feed: str = "radar", *, segment_format: str | None = None, seconds: float = 1.0
) -> SegmentMeta:
    """True metadata of ``data``, sealed ``seconds`` into the day."""
    return describe_segment(
        data,
        feed=feed,
        segment_format=segment_format or _USUAL.get(feed, ZONES[feed][0]),
        sealed_time_ns=after(seconds),
        sealed_wall_time_ns=after(seconds),
    )


def land(zone: LandingZone, name: str, data: bytes, *, seconds: float = 1.0, **untrue: object) -> bool:
    """Seal ``data`` into ``zone``, with some facts of its metadata replaced by untrue ones."""
    meta = described(data, zone.feed, seconds=seconds)
    return zone.seal(name, data, replace(meta, **untrue))  # type: ignore[arg-type]


def committed(*segments: LoadedSegment) -> Head:
    """The head of a table that consumed these segments of three records each."""
    refs = tuple(s.ref(3 if s.defect is None else int(not s.is_duplicate)) for s in segments)
    manifest = CommitManifest(RAW_RECORDS.name, 1, GENESIS, 0, "run", "nonce", segments=refs)
    return Head(0, 1, Commit(0, 0, 0, manifest))


@cache
def catalogue_lines() -> tuple[bytes, ...]:
    """Header and lines of the real catalogue of 2024-11-01."""
    return tuple(gzip.decompress(CATALOGUE.read_bytes()).splitlines())


def catalogue_of(norad_ids: Iterable[int]) -> bytes:
    """An OMM CSV with the real element sets of these objects."""
    header, *lines = catalogue_lines()
    column = header.split(b",").index(b"NORAD_CAT_ID")
    wanted = {str(n).encode() for n in norad_ids}
    return b"\n".join([header, *(line for line in lines if line.split(b",")[column] in wanted)]) + b"\n"


def catalogue_ids() -> Sequence[int]:
    """Catalogue numbers of every object, in the file's order."""
    header, *lines = catalogue_lines()
    column = header.split(b",").index(b"NORAD_CAT_ID")
    return [int(line.split(b",")[column]) for line in lines]

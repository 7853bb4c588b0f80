"""Ephemerides that the platform states itself, as segments of an orbit ephemeris message (CCSDS 502.0-B-3)."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.formats.ndm import KeywordEntry

_VERSION: Final = "3.0"
_DEGREE: Final = 7
"""Degree of the polynomial by which the platform itself interpolates (`orbits.ephemerides`)."""


def predicted_ephemeris(
    norad_id: int,
    object_name: str | None,
    *,
    frame: str,
    created_ns: int,
    time_ns: IntArray,
    states: FloatArray,
    covariance_time_ns: IntArray,
    covariances: FloatArray,
    comments: Sequence[str] = (),
    usable: tuple[int, int] | None = None,
    marking: Marking = UNMARKED,
) -> EphemerisSegment:
    """Make a segment of states (n, 6), km and km/s, at ``time_ns`` (n,), UTC, with covariances (m, 21) in ``frame``.

    ``covariances`` are lower triangles, row by row; ``usable`` bounds the span to interpolate in.
    """
    marked = {"CLASSIFICATION": marking.classification} if marking.classification else {}
    header = {**marked, "CREATION_DATE": format_epoch(created_ns), "ORIGINATOR": OWN_ORIGINATOR}
    bounds = dict(zip(("USEABLE_START_TIME", "USEABLE_STOP_TIME"), map(format_epoch, usable or ()), strict=False))
    # A single state is no curve; two are one of degree 3.
    degree = min(_DEGREE, 2 * len(time_ns) - 1)
    curve = {"INTERPOLATION": "HERMITE", "INTERPOLATION_DEGREE": str(degree)} if degree > 1 else {}
    metadata = {
        "OBJECT_NAME": object_name or str(norad_id),
        "OBJECT_ID": str(norad_id),
        "CENTER_NAME": "EARTH",
        "REF_FRAME": frame,
        "TIME_SYSTEM": "UTC",
        "START_TIME": format_epoch(int(time_ns[0])),
        **bounds,
        "STOP_TIME": format_epoch(int(time_ns[-1])),
        **curve,
    }
    return EphemerisSegment(
        version=_VERSION,
        header=tuple(KeywordEntry(name, str(value)) for name, value in header.items()),
        metadata=tuple(KeywordEntry(name, value) for name, value in metadata.items()),
        comments=(*marking.comments(), *comments),
        time_ns=np.asarray(time_ns, np.int64),
        states=states,
        covariance_time_ns=np.asarray(covariance_time_ns, np.int64),
        covariances=covariances,
        covariance_frames=(frame,) * len(covariances),
    )

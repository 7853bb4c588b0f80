"""Refined ephemerides as orbit ephemeris messages (CCSDS 502.0-B-3, OEM), for operators and other systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.catalog.lookup import UnknownObject
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.markings import Marking
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.formats.predicted_ephemeris import predicted_ephemeris
from sda_platform.lake.lake import Lake
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES

_FRAME: Final = "TEME"


def refined_ephemeris(lake: Lake, norad_id: int) -> EphemerisSegment:
    """Return the refined ephemeris of an object: states in TEME of date, UTC, with covariances in the same frame.

    Raises UnknownObject: the object has none.
    """
    rows = lake.log(REFINED_EPHEMERIDES).rows(where=ds.field("norad_id") == norad_id).to_pylist()
    if not rows:
        raise UnknownObject(
            f"{REFINED_EPHEMERIDES.name} has no ephemeris of object {norad_id}: only tracked objects have one"
        )
    return ephemeris_message(rows[0])


def ephemeris_message(row: Mapping[str, Any]) -> EphemerisSegment:
    """A row of `refined_ephemerides` as the segment of a message."""
    return predicted_ephemeris(
        row["norad_id"],
        row["object_name"],
        frame=_FRAME,
        created_ns=row["as_of_ns"],
        marking=Marking.of(row),
        time_ns=np.asarray(row["state_time_ns"], np.int64),
        states=np.asarray(row["state"], np.float64).reshape(-1, 6),
        covariance_time_ns=np.asarray(row["covariance_time_ns"], np.int64),
        covariances=np.asarray(row["covariance"], np.float64).reshape(-1, len(COVARIANCE_TERMS)),
        comments=tuple(_comments(row)),
        usable=(row["usable_from_ns"], row["usable_until_ns"]),
    )


def _comments(row: Mapping[str, Any]) -> Iterator[str]:
    if row["international_designator"]:
        yield f"INTERNATIONAL DESIGNATOR: {row['international_designator']}"
    yield f"FROM {row['windows']} WINDOWS OVER {row['arc_s']:.0f} s; POSITION SIGMA {row['position_sigma_m']:.1f} m"
    held_back = f"{row['held_back_rms']:.2f} SIGMA, THE PUBLISHED SET'S {row['published_held_back_rms']:.2f}"
    yield f"ERROR OF THE PREDICTION OF {row['held_back_windows']} WINDOWS HELD BACK: {held_back}"

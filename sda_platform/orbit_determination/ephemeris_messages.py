"""Refined ephemerides as orbit ephemeris messages (CCSDS 502.0-B-3, OEM), for operators and other systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.catalog.lookup import UnknownObject
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.markings import Marking
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS
from sda_platform.lake.lake import Lake
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES

_VERSION: Final = "3.0"
_FRAME: Final = "TEME"
_DEGREE: Final = 7
"""Degree of the polynomial by which the platform itself interpolates (`orbits.ephemerides`)."""


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
    covariances = np.asarray(row["covariance"], np.float64).reshape(-1, len(COVARIANCE_TERMS))
    return EphemerisSegment(
        version=_VERSION,
        header=tuple(_entries(_header(row))),
        metadata=tuple(_entries(_metadata(row))),
        comments=tuple(_comments(row)),
        time_ns=np.asarray(row["state_time_ns"], np.int64),
        states=np.asarray(row["state"], np.float64).reshape(-1, 6),
        covariance_time_ns=np.asarray(row["covariance_time_ns"], np.int64),
        covariances=covariances,
        covariance_frames=(_FRAME,) * len(covariances),
    )


def _header(row: Mapping[str, Any]) -> dict[str, str]:
    marked = {"CLASSIFICATION": mark} if (mark := Marking.of(row).classification) else {}
    return {**marked, "CREATION_DATE": format_epoch(row["as_of_ns"]), "ORIGINATOR": OWN_ORIGINATOR}


def _metadata(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "OBJECT_NAME": row["object_name"] or str(row["norad_id"]),
        "OBJECT_ID": str(row["norad_id"]),
        "CENTER_NAME": "EARTH",
        "REF_FRAME": _FRAME,
        "TIME_SYSTEM": "UTC",
        "START_TIME": format_epoch(row["state_time_ns"][0]),
        "USEABLE_START_TIME": format_epoch(row["usable_from_ns"]),
        "USEABLE_STOP_TIME": format_epoch(row["usable_until_ns"]),
        "STOP_TIME": format_epoch(row["state_time_ns"][-1]),
        "INTERPOLATION": "HERMITE",
        "INTERPOLATION_DEGREE": str(_DEGREE),
    }


def _comments(row: Mapping[str, Any]) -> Iterator[str]:
    yield from Marking.of(row).comments()
    if row["international_designator"]:
        yield f"INTERNATIONAL DESIGNATOR: {row['international_designator']}"
    yield f"FROM {row['windows']} WINDOWS OVER {row['arc_s']:.0f} s; POSITION SIGMA {row['position_sigma_m']:.1f} m"
    held_back = f"{row['held_back_rms']:.2f} SIGMA, THE PUBLISHED SET'S {row['published_held_back_rms']:.2f}"
    yield f"ERROR OF THE PREDICTION OF {row['held_back_windows']} WINDOWS HELD BACK: {held_back}"


def _entries(values: Mapping[str, str]) -> Iterator[KeywordEntry]:
    return (KeywordEntry(name, value) for name, value in values.items())

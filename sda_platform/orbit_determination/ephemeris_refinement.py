"""Ephemerides of tracked objects: which are withdrawn, whose turn it is, and the ephemerides. Arrow in, Arrow out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sda_platform.catalog.orbits import propagator_of
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.fusion.live_tracks import window_fits
from sda_platform.fusion.tables import lower_triangles
from sda_platform.lake.manifest import CommitManifest
from sda_platform.orbit_determination.refinement import BETTER, MIN_WINDOWS, TOGETHER_NS, due, windows_since
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.determination.held_back import HeldBack, prediction_held_back
from sda_platform.orbits.determination.track_elements import NoFit
from sda_platform.orbits.determination.track_ephemerides import TrackEphemeris, ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.tracking.track_filter import filter_tracks

EPHEMERIS_SCHEMA = REFINED_EPHEMERIDES.content_schema
MOST_AT_ONCE = 20
"""Refinements of a run, about two seconds each: the pool's next run must not wait for long."""
MOST_HELD = 200
"""Ephemerides that the table holds at a time, 70 kB each. Each commit writes the table anew."""


@dataclass(frozen=True)
class Turn:
    """When tracks were refined last, mission time, and the catalogue number up to which."""

    at_ns: int = 0
    number: int = 0

    @classmethod
    def of(cls, manifest: CommitManifest | None) -> Turn:
        """As a commit of the table counts it."""
        counts = manifest.counts if manifest else {}
        return cls(counts.get("turn_ns", 0), counts.get("turn_number", 0))

    def counts(self) -> dict[str, int]:
        """Among the counts of the next commit."""
        return {"turn_ns": self.at_ns, "turn_number": self.number}

    def is_over(self, as_of_ns: int) -> bool:
        """Whether the next tracks may be refined: their objects are screened together."""
        return as_of_ns - self.at_ns >= TOGETHER_NS


def withdrawn(held: pa.Table, tracks: pa.Table, as_of_ns: int) -> pa.Table:
    """The ``held`` ephemerides that have ended, and those of objects suspected of a manoeuvre since.

    Columns: norad_id, epoch_time_ns, usable_until_ns of ``held``; norad_id, manoeuvre_time_ns of ``tracks``.
    """
    moved = {row["norad_id"]: row["manoeuvre_time_ns"] or 0 for row in tracks.to_pylist()}
    gone = [
        row["usable_until_ns"] <= as_of_ns or moved.get(row["norad_id"], 0) >= row["epoch_time_ns"]
        for row in held.to_pylist()
    ]
    return held.filter(pa.array(gone, pa.bool_()))


def in_turn(tracks: pa.Table, held: pa.Table, after_number: int) -> pa.Table:
    """At most MOST_AT_ONCE due tracks, by catalogue number from ``after_number`` on and round again.

    Objects without an ephemeris are left out beyond MOST_HELD. ``held``: current ephemerides.
    """
    waiting, known = due(tracks, held), set(held["norad_id"].to_pylist())
    numbers = waiting["norad_id"].to_pylist()
    room, chosen = MOST_HELD - len(known), list[int]()
    for row in sorted(range(len(numbers)), key=lambda row: (numbers[row] <= after_number, numbers[row])):
        if numbers[row] not in known:
            if room <= 0:
                continue
            room -= 1
        chosen.append(row)
    return waiting.take(pa.array(chosen[:MOST_AT_ONCE], pa.int64()))


def refined_ephemerides(
    windows: pa.Table,
    tracks: pa.Table,
    published: Mapping[int, Mapping[str, Any]],
    as_of_ns: int,
    dynamics: Dynamics = CONSTANT_DYNAMICS,
) -> pa.Table:
    """Ephemerides for a day that are clearly better than the ``published`` rows (by catalogue number) of these tracks.

    The numerical prediction from the earlier windows must predict the later ones better than the published set does.
    """
    found = []
    for track in tracks.to_pylist():
        row, own = published.get(track["norad_id"]), windows_since(windows, track)
        if row is None or own.num_rows < MIN_WINDOWS:
            continue
        fits = window_fits(own)
        set_in_force = propagator_of(pa.Table.from_pylist([dict(row)]))
        try:
            held_back = prediction_held_back(fits, set_in_force, dynamics)
            if not held_back.is_better:
                continue
            made = ephemeris_of_track(filter_tracks(fits, set_in_force, [0], dynamics), set_in_force, dynamics)
        except NoFit:
            continue
        if made.sigma_km < BETTER * made.published_sigma_km:
            found.append({**_row(made, held_back, row, fits.epoch_ns), "as_of_ns": as_of_ns})
    return pa.Table.from_pylist(found, EPHEMERIS_SCHEMA)


def _row(made: TrackEphemeris, held_back: HeldBack, published: Mapping[str, Any], epoch_ns: Any) -> dict[str, Any]:
    ephemeris = made.ephemeris
    return {
        **{name: published[name] for name in ("norad_id", "object_name", "international_designator")},
        "epoch_time_ns": ephemeris.usable_from_ns,
        "usable_from_ns": ephemeris.usable_from_ns,
        "usable_until_ns": ephemeris.usable_until_ns,
        "state_time_ns": ephemeris.state_time_ns.tolist(),
        "state": ephemeris.state.ravel().tolist(),
        "covariance_time_ns": ephemeris.covariance_time_ns.tolist(),
        "covariance": np.asarray(lower_triangles(ephemeris.covariance)).ravel().tolist(),
        "position_sigma_m": made.sigma_km * 1e3,
        "published_epoch_ns": published["epoch_time_ns"],
        "published_sigma_m": made.published_sigma_km * 1e3,
        "windows": len(epoch_ns),
        "arc_s": (epoch_ns[-1] - epoch_ns[0]) / NANOSECONDS_PER_SECOND,
        "held_back_windows": held_back.windows,
        "held_back_rms": held_back.refined_rms,
        "published_held_back_rms": held_back.published_rms,
    }

"""Ephemerides of tracked objects: which are withdrawn, which have no room, and new ones. Arrow in, Arrow out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sda_platform.catalog.orbits import propagator_of
from sda_platform.formats.markings import of_rows
from sda_platform.fusion.live_tracks import window_fits
from sda_platform.fusion.tables import lower_triangles
from sda_platform.orbit_determination.refinement import MIN_WINDOWS, windows_since
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.determination.held_back import HeldBack, prediction_held_back
from sda_platform.orbits.determination.track_elements import NoFit
from sda_platform.orbits.determination.track_ephemerides import TrackEphemeris, ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.units import SECOND_NS

EPHEMERIS_SCHEMA = REFINED_EPHEMERIDES.content_schema
MOST_HELD = 200
"""Ephemerides that the table holds at a time, 60 kB each: an assessment reads all of them."""


def withdrawn(held: pa.Table, tracks: pa.Table, as_of_ns: int) -> pa.Table:
    """Select the ``held`` ephemerides that have ended, or whose objects are suspected of a manoeuvre since.

    Columns: norad_id, epoch_time_ns, usable_until_ns of ``held``; norad_id, manoeuvre_time_ns of ``tracks``.
    """
    moved = {row["norad_id"]: row["manoeuvre_time_ns"] or 0 for row in tracks.to_pylist()}
    gone = [
        row["usable_until_ns"] <= as_of_ns or moved.get(row["norad_id"], 0) >= row["epoch_time_ns"]
        for row in held.to_pylist()
    ]
    return held.filter(pa.array(gone, pa.bool_()))


def without_room(held: pa.Table, renewed: pa.Table, first: Collection[int]) -> pa.Table:
    """Return the ``held`` ephemerides that are beyond MOST_HELD with the ``renewed`` ones: the oldest, ``first``
    objects last.

    Columns: norad_id, epoch_time_ns of ``held``; norad_id of ``renewed``, which stay.
    """
    is_kept = np.isin(held["norad_id"].to_numpy(), renewed["norad_id"].to_numpy())
    others = held.filter(pa.array(~is_kept))
    surplus = max(others.num_rows + renewed.num_rows - MOST_HELD, 0)
    is_first = np.isin(others["norad_id"].to_numpy(), np.fromiter(first, np.int64, len(first)))
    order = np.lexsort((others["norad_id"].to_numpy(), others["epoch_time_ns"].to_numpy(), is_first))
    return others.take(pa.array(np.sort(order[:surplus])))


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
        if made.is_more_certain:
            found.append({**_row(made, held_back, row, fits.epoch_ns), **of_rows(own).columns(), "as_of_ns": as_of_ns})
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
        "arc_s": (epoch_ns[-1] - epoch_ns[0]) / SECOND_NS,
        "held_back_windows": held_back.windows,
        "held_back_rms": held_back.refined_rms,
        "published_held_back_rms": held_back.published_rms,
    }

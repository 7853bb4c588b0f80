"""Refinement: which tracks are due, and the element sets from their windows. Arrow in, Arrow out."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.orbits import propagator_of
from sda_platform.formats.markings import of_rows
from sda_platform.fusion.live_tracks import window_fits
from sda_platform.fusion.tables import ALIVE
from sda_platform.orbit_determination.tables import REFINED_ELEMENTS
from sda_platform.orbits.determination.held_back import HeldBack, elements_held_back
from sda_platform.orbits.determination.track_elements import NoFit, TrackElements, elements_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.units import DAY_NS, SECOND_NS

REFINED_SCHEMA = REFINED_ELEMENTS.content_schema
ARC_NS = DAY_NS
"""Span of the windows of a fit, event time."""
MIN_WINDOWS = 6
"""Windows that a refinement needs."""
MIN_INTERVAL_NS = 1800 * SECOND_NS
"""Smallest age of a product that is replaced: an earlier one adds little, and causes another screening."""


def due(tracks: pa.Table, refined: pa.Table) -> pa.Table:
    """Return the tracks that may be refined: alive, observed often enough, and some time after the object's last
    refined set.

    ``tracks`` are rows of `tracks`; ``refined`` earlier products, with ``norad_id`` and ``epoch_time_ns``.
    """
    last: dict[int, int] = {}
    for row in refined.to_pylist():
        last[row["norad_id"]] = max(row["epoch_time_ns"], last.get(row["norad_id"], 0))
    numbers, epochs_ns = tracks["norad_id"].to_pylist(), tracks["epoch_time_ns"].to_pylist()
    is_due = [epoch - last.get(number, 0) >= MIN_INTERVAL_NS for number, epoch in zip(numbers, epochs_ns, strict=True)]
    alive = pc.is_in(tracks["state"], pa.array(ALIVE))
    enough = pc.greater_equal(tracks["windows"], MIN_WINDOWS)
    return tracks.filter(pc.and_(pc.and_(alive, enough), pa.array(is_due, pa.bool_()))).sort_by("norad_id")


def refined(
    windows: pa.Table,
    tracks: pa.Table,
    published: Mapping[int, Mapping[str, Any]],
    as_of_ns: int,
    dynamics: Dynamics = CONSTANT_DYNAMICS,
) -> pa.Table:
    """Element sets that are clearly better than the ``published`` rows (by catalogue number) of these tracks.

    Elements from the earlier windows must predict the later ones better than the published set does. Of an object with
    a suspected manoeuvre only the windows since then count. ``dynamics``: the model that propagates tracks.
    """
    found = []
    for track in tracks.to_pylist():
        row, own = published.get(track["norad_id"]), windows_since(windows, track)
        if row is None or own.num_rows < MIN_WINDOWS:
            continue
        fits = window_fits(own)
        set_in_force = propagator_of(pa.Table.from_pylist([dict(row)]))
        try:
            held_back = elements_held_back(fits, set_in_force, dynamics)
            if not held_back.is_better:
                continue
            made = elements_of_track(filter_tracks(fits, set_in_force, [0], dynamics), set_in_force, dynamics)
        except NoFit:
            continue
        if made.is_more_certain:
            found.append({**_row(made, held_back, row, fits.epoch_ns), **of_rows(own).columns(), "as_of_ns": as_of_ns})
    return pa.Table.from_pylist(found, REFINED_SCHEMA)


def windows_since(windows: pa.Table, track: Mapping[str, Any]) -> pa.Table:
    """Select the windows of a track in its last day, by time; after a suspected manoeuvre only the later ones."""
    since_ns = max(track["manoeuvre_time_ns"] or 0, track["epoch_time_ns"] - ARC_NS)
    own = windows.filter(pc.equal(windows["norad_id"], track["norad_id"]))
    return own.filter(pc.greater_equal(own["epoch_time_ns"], since_ns)).sort_by("epoch_time_ns")


def _row(made: TrackElements, held_back: HeldBack, published: Mapping[str, Any], epoch_ns: Any) -> dict[str, Any]:
    elements = {name: getattr(made.elements, name)[0].item() for name in ElementSets.__dataclass_fields__}
    return {
        **elements,
        "object_name": published["object_name"],
        "international_designator": published["international_designator"],
        "published_epoch_ns": published["epoch_time_ns"],
        "windows": len(epoch_ns),
        "arc_s": (epoch_ns[-1] - epoch_ns[0]) / SECOND_NS,
        "position_sigma_m": made.sigma_km * 1e3,
        "published_sigma_m": made.published_sigma_km * 1e3,
        "innovation": made.innovation,
        "held_back_windows": held_back.windows,
        "held_back_rms": held_back.refined_rms,
        "published_held_back_rms": held_back.published_rms,
    }

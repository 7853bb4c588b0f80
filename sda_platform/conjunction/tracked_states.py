"""The states of tracked objects: what their newest windows say, propagated numerically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.formats.markings import MARKS, Marking
from sda_platform.fusion.tables import AREAS, STATE_COLUMNS, covariance_from_lower
from sda_platform.lake.arrow import arrays, flat
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme

TRACK_COLUMNS = (
    "norad_id", "track_id", "epoch_time_ns", *STATE_COLUMNS, *AREAS, "joint_covariance", "manoeuvre_time_ns", *MARKS,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Tracks:
    """Where each of ``t`` tracked objects is, by ascending catalogue number; TEME, km and km/s."""

    norad_id: IntArray
    track_id: TextArray
    epoch_ns: IntArray
    state: FloatArray
    areas: FloatArray
    """(t, 2) drag area and reflective area over mass, m2/kg."""
    covariance: FloatArray
    """(t, 8, 8) of state and areas."""
    manoeuvre_ns: IntArray
    """(t,) when, or since when, the object is suspected to have manoeuvred; 0: it is not."""
    dynamics: Dynamics = CONSTANT_DYNAMICS
    """The numerical model that propagates them."""
    markings: Mapping[str, Marking] = field(default_factory=dict)
    """What marks the data of tracks, by their ids; those that are left out have no mark that is known."""

    @classmethod
    def of(cls, rows: pa.Table, dynamics: Dynamics = CONSTANT_DYNAMICS) -> Tracks:
        """From rows of `tracks` with TRACK_COLUMNS; rows of versions before the numerical model are left out."""
        ordered = rows.filter(rows["joint_covariance"].is_valid()).sort_by("norad_id")
        columns = arrays(ordered.drop_columns(["joint_covariance", *MARKS]))
        marked = zip(*(ordered[name].to_pylist() for name in ("track_id", *MARKS)), strict=True)
        return cls(
            norad_id=columns["norad_id"],
            track_id=columns["track_id"],
            epoch_ns=columns["epoch_time_ns"],
            state=np.stack([columns[name] for name in STATE_COLUMNS], axis=1),
            areas=np.stack([columns[name] for name in AREAS], axis=1),
            covariance=covariance_from_lower(flat(ordered.column("joint_covariance")), size=8),
            manoeuvre_ns=columns["manoeuvre_time_ns"],
            dynamics=dynamics,
            markings={track_id: Marking(*marks) for track_id, *marks in marked if any(marks)},
        )

    def at(self, rows: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (n, 6) and covariances (n, 8, 8) of these tracks at ``time_ns`` (n,), propagated numerically."""
        used, of = np.unique(rows, return_inverse=True)
        start = orbits_of_teme(self.epoch_ns[used], self.state[used], self.areas[used], self.covariance[used])
        return start.at(self.dynamics, time_ns, of).in_teme()

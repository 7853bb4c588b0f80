"""What is known of objects now, outside of a run: the states on which assessments rest, for questions about plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.arrays import IntArray
from sda_platform.catalog.orbits import Catalogue, catalogue_ahead
from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, EPHEMERIS_COLUMNS, ORBITAL_CATALOG
from sda_platform.conjunction.best_states import ELEMENT_SET, BestStates
from sda_platform.conjunction.manoeuvred_paths import paths_by_tracks
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.refined_ephemerides import REFINED_COLUMNS, refined_ephemerides
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import ALIVE, TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.dynamics.numerical import Dynamics


@dataclass(frozen=True, eq=False)
class KnownStates:
    """The catalogue, and the tracks and ephemerides that are better than its sets."""

    catalogue: Catalogue
    tracks: Tracks
    ephemerides: OperatorEphemerides
    paths: StatedPaths
    """The catalogue for a search, in which ephemerides and paths after manoeuvres stand for sets."""
    dynamics: Dynamics

    @classmethod
    def of_sets(cls, catalogue: Catalogue) -> KnownStates:
        """Make known states of element sets alone."""
        tracks = Tracks.of(pa.schema([TRACKS.arrow_schema.field(name) for name in TRACK_COLUMNS]).empty_table())
        return cls(catalogue, tracks, OperatorEphemerides.none(), StatedPaths.of(catalogue, OperatorEphemerides.none()),
                   tracks.dynamics)  # fmt: skip

    def of(self, norad_id: IntArray, time_ns: IntArray) -> BestStates:
        """Return the best states of objects ``norad_id`` (n,) near ``time_ns`` (n,), chosen as for an assessment."""
        return BestStates.of(norad_id, time_ns, self.catalogue, self.tracks, self.ephemerides)


def known_states(lake: Lake, dynamics: Dynamics, as_of_ns: int, until_ns: int) -> KnownStates:
    """Read the states that the lake holds now, with the sets that come into force until ``until_ns``."""
    sets = lake.log(ELEMENT_SETS).head()
    catalogue = catalogue_ahead(
        lake,
        lake.log(ORBITAL_CATALOG).version(),
        TableSnapshot(ELEMENT_SETS.name, sets.version, sets.sequence),
        until_ns,
    )
    tracks = lake.log(TRACKS).rows(TRACK_COLUMNS, ds.field("state").isin(ALIVE))
    is_ahead = ds.field("usable_until_ns") > as_of_ns
    rows = lake.log(REFINED_EPHEMERIDES).rows(REFINED_COLUMNS, is_ahead).sort_by("norad_id")
    refined = refined_ephemerides(rows, catalogue, tracks, as_of_ns)
    stated = lake.log(EPHEMERIDES).rows(EPHEMERIS_COLUMNS, ds.field("error_kind").is_null() & is_ahead)
    ephemerides = refined.and_paths(OperatorEphemerides.of(stated.to_pylist()))
    suspected = tracks.filter(tracks["manoeuvre_time_ns"].is_valid())
    by_tracks = paths_by_tracks(suspected, catalogue, ephemerides, dynamics, as_of_ns)
    paths = StatedPaths.of(catalogue, ephemerides, by_tracks)
    return KnownStates(catalogue, Tracks.of(tracks, dynamics), ephemerides, paths, dynamics)


def described(states: BestStates, time_ns: IntArray) -> list[str]:
    """Describe the source of each state (n,), and the age of an element set at ``time_ns`` (n,), for people."""
    epoch_ns = states.catalogue.propagator.elements.epoch_time_ns[states.index]
    days = np.abs(time_ns - epoch_ns) / 8.64e13
    return [
        f"element set, {age:.1f} d from its epoch" if source == ELEMENT_SET else source.replace("_", " ")
        for source, age in zip(states.source, days.tolist(), strict=True)
    ]

"""The best state of each object of an approach: an ephemeris of its operator or of ours, its track, or its set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.operator_ephemerides import (
    AGREEING_SIGMAS,
    ASSUMED_EPHEMERIS,
    NONE,
    OF_OPERATORS,
    OperatorEphemerides,
    in_sigmas,
)
from sda_platform.conjunction.state_choice import BEFORE_MANOEUVRE, LEAVES_TRACK, LESS_CERTAIN
from sda_platform.conjunction.tables import TRACK_REACH_NS
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.fusion.tables import lower_triangles
from sda_platform.lake.number_rules import is_semidefinite
from sda_platform.orbits.covariance import deviations_after, rtn_to_teme, transport
from sda_platform.orbits.dynamics.orbit_uncertainty import white_noise
from sda_platform.orbits.element_errors import (
    degrees_of_freedom,
    element_covariance_rtn,
    element_tails,
    path_degrees_of_freedom,
)
from sda_platform.orbits.long_tails import GAUSSIAN, Tails
from sda_platform.units import SECOND_NS

FUSED_TRACK, ELEMENT_SET = "fused_track", "element_set"
TRACK_NOT_FINITE, TRACK_INDEFINITE = "track_covariance_not_finite", "track_covariance_indefinite"
EPHEMERIS_NOT_FINITE = "ephemeris_covariance_not_finite"
_REASONS = "U40"


@dataclass(frozen=True, eq=False)
class BestStates:
    """How each of ``n`` objects deviates from its element set at ``epoch_ns``, near which its approach is: not at all
    where it has no track.

    Where an ephemeris is used, it alone gives the state.
    """

    catalogue: Catalogue
    index: IntArray
    """(n,) rows of the catalogue."""
    track_id: TextArray
    """(n,) the track that is used; empty: none."""
    epoch_ns: IntArray
    deviation: FloatArray
    covariance: FloatArray
    ephemerides: OperatorEphemerides
    ephemeris: IntArray
    """(n,) the ephemeris that is used, of ``ephemerides``; NONE: none."""
    manoeuvre_ns: IntArray
    """(n,) a suspected manoeuvre that the track shows and the element set does not know; 0: none."""
    refused: TextArray
    """(n,) the covariance that could not be used, and why: `TRACK_NOT_FINITE` and so on; empty: none."""
    choice: TextArray
    """(n,) why this source and no other, of `state_choice`; empty: there was no other."""
    of_tracks: Mapping[str, Marking] = field(default_factory=dict)
    """See `Tracks.markings`."""

    @classmethod
    def of(
        cls,
        norad_id: IntArray,
        time_ns: IntArray,
        catalogue: Catalogue,
        tracks: Tracks,
        ephemerides: OperatorEphemerides,
    ) -> BestStates:
        """Choose the best source of state of objects ``norad_id`` (n,), all catalogued, at ``time_ns`` (n,).

        An ephemeris that covers the time ranks above the element set. It ranks above the track as well, unless the
        track has the smaller covariance, or the object has manoeuvred since the ephemeris was created. If the two agree
        now and part later, only the ephemeris has the planned manoeuvre: it counts.
        """
        known = cls._of_tracks(norad_id, time_ns, catalogue, tracks, ephemerides)
        chosen = ephemerides.covering(norad_id, time_ns)
        stated, stated_covariance = ephemerides.at(chosen, time_ns)
        r, _, tracked_covariance = known.at(time_ns)
        stated_km = _position_sigma_km(stated_covariance)
        is_usable = np.isfinite(stated_km)
        both = known.has_track & is_usable
        row = np.minimum(np.searchsorted(tracks.norad_id, norad_id), max(len(tracks.norad_id) - 1, 0))
        manoeuvre_ns = tracks.manoeuvre_ns[row] if len(tracks.norad_id) else np.zeros(len(norad_id), np.int64)
        created_ns = np.append(ephemerides.created_ns, 0)[chosen]
        has_manoeuvred = both & (manoeuvre_ns > created_ns)
        is_less_certain = both & ~has_manoeuvred & (stated_km > _position_sigma_km(tracked_covariance))
        apart = in_sigmas(stated[:, :3] - r, (stated_covariance + tracked_covariance)[:, :3, :3])
        # Our own ephemerides have no planned manoeuvre, and are another estimate of what the track shows.
        of_operator = np.array([n != NONE and ephemerides.source[n] in OF_OPERATORS for n in chosen.tolist()], np.bool_)
        leaves_track = is_less_certain & of_operator & (apart > AGREEING_SIGMAS)
        leaves_track[leaves_track] = _agree_now(ephemerides, chosen[leaves_track], tracks, row[leaves_track])
        is_less_certain &= ~leaves_track
        used = is_usable & ~has_manoeuvred & ~is_less_certain
        by_rank = np.array([ephemerides.choices.get(number, "") for number in chosen.tolist()], _REASONS)
        is_refused = (chosen != NONE) & ~is_usable & (known.refused == "")
        return replace(
            known,
            refused=np.where(is_refused, EPHEMERIS_NOT_FINITE, known.refused),
            choice=np.select(
                [has_manoeuvred & of_operator, is_less_certain & of_operator, leaves_track, used],
                [BEFORE_MANOEUVRE, LESS_CERTAIN, LEAVES_TRACK, by_rank],
                "",
            ),
            track_id=np.where(used, "", known.track_id),
            ephemeris=np.where(used, chosen, NONE),
            manoeuvre_ns=np.where(used, 0, known.manoeuvre_ns),
        )

    @classmethod
    def _of_tracks(
        cls,
        norad_id: IntArray,
        time_ns: IntArray,
        catalogue: Catalogue,
        tracks: Tracks,
        ephemerides: OperatorEphemerides,
    ) -> BestStates:
        """Return the same without ephemerides.

        The track is propagated numerically to ``time_ns``. It is used up to a day ahead, where its position error is
        below that of element sets. If the object has manoeuvred since the set's epoch, the track is used however far
        ahead. If another set comes into force before ``time_ns``, as for a planned manoeuvre, that set is used.
        """
        index = catalogue.rows_in_force(norad_id, time_ns)
        seen = np.flatnonzero(np.isin(norad_id, tracks.norad_id))
        row = np.searchsorted(tracks.norad_id, norad_id[seen])
        manoeuvred = tracks.manoeuvre_ns[row] >= catalogue.propagator.elements.epoch_time_ns[index[seen]]
        is_of_this_set = catalogue.rows_in_force(norad_id[seen], tracks.epoch_ns[row]) == index[seen]
        is_near = np.abs(time_ns[seen] - tracks.epoch_ns[row]) <= TRACK_REACH_NS
        eligible = is_of_this_set & (is_near | manoeuvred)
        seen, row, manoeuvred = seen[eligible], row[eligible], manoeuvred[eligible]
        carried = cls._by_tracks(catalogue, index[seen], tracks, row, time_ns[seen], ephemerides)
        sigma_km = _position_sigma_km(carried.covariance)
        modelled_km = _position_sigma_km(_by_elements(catalogue, index[seen], time_ns[seen])[2])
        is_finite = np.isfinite(carried.deviation).all(axis=1) & np.isfinite(carried.covariance).all(axis=(1, 2))
        is_definite = np.zeros(len(seen), np.bool_)
        is_definite[is_finite] = is_semidefinite(lower_triangles(carried.covariance[is_finite, :3, :3]), 3)
        refused = np.full(len(index), "", dtype=_REASONS)
        refused[seen] = np.where(is_definite, "", np.where(is_finite, TRACK_INDEFINITE, TRACK_NOT_FINITE))
        used = is_definite & ((sigma_km < modelled_km) | manoeuvred)
        track_id, epoch_ns = np.full(len(index), "", dtype=tracks.track_id.dtype), time_ns.copy()
        deviation, covariance = np.zeros((len(index), 6)), np.zeros((len(index), 6, 6))
        track_id[seen[used]], epoch_ns[seen[used]] = carried.track_id[used], carried.epoch_ns[used]
        deviation[seen[used]], covariance[seen[used]] = carried.deviation[used], carried.covariance[used]
        manoeuvre_ns = np.zeros(len(index), np.int64)
        manoeuvre_ns[seen[used]] = np.where(manoeuvred, tracks.manoeuvre_ns[row], 0)[used]
        nothing = np.full(len(index), NONE)
        return cls(
            catalogue, index, track_id, epoch_ns, deviation, covariance, ephemerides, nothing, manoeuvre_ns, refused,
            np.full(len(index), "", dtype=_REASONS), tracks.markings,
        )  # fmt: skip

    @classmethod
    def _by_tracks(
        cls,
        catalogue: Catalogue,
        index: IntArray,
        tracks: Tracks,
        row: IntArray,
        time_ns: IntArray,
        ephemerides: OperatorEphemerides,
    ) -> BestStates:
        state, covariance = tracks.at(row, time_ns)
        _, r, v = catalogue.propagator.at(index, time_ns)
        deviation = state - np.concatenate([r, v], axis=1)
        nothing, none_ns = np.full(len(index), NONE), np.zeros(len(index), np.int64)
        return cls(
            catalogue, index, tracks.track_id[row], time_ns, deviation, covariance[:, :6, :6], ephemerides, nothing,
            none_ns, *np.full((2, len(index)), "", dtype=_REASONS),
        )  # fmt: skip

    @property
    def has_track(self) -> npt.NDArray[np.bool_]:
        """Tell whether each state comes from a track, (n,)."""
        return np.asarray(self.track_id != "")

    @property
    def source(self) -> list[str]:
        """Name the source of each state, (n,)."""
        of_tracks = np.where(self.has_track, FUSED_TRACK, ELEMENT_SET)
        return [
            self.ephemerides.source[number] if number != NONE else str(of_track)
            for number, of_track in zip(self.ephemeris.tolist(), of_tracks, strict=True)
        ]

    @property
    def ephemeris_id(self) -> list[str | None]:
        """Return the id of the ephemeris of each state, (n,); None: no ephemeris is used."""
        return [self.ephemerides.ephemeris_id[n] if n != NONE else None for n in self.ephemeris.tolist()]

    @property
    def markings(self) -> list[Marking]:
        """Return what marks the data of the source of each state, (n,)."""
        of_sets = self.catalogue.markings(self.index)
        sources = zip(self.ephemeris.tolist(), self.track_id.tolist(), of_sets, strict=True)
        return [
            self.ephemerides.marking(n) if n != NONE else self.of_tracks.get(track, UNMARKED) if track else of_set
            for n, track, of_set in sources
        ]

    @property
    def has_covariance(self) -> npt.NDArray[np.bool_]:
        """Tell whether each covariance, (n,), is of the object's own orbit, not of the model of set errors."""
        return np.asarray(self.has_track | ((self.ephemeris != NONE) & ~self._is_assumed))

    @property
    def _is_assumed(self) -> npt.NDArray[np.bool_]:
        return np.array([source == ASSUMED_EPHEMERIS for source in self.source], np.bool_)

    def tails(self, _time_ns: IntArray, r_km: FloatArray, v_km_s: FloatArray) -> Tails:
        """Return the distribution of each state's errors (n,): of element sets by history, of an ephemeris with an
        assumed covariance as of sets without one, else Gaussian.

        ``r_km`` and ``v_km_s`` (n, 3) are what `at` gives.
        """
        is_set = ~self.has_track & (self.ephemeris == NONE)
        degrees = np.where(is_set, degrees_of_freedom(self.catalogue.propagator, self.index), GAUSSIAN)
        assumed = np.flatnonzero(self._is_assumed)
        degrees[assumed] = path_degrees_of_freedom(r_km[assumed], v_km_s[assumed])
        return element_tails(degrees, r_km, v_km_s)

    def take(self, rows: IntArray) -> BestStates:
        """Select the states of ``rows`` (m,), in their order; a row may occur several times."""
        names = "index track_id epoch_ns deviation covariance ephemeris manoeuvre_ns refused choice"
        return replace(self, **{name: getattr(self, name)[rows] for name in names.split()})

    def within_spans(self, time_ns: IntArray) -> IntArray:
        """``time_ns`` (n,), moved into the usable spans of the ephemerides that are used."""
        return self.ephemerides.within(self.ephemeris, time_ns)

    def at(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position (n, 3) km, velocity (n, 3) km/s and covariance (n, 6, 6) of both at ``time_ns`` (n,), TEME."""
        _, r0, v0 = self.catalogue.propagator.at(self.index, self.epoch_ns)
        dt_s = self._elapsed_s(time_ns)
        deviation, covariance = transport(self.deviation, self.covariance, r0, v0, dt_s)
        r, v, modelled = _by_elements(self.catalogue, self.index, time_ns)
        covariance = np.where(
            self.has_track[:, None, None], covariance + white_noise(np.hstack([r0, v0]), dt_s), modelled
        )
        states = np.concatenate([r, v], axis=1) + deviation
        stated, stated_covariance = self.ephemerides.at(self.ephemeris, time_ns)
        rows = np.flatnonzero(np.isfinite(np.hstack([stated, stated_covariance.reshape(-1, 36)])).all(axis=1))
        states[rows], covariance[rows] = stated[rows], stated_covariance[rows]
        return states[:, :3], states[:, 3:], covariance

    def path(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Position (n, 3) km and velocity (n, 3) km/s of both at ``time_ns`` (n,), as `at`, without covariances."""
        _, r0, v0 = self.catalogue.propagator.at(self.index, self.epoch_ns)
        deviation = deviations_after(self.deviation, r0, v0, self._elapsed_s(time_ns))
        _, r, v = self.catalogue.propagator.at(self.index, time_ns)
        stated = self.ephemerides.states(self.ephemeris, time_ns)
        states = np.where(np.isfinite(stated), stated, np.concatenate([r, v], axis=1) + deviation)
        return states[:, :3], states[:, 3:]

    def _elapsed_s(self, time_ns: IntArray) -> FloatArray:
        return np.asarray((time_ns - self.epoch_ns) / SECOND_NS)


def _by_elements(catalogue: Catalogue, index: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the element sets predict, with the covariance of their errors."""
    _, r, v = catalogue.propagator.at(index, time_ns)
    return r, v, rtn_to_teme(element_covariance_rtn(catalogue.propagator, index, time_ns, r, v), r, v)


def _agree_now(
    ephemerides: OperatorEphemerides, number: IntArray, tracks: Tracks, row: IntArray
) -> npt.NDArray[np.bool_]:
    """Tell whether ephemerides ``number`` (n,) agree with tracks ``row`` (n,) at the first time that both have."""
    if not len(number):
        return np.zeros(0, np.bool_)
    time_ns = ephemerides.within(number, tracks.epoch_ns[row])
    stated, covariance = ephemerides.at(number, time_ns)
    state, tracked = tracks.at(row, time_ns)
    combined = (covariance + tracked[:, :6, :6])[:, :3, :3]
    return np.asarray(in_sigmas((stated - state)[:, :3], combined) <= AGREEING_SIGMAS)


def _position_sigma_km(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("nii->n", covariance[:, :3, :3])))

"""Screening on the ephemerides of operators: where one covers an object, it takes the place of its element sets.

The paths of tracks after a suspected manoeuvre do, too (`manoeuvred_paths`).

The search reads sets. So sets through the states of the ephemeris (`orbits.path_sets`) are in force in its span. The
search is widened by their error, and each approach is then moved to the path itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.operator_ephemerides import NONE, OperatorEphemerides
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.path_sets import PathSets, sets_through
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.encounter import encounter_plane, rotating_frame_states
from sda_platform.orbits.screening.search import Events
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS

_REFINEMENTS = 4
Side = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class StatedPaths:
    """A catalogue in which the usable ephemerides of its objects stand for their element sets, within their spans.

    ``margins_km``: by catalogue number, how much farther the approaches of an object with an ephemeris are searched.
    """

    catalogue: Catalogue
    ephemerides: OperatorEphemerides = field(default_factory=OperatorEphemerides.none)
    margins_km: dict[int, float] = field(default_factory=dict)
    manoeuvred: frozenset[int] = frozenset()
    """Catalogue numbers of those whose path is that of a track after a suspected manoeuvre."""

    @classmethod
    def of(
        cls,
        catalogue: Catalogue,
        stated_by_operators: OperatorEphemerides,
        by_tracks: OperatorEphemerides | None = None,
    ) -> StatedPaths:
        """Combine a catalogue with the usable ephemerides of its objects; skip ephemerides of a single state.

        Where a path is given ``by_tracks``, it is better than that of the operator.
        """
        ephemerides = stated_by_operators if by_tracks is None else stated_by_operators.and_paths(by_tracks)
        known = np.unique(ephemerides.norad_id[np.isin(ephemerides.norad_id, catalogue.norad_id)]).tolist()
        stated = {norad_id: [path for path in _paths(ephemerides, norad_id) if path] for norad_id in known}
        stated = {norad_id: paths for norad_id, paths in stated.items() if paths}
        if not stated:
            return cls(catalogue, ephemerides)
        margins_km = {norad_id: max(path.margin_km for path in paths) for norad_id, paths in stated.items()}
        manoeuvred = frozenset(by_tracks.norad_id.tolist() if by_tracks else ()) & frozenset(stated)
        return cls(_with_paths(catalogue, stated), ephemerides, margins_km, manoeuvred)

    def refined(self, events: Events, volume: Volume, sigmas: float, reach_km: float) -> Events:
        """Refine ``events`` (rows of the catalogue) on the ephemerides; keep the ones inside ``volume`` there.

        Inside is also a fast approach within ``reach_km`` whose miss is at most so many sigmas of both errors. Without
        sigmas of the volume itself, that holds where one of the two is on an ephemeris.

        A slow approach keeps the TCA of the search, which the assessment refines.
        """
        time_ns = events.tca_time_ns
        for _ in range(_REFINEMENTS):
            (r1, v1), (r2, v2) = self._at(events.lo, time_ns), self._at(events.hi, time_ns)
            dr, dv = r2 - r1, v2 - v1
            step_s = -np.einsum("ni,ni->n", dr, dv) / np.einsum("ni,ni->n", dv, dv)
            step_s[events.relative_speed_km_s < SLOWEST_EVENT_KM_S] = 0.0
            time_ns = time_ns + np.rint(np.nan_to_num(step_s) * SECOND_NS).astype(np.int64)
        sides = self._at(events.lo, time_ns), self._at(events.hi, time_ns)
        (r1, v1), (r2, v2) = sides
        miss_km, speed_km_s = np.linalg.norm(r2 - r1, axis=1), np.linalg.norm(v2 - v1, axis=1)
        moved = Events(events.lo, events.hi, time_ns, miss_km, speed_km_s)
        is_inside = self._is_inside(moved, sides, volume)
        far = np.flatnonzero(~is_inside & (miss_km <= reach_km) & (speed_km_s >= SLOWEST_EVENT_KM_S))
        if not volume.sigmas:
            sources = [self._covering(rows[far], time_ns[far]) for rows in (moved.lo, moved.hi)]
            far = far[(sources[0] != NONE) | (sources[1] != NONE)]
        if sigmas and len(far):
            covariance = sum(self._covariance(rows[far], time_ns[far]) for rows in (moved.lo, moved.hi))
            plane = encounter_plane(r2[far] - r1[far], v2[far] - v1[far], np.asarray(covariance))
            is_inside[far] = plane.mahalanobis_distance <= sigmas
        return moved.take(is_inside)

    def _is_inside(self, events: Events, sides: tuple[Side, Side], volume: Volume) -> npt.NDArray[np.bool_]:
        is_inside = np.asarray(events.miss_distance_km <= volume.circumscribed_km)
        if volume.shape != "sphere":
            for one, other in (sides, sides[::-1]):
                stay_s = volume.time_inside_s(*rotating_frame_states(*one, *other))
                is_inside &= (stay_s > 0) | (events.relative_speed_km_s < SLOWEST_EVENT_KM_S)
        return is_inside

    def _covering(self, rows: IntArray, time_ns: IntArray) -> IntArray:
        return self.ephemerides.covering(self.catalogue.norad_id[rows], time_ns)

    def _covariance(self, rows: IntArray, time_ns: IntArray) -> FloatArray:
        """Return covariances (n, 3, 3) of the positions: of the ephemeris that covers the time, else of the element
        set.
        """
        propagator = self.catalogue.propagator
        _, r, v = propagator.at(rows, time_ns)
        modelled = rtn_to_teme(element_covariance_rtn(propagator, rows, time_ns, r, v), r, v)
        stated = self.ephemerides.at(self._covering(rows, time_ns), time_ns)[1]
        is_stated = np.all(np.isfinite(stated), axis=(1, 2), keepdims=True)
        return np.asarray(np.where(is_stated, stated, modelled)[:, :3, :3])

    def _at(self, rows: IntArray, time_ns: IntArray) -> Side:
        """Return positions and velocities (n, 3): by the ephemeris that covers the time, else by the row of the
        catalogue.
        """
        _, r, v = self.catalogue.propagator.at(rows, time_ns)
        stated = self.ephemerides.at(self._covering(rows, time_ns), time_ns)[0]
        is_stated = np.all(np.isfinite(stated), axis=1, keepdims=True)
        return np.where(is_stated, stated[:, :3], r), np.where(is_stated, stated[:, 3:], v)


def _paths(ephemerides: OperatorEphemerides, norad_id: int) -> Iterator[PathSets | None]:
    """Sets for each stretch in which one ephemeris of the object is the newest that covers it, by time."""
    spans = {
        number: (ephemerides.ephemerides[number].usable_from_ns, ephemerides.ephemerides[number].usable_until_ns + 1)
        for number in np.flatnonzero(ephemerides.norad_id == norad_id).tolist()
    }
    edges = np.array(sorted({edge for span in spans.values() for edge in span}), np.int64)
    newest = ephemerides.covering(np.full(len(edges) - 1, norad_id), edges[:-1]).tolist()
    kept = [n for n, number in enumerate(newest) if not n or number != newest[n - 1]]
    borders = [*edges[kept].tolist(), int(edges[-1])]
    for number, (begin_ns, end_ns) in zip([newest[n] for n in kept], pairwise(borders), strict=True):
        if number != NONE and end_ns - begin_ns > SECOND_NS:
            yield sets_through(ephemerides.ephemerides[number], begin_ns, end_ns)


def _with_paths(catalogue: Catalogue, stated: dict[int, list[PathSets]]) -> Catalogue:
    """Return the catalogue with these sets in force; the object's own ones fill the time before, between and after."""
    count = len(catalogue)
    terms = catalogue.terms or Terms(np.arange(count), np.full(count, ALWAYS_NS), np.full(count, FOREVER_NS))
    own = np.flatnonzero(~np.isin(catalogue.norad_id, list(stated)))
    # The row whose name and error scale count, and when each is in force; the rows of `elements` in this order.
    rows, begins, ends, parts = [own], [terms.from_ns[own]], [terms.until_ns[own]], [_taken(catalogue, own)]
    for norad_id, paths in stated.items():
        for row in catalogue.positions([norad_id]).tolist():
            for begin_ns, end_ns in _left(int(terms.from_ns[row]), int(terms.until_ns[row]), paths):
                rows.append(np.array([row]))
                begins.append(np.array([begin_ns]))
                ends.append(np.array([end_ns]))
                parts.append(_taken(catalogue, rows[-1]))
        first = catalogue.positions([norad_id])[:1]
        for path in paths:
            rows.append(np.repeat(first, len(path.elements)))
            begins.append(path.from_ns)
            ends.append(path.until_ns)
            parts.append(replace(path.elements, norad_id=np.full(len(path.elements), norad_id)))
    elements, row = ElementSets.stack(parts), np.concatenate(rows)
    from_ns, until_ns = np.concatenate(begins), np.concatenate(ends)
    order = np.lexsort((from_ns, elements.norad_id))
    row = row[order]
    known = catalogue.propagator
    propagator = Propagator(elements.take(order), known.error_scale[row], known.history_differences[row])
    names = tuple(catalogue.object_names[each] for each in row.tolist())
    terms = Terms(np.arange(len(row)), from_ns[order], until_ns[order])
    # Two objects with paths of their own are as far apart as these say.
    docked = frozenset(pair for pair in catalogue.docked if not stated.keys() >= set(pair))
    return Catalogue(propagator, names, terms, docked)


def _taken(catalogue: Catalogue, rows: IntArray) -> ElementSets:
    return catalogue.propagator.elements.take(rows)


def _left(begin_ns: int, end_ns: int, paths: list[PathSets]) -> list[tuple[int, int]]:
    """Return what of [begin, end) no path covers."""
    left = []
    for path in paths:
        until_ns = min(end_ns, int(path.from_ns[0]))
        if until_ns > begin_ns:
            left.append((begin_ns, until_ns))
        begin_ns = max(begin_ns, int(path.until_ns[-1]))
    return [*left, *([(begin_ns, end_ns)] if end_ns > begin_ns else [])]

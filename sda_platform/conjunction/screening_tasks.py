"""The tasks of a screening: a span of time and a group of objects each, a pure call of `screening.search`.

A worker of Spark imports this module for a task. It therefore imports neither Dagster nor the tables; the paths of
ephemerides come with it only where objects have one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sda_platform.arrays import IntArray
from sda_platform.conjunction.identity import SLOW_SLOT_NS, slots_ns
from sda_platform.orbits.object_pairs import ObjectPairs, are_among
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.search import CoLocated, Events, Failures
from sda_platform.orbits.screening.spans_of_terms import screen_span
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.spark.priority import give_way

if TYPE_CHECKING:
    from sda_platform.conjunction.stated_paths import StatedPaths

EVENT, TOGETHER, REFUSED = "event", "together", "refused"
# What a task finds: an event with all columns but the last (`slot_ns` serves its identity); a pair that moves together,
# with the first time that shows it; an object that SGP4 refuses, with the first time and the reason.
FOUND = {
    "kind": "string",
    "norad_id_1": "bigint",
    "norad_id_2": "bigint",
    "tca_time_ns": "bigint",
    "miss_distance_km": "double",
    "relative_speed_km_s": "double",
    "slot_ns": "bigint",
    "elements_epoch_1_ns": "bigint",
    "elements_epoch_2_ns": "bigint",
    "reason": "string",
}
_ARROW = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
_SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in FOUND.items()])


@dataclass(frozen=True)
class Sweep:
    """Rows of the catalogue to be screened against each other, in the volume of the primaries.

    All rows of an object are in one sweep, so that its sets in succession are judged together. With a ``margin_km``
    objects with an ephemeris are among them: the search is widened by it, and what is found is moved to their paths.
    """

    primaries: IntArray
    secondaries: IntArray
    volume: Volume
    margin_km: float = 0.0
    sigmas: float = 0.0
    """With sigmas, and a margin, approaches within ``reach_km`` count whose miss is at most so many sigmas."""
    reach_km: float = 0.0

    @property
    def searched(self) -> Volume:
        """Return the volume of the search, before approaches are refined on the ephemerides."""
        if not self.sigmas:
            return self.volume.widened(self.margin_km)
        return Volume.sphere(max(self.volume.circumscribed_km, self.reach_km) + self.margin_km)


def searcher(
    paths: StatedPaths, fleet: IntArray, work: list[Sweep], *, fleet_internal: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that carries out the tasks (sweep, start_ns, end_ns) of its batches."""
    propagator, terms = paths.catalogue.propagator, paths.catalogue.terms
    # Tasks are sent without the names, and without paths that none of them needs.
    nameless = replace(paths, catalogue=replace(paths.catalogue, object_names=()))
    docked = paths.catalogue.docked
    moved_to = nameless if any(sweep.margin_km for sweep in work) else None

    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_way()
        for batch in batches:
            for task in batch.to_pylist():
                sweep = work[task["sweep"]]
                span = task["start_ns"], task["end_ns"]
                rows = sweep.primaries, sweep.secondaries
                if terms is None:
                    found = screen_volume(propagator, *rows, *span, sweep.searched)
                else:
                    found = screen_span(propagator, terms, *rows, *span, sweep.searched)
                events = found.events
                if moved_to is not None and sweep.margin_km:
                    events = moved_to.refined(events, sweep.volume, sweep.sigmas, sweep.reach_km)
                events, joined = _parted(propagator, events, docked)
                table = _rows(propagator, fleet, events, fleet_internal=fleet_internal)
                together = _pairs(propagator, found.colocated), _pairs(propagator, joined)
                for part in (table, *together, _refusals(propagator, found.failures)):
                    yield from part.to_batches()

    return search


def _parted(propagator: Propagator, events: Events, docked: ObjectPairs) -> tuple[Events, CoLocated]:
    """Events, and pairs that are no event: they are docked, however far their states are apart."""
    norad_id = propagator.elements.norad_id
    is_docked = are_among(docked, norad_id[events.lo], norad_id[events.hi])
    joined = events.take(is_docked)
    return events.take(~is_docked), CoLocated(joined.lo, joined.hi, joined.tca_time_ns)


def _rows(propagator: Propagator, fleet: IntArray, events: Events, *, fleet_internal: bool) -> pa.Table:
    elements = propagator.elements
    protected_lo, protected_hi = (np.isin(elements.norad_id[index], fleet) for index in (events.lo, events.hi))
    wanted = np.flatnonzero(fleet_internal | ~(protected_lo & protected_hi))
    # The protected object comes first; of two alike, the lower catalogue number.
    swap = (protected_hi & ~protected_lo)[wanted]
    lo, hi, tca_ns = events.lo[wanted], events.hi[wanted], events.tca_time_ns[wanted]
    first, second = np.where(swap, hi, lo), np.where(swap, lo, hi)
    ids = [elements.norad_id[first], elements.norad_id[second]]
    return _table(
        EVENT,
        len(wanted),
        norad_id_1=ids[0],
        norad_id_2=ids[1],
        tca_time_ns=tca_ns,
        miss_distance_km=events.miss_distance_km[wanted],
        relative_speed_km_s=events.relative_speed_km_s[wanted],
        # New sets move the TCA of a slow approach by minutes to hours.
        slot_ns=np.where(
            events.relative_speed_km_s[wanted] < SLOWEST_EVENT_KM_S,
            SLOW_SLOT_NS,
            slots_ns(elements.take(first), elements.take(second)),
        ),
        elements_epoch_1_ns=elements.epoch_time_ns[first],
        elements_epoch_2_ns=elements.epoch_time_ns[second],
    )


def _pairs(propagator: Propagator, pairs: CoLocated) -> pa.Table:
    ids = propagator.elements.norad_id
    return _table(
        TOGETHER, len(pairs.lo), norad_id_1=ids[pairs.lo], norad_id_2=ids[pairs.hi], tca_time_ns=pairs.time_ns
    )


def _refusals(propagator: Propagator, failures: Failures) -> pa.Table:
    reasons = [SGP4_ERRORS.get(code, "unknown") for code in failures.error.tolist()]
    ids = propagator.elements.norad_id[failures.index]
    return _table(REFUSED, len(ids), norad_id_1=ids, tca_time_ns=failures.time_ns, reason=reasons)


def _table(kind: str, count: int, **columns: object) -> pa.Table:
    given = {"kind": [kind] * count, **columns}
    arrays = [pa.array(given[f.name], f.type) if f.name in given else pa.nulls(count, f.type) for f in _SCHEMA]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)

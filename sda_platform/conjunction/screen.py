"""Screening on Spark: spans of time and groups of objects are the tasks, each a pure call of `screening.search`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import dagster as dg
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sda_platform.conjunction.identity import SLOW_SLOT_NS, slots_ns
from sda_platform.conjunction.stated_paths import StatedPaths, widened
from sda_platform.orbits.elements import IntArray
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.search import CoLocated, Events, Failures, spans
from sda_platform.orbits.screening.spans_of_terms import screen_span
from sda_platform.orbits.screening.volume_search import screen_volume
from sda_platform.orbits.screening.volumes import Volume, Volumes, by_volume
from sda_platform.orchestration.table_asset import markdown_table
from sda_platform.spark.priority import give_way

Scope = Literal["fleet", "all"]

EVENT, TOGETHER, REFUSED = "event", "together", "refused"
# What a task finds: an event with all columns but the last (`slot_ns` serves its identity); a pair that moves together,
# with the first time that shows it; an object that SGP4 refuses, with the first time and the reason.
_FOUND = {
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
_SCHEMA = pa.schema([(name, _ARROW[kind]) for name, kind in _FOUND.items()])


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
        """Where approaches are searched, before they are moved to the paths."""
        if not self.sigmas:
            return widened(self.volume, self.margin_km)
        return Volume.sphere(max(self.volume.circumscribed_km, self.reach_km) + self.margin_km)


def sweeps(
    paths: StatedPaths,
    fleet: npt.ArrayLike,
    changed: frozenset[int] | None,
    *,
    scope: Scope,
    volumes: Volumes,
    objects_per_task: int,
    manoeuvre_sigmas: float = 0.0,
    reach_km: float = 0.0,
) -> list[Sweep]:
    """What to screen: the fleet and all objects with an ephemeris, or everything, against everything; where only some
    objects ``changed``, just the pairs with one of them. Cut by the regimes of ``volumes``, and into tasks of so many
    primaries.

    Objects suspected of a manoeuvre are screened against the fleet and objects with an ephemeris. Such a pair also
    counts where its miss, within ``reach_km``, is at most ``manoeuvre_sigmas``."""
    catalogue, by_regime = paths.catalogue, not isinstance(volumes, Volume)
    everything = np.arange(len(catalogue))
    suspected = catalogue.positions(sorted(paths.manoeuvred))
    stated = catalogue.positions(list(paths.margins_km))
    plain = np.setdiff1d(everything, stated)
    members = catalogue.positions(fleet)
    centres = np.setdiff1d(members, stated) if scope == "fleet" else plain
    moved = everything if changed is None else catalogue.positions(sorted(changed))
    sigmas = volumes.sigmas if isinstance(volumes, Volume) else 0.0
    usual = (sigmas, volumes.reach_km if isinstance(volumes, Volume) else 0.0)
    wider = (max(manoeuvre_sigmas, sigmas), reach_km)
    watched = np.union1d(members, np.setdiff1d(stated, suspected))
    unwatched = np.setdiff1d(everything, watched)
    parts = [(centres, plain, 0.0, (0.0, 0.0))]
    for margin_km in sorted(set(paths.margins_km.values())):
        group = catalogue.positions([number for number, each in paths.margins_km.items() if each == margin_km])
        ours, group = np.intersect1d(group, suspected), np.setdiff1d(group, suspected)
        parts.append((group, np.setdiff1d(everything, suspected), margin_km, usual))
        if by_regime:  # in the volume of the other one as well
            parts.append((centres, group, margin_km, usual))
        # A suspicion alone does not make an object one of the fleet.
        own, other = np.intersect1d(ours, members), np.setdiff1d(ours, members)
        pairs = [(watched, ours, wider), (own, unwatched, wider)]
        for first, second, further in [*pairs, *([(other, unwatched, usual)] if scope == "all" else [])]:
            parts.append((first, second, margin_km, further))
            if by_regime:
                parts.append((second, first, margin_km, further))
    return [
        Sweep(primaries, secondaries, volume, margin_km, *further)
        for first, second, margin_km, further in parts
        if len(first) and len(second)
        for part, secondaries in _pairs_with(changed is not None, moved, first, second, by_regime=by_regime)
        if len(secondaries)
        for volume, chosen in by_volume(catalogue.propagator.elements.take(catalogue.first_rows(part)), volumes)
        for primaries in _cut(catalogue.norad_id, part[chosen], objects_per_task)
    ]


def _pairs_with(
    is_part: bool, moved: IntArray, first: IntArray, second: IntArray, *, by_regime: bool
) -> list[tuple[IntArray, IntArray]]:
    """The pairs of ``first`` and ``second`` of which one is ``moved``, as lists of which each pairs with each.

    Where not just a part has moved, one pair of lists holds all of them. So it is where the two are equal, unless the
    volume is that of the first one's regime.
    """
    one = (first, np.intersect1d(second, moved))
    needs_both = is_part and (by_regime or not np.array_equal(first, second))
    return [one, (np.intersect1d(first, moved), second)] if needs_both else [one]


def _cut(norad_id: IntArray, rows: IntArray, objects_per_task: int) -> list[IntArray]:
    """``rows`` in parts of so many objects."""
    _, first = np.unique(norad_id[rows], return_index=True)
    return np.split(rows, first[objects_per_task::objects_per_task]) if len(rows) else []


def findings(
    session: SparkSession,
    paths: StatedPaths,
    work: list[Sweep],
    fleet: npt.ArrayLike,
    *,
    start_ns: int,
    end_ns: int,
    fleet_internal: bool,
    at_once: int,
) -> DataFrame:
    """Everything that screening ``work`` over [start, end) finds, each finding once, in the columns of `_FOUND`.

    Uses at most ``at_once`` tasks of Spark. The engine has as many more slots, which stay free for the alerts pool.
    """
    tasks = [(number, *span) for number in range(len(work)) for span in spans(start_ns, end_ns)]
    frame = session.createDataFrame(tasks, "sweep bigint, start_ns bigint, end_ns bigint")
    search = searcher(paths, np.asarray(fleet, dtype=np.int64), work, fleet_internal=fleet_internal)
    types = ", ".join(f"{name} {kind}" for name, kind in _FOUND.items())
    found = frame.repartition(max(1, min(len(tasks), at_once))).mapInArrow(search, types)
    # Each time span reports a co-located pair or a refused object once; the earliest report is kept.
    when = F.when(F.col("kind") == EVENT, F.col("tca_time_ns"))
    first = F.min_by(F.struct(*_FOUND), "tca_time_ns").alias("found")
    return found.groupBy("kind", "norad_id_1", "norad_id_2", when).agg(first).select("found.*")


def approaches(found: DataFrame) -> DataFrame:
    """The events among ``found``: an approach a row."""
    return found.where(F.col("kind") == EVENT).drop("kind", "reason")


def further_results(found: DataFrame) -> dict[str, Any]:
    """Further results of a screening: co-located pairs, and objects that SGP4 refuses."""
    rows = found.where(F.col("kind") != EVENT).select("kind", "norad_id_1", "norad_id_2", "tca_time_ns", "reason")
    ordered = (
        rows.orderBy("kind", "norad_id_1", "norad_id_2").toArrow().rename_columns({"tca_time_ns": "first_time_ns"})
    )
    facts: dict[str, Any] = {}
    for kind, name in ((TOGETHER, "pairs_moving_together"), (REFUSED, "refused_by_sgp4")):
        chosen = ordered.filter(pc.equal(ordered.column("kind"), kind)).drop_columns("kind")
        facts[name] = chosen.num_rows
        if chosen.num_rows:
            facts[f"{name}_preview"] = dg.MetadataValue.md(markdown_table(chosen))
    return facts


def searcher(
    paths: StatedPaths, fleet: IntArray, work: list[Sweep], *, fleet_internal: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that carries out the tasks (sweep, start_ns, end_ns) of its batches."""
    # Tasks are sent without the names.
    paths = replace(paths, catalogue=replace(paths.catalogue, object_names=()))
    propagator, terms = paths.catalogue.propagator, paths.catalogue.terms

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
                if sweep.margin_km:
                    events = paths.refined(events, sweep.volume, sweep.sigmas, sweep.reach_km)
                table = _rows(propagator, fleet, events, fleet_internal=fleet_internal)
                for part in (table, _pairs(propagator, found.colocated), _refusals(propagator, found.failures)):
                    yield from part.to_batches()

    return search


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

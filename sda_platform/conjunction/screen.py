"""Screening on Spark: spans of time and groups of objects are the tasks, each a pure call of `screening.search`."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sda_platform.arrays import IntArray
from sda_platform.conjunction.screening_tasks import EVENT, FOUND, REFUSED, TOGETHER, Sweep, searcher
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.orbits.screening.search import spans
from sda_platform.orbits.screening.volumes import Volume, Volumes, by_volume
from sda_platform.orchestration.materialization import in_ui, markdown_table

Scope = Literal["fleet", "all"]


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
    """Return what to screen: the fleet and all objects with an ephemeris, or everything, against everything; where only
    some objects ``changed``, just the pairs with one of them. Cut by the regimes of ``volumes``, and into tasks of so
    many primaries.

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
    """Return the pairs of ``first`` and ``second`` of which one is ``moved``, as lists of which each pairs with each.

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
    """Everything that screening ``work`` over [start, end) finds, each finding once, in the columns of `FOUND`.

    Uses at most ``at_once`` tasks of Spark. The engine has as many more slots, which stay free for the alerts pool.
    """
    tasks = [(number, *span) for number in range(len(work)) for span in spans(start_ns, end_ns)]
    frame = session.createDataFrame(tasks, "sweep bigint, start_ns bigint, end_ns bigint")
    search = searcher(paths, np.asarray(fleet, dtype=np.int64), work, fleet_internal=fleet_internal)
    types = ", ".join(f"{name} {kind}" for name, kind in FOUND.items())
    found = frame.repartition(max(1, min(len(tasks), at_once))).mapInArrow(search, types)
    # Each time span reports a co-located pair or a refused object once; the earliest report is kept.
    when = F.when(F.col("kind") == EVENT, F.col("tca_time_ns"))
    first = F.min_by(F.struct(*FOUND), "tca_time_ns").alias("found")
    return found.groupBy("kind", "norad_id_1", "norad_id_2", when).agg(first).select("found.*")


def approaches(found: DataFrame) -> DataFrame:
    """Return the events among ``found``: an approach a row."""
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
            facts[f"{name}_preview"] = in_ui(markdown_table(chosen))
    return facts

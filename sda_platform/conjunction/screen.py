"""Screening a protected fleet on Spark: spans of time are the tasks, each a pure call of `orbits.screening`."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening import Events, screen, spans

_EVENTS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:conjunction-event:1")

APPROACH_SCHEMA = pa.schema(
    [
        ("first_event_id", pa.string()),
        ("norad_id_1", pa.int64()),
        ("norad_id_2", pa.int64()),
        ("tca_time_ns", pa.int64()),
        ("miss_distance_km", pa.float64()),
        ("relative_speed_km_s", pa.float64()),
        ("elements_epoch_1_ns", pa.int64()),
        ("elements_epoch_2_ns", pa.int64()),
    ]
)
_APPROACH_TYPES = (
    "first_event_id string, norad_id_1 bigint, norad_id_2 bigint, tca_time_ns bigint, miss_distance_km double, "
    "relative_speed_km_s double, elements_epoch_1_ns bigint, elements_epoch_2_ns bigint"
)


@dataclass(frozen=True)
class Sweep:
    """Rows of the catalogue to be screened against each other."""

    primaries: npt.NDArray[np.int64]
    secondaries: npt.NDArray[np.int64]


def sweeps(catalogue: Catalogue, fleet: npt.ArrayLike, changed: frozenset[int] | None) -> list[Sweep]:
    """What to screen: the fleet against all; where only some objects ``changed``, just the pairs with one of them."""
    protected, everything = catalogue.positions(fleet), np.arange(len(catalogue))
    if changed is None:
        return [Sweep(protected, everything)]
    moved = catalogue.positions(sorted(changed))
    parts = [Sweep(protected, moved), Sweep(np.intersect1d(protected, moved), everything)]
    return [part for part in parts if len(part.primaries) and len(part.secondaries)]


def approaches(
    session: SparkSession,
    catalogue: Catalogue,
    fleet: npt.ArrayLike,
    work: list[Sweep],
    *,
    start_ns: int,
    end_ns: int,
    threshold_km: float,
) -> DataFrame:
    """Every approach of a protected object within [start, end), once, in the columns of APPROACH_SCHEMA."""
    parts = spans(start_ns, end_ns)
    tasks = session.createDataFrame(parts, "start_ns bigint, end_ns bigint").repartition(len(parts), "start_ns")
    search = span_searcher(catalogue.propagator, np.asarray(fleet, dtype=np.int64), work, threshold_km)
    found = tasks.mapInArrow(search, _APPROACH_TYPES)
    return found.dropDuplicates(["norad_id_1", "norad_id_2", "tca_time_ns"])


def span_searcher(
    propagator: Propagator, fleet: npt.NDArray[np.int64], work: list[Sweep], threshold_km: float
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that screens the spans of its batches."""

    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for span in batch.to_pylist():
                for sweep in work:
                    found = screen(
                        propagator, sweep.primaries, sweep.secondaries, span["start_ns"], span["end_ns"], threshold_km
                    )
                    yield from _rows(propagator, fleet, found.events).to_batches()

    return search


def _rows(propagator: Propagator, fleet: npt.NDArray[np.int64], events: Events) -> pa.Table:
    elements = propagator.elements
    # The protected object comes first; of two protected ones, the lower catalogue number.
    swap = ~np.isin(elements.norad_id[events.lo], fleet)
    first, second = np.where(swap, events.hi, events.lo), np.where(swap, events.lo, events.hi)
    ids = [elements.norad_id[first], elements.norad_id[second]]
    seconds = events.tca_time_ns // NANOSECONDS_PER_SECOND
    names = [f"{a}/{b}/{s}" for a, b, s in zip(ids[0].tolist(), ids[1].tolist(), seconds.tolist(), strict=True)]
    columns = [
        pa.array([str(uuid.uuid5(_EVENTS, name)) for name in names], pa.string()),
        *ids,
        events.tca_time_ns,
        events.miss_distance_km,
        events.relative_speed_km_s,
        elements.epoch_time_ns[first],
        elements.epoch_time_ns[second],
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=APPROACH_SCHEMA)

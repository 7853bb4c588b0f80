"""Pass windows on Spark: groups of objects are the tasks, each a pure call of `orbits.sensing.passes`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sda_platform.lake.correction_log import fact_schema, fact_types
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.passes import find_passes
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.spark.priority import give_way
from sda_platform.tasking.tables import PASS_WINDOWS
from sda_platform.units import HOUR_NS

OBJECTS_PER_TASK: Final = 256

_NAMESPACE: Final = uuid.UUID("0d9df5f4-7c9f-5d5e-8f57-2b8de3f6b6c1")
_MS_NS: Final = 1_000_000


def span(as_of_ns: int, horizon_h: float) -> tuple[int, int]:
    """Return the hours to search from ``as_of_ns``: aligned, so that an unchanged pass keeps its instants from run to
    run.

    It begins an hour early: a pass that is under way is found whole.
    """
    start_ns = (as_of_ns // HOUR_NS - 1) * HOUR_NS
    return start_ns, start_ns + round((horizon_h + 1) * HOUR_NS)


def found_windows(
    session: SparkSession,
    propagator: Propagator,
    sensors: Sequence[Sensor],
    start_ns: int,
    end_ns: int,
    *,
    least_s: float,
    at_once: int,
) -> DataFrame:
    """Every pass window of the propagator's objects over [start, end], in the content columns of `pass_windows`."""
    tasks = [(first,) for first in range(0, len(propagator), OBJECTS_PER_TASK)]
    frame = session.createDataFrame(tasks, "first bigint")
    search = searcher(propagator, sensors, start_ns, end_ns, least_s=least_s)
    return frame.repartition(max(1, min(len(tasks), at_once))).mapInArrow(search, fact_types(PASS_WINDOWS))


def searcher(
    propagator: Propagator, sensors: Sequence[Sensor], start_ns: int, end_ns: int, *, least_s: float
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that searches the windows of the objects from row ``first`` of each row of its batches."""
    schema = fact_schema(PASS_WINDOWS)

    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_way()
        for batch in batches:
            for first in batch.column("first").to_pylist():
                rows = np.arange(first, min(first + OBJECTS_PER_TASK, len(propagator)))
                yield from _rows(propagator.take(rows), sensors, start_ns, end_ns, least_s, schema).to_batches()

    return search


def _rows(
    propagator: Propagator, sensors: Sequence[Sensor], start_ns: int, end_ns: int, least_s: float, schema: pa.Schema
) -> pa.Table:
    found = find_passes(propagator, sensors, start_ns, end_ns, least_s=least_s)
    elements = propagator.elements
    norad_id = elements.norad_id[found.index]
    source_id = [sensors[number].source_id for number in found.sensor.tolist()]
    aos_ns, tca_ns, los_ns = (_to_ms(column) for column in (found.aos_ns, found.tca_ns, found.los_ns))
    keys = zip(norad_id.tolist(), source_id, aos_ns.tolist(), los_ns.tolist(), strict=True)
    columns = {
        "pass_id": [str(uuid.uuid5(_NAMESPACE, "|".join(map(str, key)))) for key in keys],
        "norad_id": norad_id,
        "source_id": source_id,
        "aos_time_ns": aos_ns,
        "tca_time_ns": tca_ns,
        "los_time_ns": los_ns,
        "max_elevation_deg": np.round(np.degrees(found.max_elevation_rad), 2),
        "azimuth_aos_deg": np.round(np.degrees(found.azimuth_aos_rad), 1),
        "azimuth_tca_deg": np.round(np.degrees(found.azimuth_tca_rad), 1),
        "azimuth_los_deg": np.round(np.degrees(found.azimuth_los_rad), 1),
        "range_tca_km": np.round(found.range_tca_km, 1),
        "elements_epoch_ns": elements.epoch_time_ns[found.index],
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema})


def _to_ms(time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rounded to a millisecond: two searches of one pass differ by some nanoseconds, and give one window."""
    return np.asarray((time_ns + _MS_NS // 2) // _MS_NS * _MS_NS)

"""Rows of `pass_windows`: an unchanged pass is the same row in every search."""

import numpy as np
import pyarrow as pa

from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.tasking.windows import searcher, span
from sda_platform.units import HOUR_NS
from sda_platform_tests.support.reference_elements import reference_elements
from sda_platform_tests.support.segments import START_NS


def rows(as_of_ns: int) -> pa.Table:
    propagator = Propagator(reference_elements(every=900))
    search = searcher(propagator, sensor_registry().of_kind("radar"), *span(as_of_ns, 24.0), least_s=20.0)
    return pa.Table.from_batches(search([pa.RecordBatch.from_pydict({"first": np.array([0])})]))


def test_a_search_an_hour_later_finds_the_same_windows() -> None:
    now, later = rows(START_NS), rows(START_NS + HOUR_NS + 7)
    begin, end = START_NS + HOUR_NS, START_NS + 23 * HOUR_NS

    def inside(found: pa.Table) -> list[dict[str, object]]:
        both = zip(found.to_pylist(), found["aos_time_ns"].to_pylist(), found["los_time_ns"].to_pylist(), strict=True)
        return [row for row, aos_ns, los_ns in both if begin < aos_ns and los_ns < end]

    assert len(inside(now)) > 200
    assert inside(later) == inside(now)


def test_a_window_has_one_id_and_its_instants_are_whole_milliseconds() -> None:
    found = rows(START_NS)
    ids = found["pass_id"].to_pylist()
    assert len(set(ids)) == len(ids) > 0
    for name in ("aos_time_ns", "tca_time_ns", "los_time_ns"):
        assert (found[name].to_numpy() % 1_000_000 == 0).all()

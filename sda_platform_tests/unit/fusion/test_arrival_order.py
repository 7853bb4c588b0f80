"""Ten bounded shuffles of one input end in the same bytes; what is displaced further is counted (DP3-Q1, G2, E11)."""

from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sda_platform.fusion.assets import windows_to_fit
from sda_platform.fusion.fuse import TRACK_SCHEMA, window_fuser
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import arrivals
from sda_platform.fusion.watermarks import PIPELINE, advance, first_open_window
from sda_platform_tests.unit.fusion.windows import WINDOW_NS, observed_windows, some_catalogue
from sda_platform_tests.unit.orbits.scenes import SECOND_NS

FUSION = FusionResource(sources=["radar"])
# What the radars' lateness and the allowed lateness together forgive (E11).
FORGIVEN_NS = FUSION.lateness.bound_ns["radar"] + FUSION.lateness.allowed_ns
BATCHES = 6


@cache
def observations() -> pa.Table:
    """Ninety seconds of 8 objects, in order of event time."""
    rows = pa.concat_tables(observed_windows(objects=8, windows=3, readings=6))
    return rows.append_column("reprocess_count", pa.nulls(rows.num_rows, pa.int64())).sort_by("sensor_time_ns")


def arriving(displacement_ns: int, seed: int) -> pa.Table:
    """The observations in an order of reception that is off by as much as ``displacement_ns``."""
    rows = observations()
    delay_ns = np.random.default_rng(seed).integers(0, displacement_ns, rows.num_rows) if displacement_ns else 0
    received = rows["sensor_time_ns"].to_numpy() + delay_ns
    return rows.append_column("received_time_ns", pa.array(received)).sort_by(
        [("received_time_ns", "ascending"), ("observation_id", "ascending")]
    )


def played(arriving: pa.Table) -> tuple[pa.Table, int, int]:
    """Standing fits after all batches, corrections on the way, and observations that came too late."""
    fuse = window_fuser(some_catalogue(), WINDOW_NS)
    marks: dict[str, int] = {}
    standing: dict[int, pa.Table] = {}
    corrections = late = 0
    none = arriving.slice(0, 0).select(["sensor_time_ns", "reprocess_count"])
    bounds = np.linspace(0, arriving.num_rows, BATCHES + 1).astype(int).tolist()
    for begin, end in pairwise(bounds):
        batch = arriving.slice(begin, end - begin)
        first_open_ns = first_open_window(marks.get(PIPELINE, 0), WINDOW_NS, FUSION.lateness)
        starts, too_late = windows_to_fit(batch, none, first_open_ns, WINDOW_NS)
        late += too_late
        known = arriving.slice(0, end)
        for start in starts:
            fitted = fuse(known.filter(pc.equal(known["window_start_ns"], start)))
            corrections += start in standing and not standing[start].equals(fitted)
            standing[start] = fitted
        as_of_ns = pc.max(batch["received_time_ns"]).as_py()
        marks = advance(marks, arrivals(batch), FUSION.lateness, as_of_ns)
    return pa.concat_tables([standing[start] for start in sorted(standing)]), corrections, late


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TRACK_SCHEMA) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


@pytest.mark.parametrize("seed", range(10))
def test_a_bounded_shuffle_changes_no_byte__DP3_Q1_G2_E11(seed: int) -> None:
    in_order, _, _ = played(arriving(0, 0))
    shuffled, corrections, late = played(arriving(FORGIVEN_NS, seed))
    assert late == 0
    assert corrections > 0, "windows were fitted before all of their data had come"
    assert as_bytes(shuffled) == as_bytes(in_order)


def test_what_is_displaced_further_than_forgiven_is_counted_and_in_no_track__DP3_Q4_E11() -> None:
    in_order, _, _ = played(arriving(0, 0))
    shuffled, _, late = played(arriving(60 * SECOND_NS, 1))
    assert late > 0
    used = [sum(map(len, rows["observation_ids"].to_pylist())) for rows in (in_order, shuffled)]
    assert 0 < used[0] - used[1] <= late

"""Ten bounded shuffles of one input end in the same bytes; what is displaced further is counted (DP3-Q1, G2, E11)."""

from dataclasses import dataclass, field
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
from sda_platform.fusion.time_bias import BIAS_SCHEMA, corrected_windows, corrections, estimated
from sda_platform.fusion.watermarks import PIPELINE, WINDOWS_IN_TERM, advance, first_open_window, term_of
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue
from sda_platform_tests.support.windows import WINDOW_NS, observed_windows, some_catalogue, watched_beacons

FUSION = FusionResource(sources=["radar"])
# What the radars' lateness and the allowed lateness together forgive (E11).
FORGIVEN_NS = FUSION.lateness.bound_ns["radar"] + FUSION.lateness.allowed_ns
BATCHES = 6
TERM_NS = WINDOWS_IN_TERM * WINDOW_NS
AHEAD_MS = 50.0


@cache
def observations() -> pa.Table:
    """Ninety seconds of 8 objects, in order of event time."""
    return _in_order(observed_windows(objects=8, windows=3, readings=6))


@cache
def stamped_ahead() -> pa.Table:
    """A window in each of four terms, of radars whose clocks are 50 ms ahead, and of satellites that tell their own."""
    return _in_order(watched_beacons(30, 4, AHEAD_MS, kind="radar", spacing=WINDOWS_IN_TERM))


def _in_order(windows: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(windows)
    numbered = rows.set_column(
        rows.column_names.index("observation_id"), "observation_id", pa.array([f"{n:05}" for n in range(rows.num_rows)])
    )
    return numbered.append_column("reprocess_count", pa.nulls(rows.num_rows, pa.int64())).sort_by("sensor_time_ns")


@cache
def watched_satellites() -> Propagator:
    """Their elements, and no others: a small catalogue."""
    names = {name for name in stamped_ahead()["source_id"].to_pylist() if name.startswith("isl-")}
    numbers = sorted(int(name[4:]) for name in names)
    return catalogue().take(np.flatnonzero(np.isin(catalogue().elements.norad_id, numbers)))


def arriving(rows: pa.Table, displacement_ns: int, seed: int) -> pa.Table:
    """The observations in an order of reception that is off by as much as ``displacement_ns``."""
    delay_ns = np.random.default_rng(seed).integers(0, displacement_ns, rows.num_rows) if displacement_ns else 0
    received = rows["sensor_time_ns"].to_numpy() + delay_ns
    return rows.append_column("received_time_ns", pa.array(received)).sort_by(
        [("received_time_ns", "ascending"), ("observation_id", "ascending")]
    )


@dataclass
class Played:
    """Commits of fused_tracks and of time_tag_biases in turns, and what is current after each."""

    propagator: Propagator
    marks: dict[str, int] = field(default_factory=dict)
    standing: dict[int, pa.Table] = field(default_factory=dict)
    clocks: pa.Table = field(default_factory=BIAS_SCHEMA.empty_table)
    read_clocks: int = 0
    terms_until_ns: int = term_of(START_NS, WINDOW_NS)
    corrections: int = 0
    late: int = 0

    @property
    def fits(self) -> pa.Table:
        return pa.concat_tables([self.standing[start] for start in sorted(self.standing)])

    def commit(self, known: pa.Table, batch: pa.Table) -> None:
        """The next commit: ``known`` are all observations so far, of which ``batch`` is new."""
        first_open_ns = first_open_window(self.marks.get(PIPELINE, 0), WINDOW_NS, FUSION.lateness)
        none = batch.slice(0, 0).select(["sensor_time_ns", "reprocess_count"])
        starts, too_late = windows_to_fit(batch, none, first_open_ns, WINDOW_NS)
        told = corrected_windows(self.clocks.slice(self.read_clocks), WINDOW_NS)
        self.read_clocks = self.clocks.num_rows
        fuse = window_fuser(self.propagator, WINDOW_NS, corrections(self.clocks))
        for start in sorted({*starts, *told}):
            rows = known.filter(pc.equal(known["window_start_ns"], start))
            if rows.num_rows:
                fitted = fuse(rows)
                self.corrections += start in self.standing and not self.standing[start].equals(fitted)
                self.standing[start] = fitted
        self.late += too_late
        if batch.num_rows:
            as_of_ns = pc.max(batch["received_time_ns"]).as_py()
            self.marks = advance(self.marks, arrivals(batch), FUSION.lateness, as_of_ns)
        self._tell_clocks(known, first_open_ns)

    def _tell_clocks(self, known: pa.Table, first_open_ns: int) -> None:
        while self.terms_until_ns + TERM_NS <= first_open_ns:
            start = self.terms_until_ns
            time_ns = known["sensor_time_ns"]
            of_term = pc.and_(pc.greater_equal(time_ns, start), pc.less(time_ns, start + TERM_NS))
            before = self.clocks.filter(pc.equal(self.clocks["term_start_ns"], start - TERM_NS))
            told = estimated(known.filter(of_term), before, self.propagator, start, WINDOW_NS, 0)
            self.clocks = pa.concat_tables([self.clocks, told])
            self.terms_until_ns += TERM_NS


def played(arriving: pa.Table, propagator: Propagator, batches: int = BATCHES) -> Played:
    """What is current after so many batches, and a last commit that brings nothing but what clocks tell."""
    play = Played(propagator)
    bounds = np.linspace(0, arriving.num_rows, batches + 1).astype(int).tolist()
    for begin, end in pairwise(bounds):
        play.commit(arriving.slice(0, end), arriving.slice(begin, end - begin))
    for _ in range(2):
        play.commit(arriving, arriving.slice(0, 0))
    return play


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TRACK_SCHEMA) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


@pytest.mark.parametrize("seed", range(10))
def test_a_bounded_shuffle_changes_no_byte__DP3_Q1_G2_E11(seed: int) -> None:
    in_order = played(arriving(observations(), 0, 0), some_catalogue())
    shuffled = played(arriving(observations(), FORGIVEN_NS, seed), some_catalogue())
    assert shuffled.late == 0
    assert shuffled.corrections > 0, "windows were fitted before all of their data had come"
    assert as_bytes(shuffled.fits) == as_bytes(in_order.fits)


@pytest.mark.parametrize("batches", [1, 2, 3, 4, 8])
def test_arrival_order_changes_nothing_where_biases_are_corrected__DP3_G2_I4(batches: int) -> None:
    in_order = played(arriving(stamped_ahead(), 0, 0), watched_satellites())
    shuffled = played(arriving(stamped_ahead(), FORGIVEN_NS, batches), watched_satellites(), batches)
    assert shuffled.late == 0
    assert min(corrections(shuffled.clocks)) == START_NS // TERM_NS * TERM_NS + 3 * TERM_NS, "two terms must say so"
    assert as_bytes(shuffled.fits) == as_bytes(in_order.fits)


def test_what_is_displaced_further_than_forgiven_is_counted_and_in_no_track__DP3_Q4_E11() -> None:
    in_order = played(arriving(observations(), 0, 0), some_catalogue())
    shuffled = played(arriving(observations(), 60 * SECOND_NS, 1), some_catalogue())
    assert shuffled.late > 0
    used = [sum(map(len, play.fits["observation_ids"].to_pylist())) for play in (in_order, shuffled)]
    assert 0 < used[0] - used[1] <= shuffled.late

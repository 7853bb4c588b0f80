"""A break-up into 1,800 pieces that nobody published: how many become orbits, how soon, and is any of them false?

    python benchmarks/fragmentation.py [--fragments 1800] [--seconds 95] [--radar-capacity 2000]

The simulation's own scenario: a rocket stage comes apart above a radar, which follows the pieces at 1 Hz. Its segments
are decoded as the platform does it; readings of the pieces become tracklets, orbits, links, and confirmed objects.
Which readings are theirs is taken from the truth: that association leaves them alone is `test_discovery.py`'s matter.
Times are processor times of one process.
"""

import argparse
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from contest import Gate
from rich.console import Console

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.discovery import PROVISIONAL_SCHEMA, READING_COLUMNS, discovered
from sda_platform.fusion.tracklets import tracklets
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.breakup import FIRST_FRAGMENT_ID, Breakup
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.world import simulate
from sda_platform_tests.segments import START_NS

WINDOW_NS = 30 * NANOSECONDS_PER_SECOND
console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Run, print, and fail where a gate is missed."""
    options = _options()
    readings, truth = _observed(options.fragments, options.seconds, options.radar_capacity)
    began = time.process_time()
    found = list(tracklets(readings))
    orbits_s = time.process_time() - began
    rows = discovered(found, PROVISIONAL_SCHEMA.empty_table(), [], WINDOW_NS, 0)
    linking_s = time.process_time() - began - orbits_s
    owner = dict(zip(truth["observation_id"].to_pylist(), truth["norad_id"].to_pylist(), strict=True))
    owners = [{owner[reading] for reading in row["observation_ids"]} for row in rows.to_pylist()]
    single = {next(iter(objects)) for objects in owners if len(objects) == 1}
    mixed = sum(len(objects) > 1 for objects in owners)
    error_m = _errors_m(rows, truth)
    console.print(
        f"{readings.num_rows:,} readings of {len(set(owner.values())):,} fragments: {len(found):,} orbits of tracklets "
        f"in {orbits_s:.0f} s; linked, fitted and confirmed in {linking_s:.0f} s"
    )
    console.print(
        f"{rows.num_rows:,} objects, {len(single):,} fragments found, {mixed} orbits of two fragments, "
        f"{rows.num_rows - mixed - len(single)} found twice; {np.median(error_m):.0f} m off at the median, "
        f"{np.percentile(error_m, 99):.0f} m at the 99th percentile"
    )
    gates = [
        Gate("share of the fragments found", len(single) / options.fragments, 0.99, at_least=True),
        Gate("share of orbits that mix two", mixed / max(rows.num_rows, 1), 0.002, at_least=False),
        Gate("s of processor time", orbits_s + linking_s, 120.0, at_least=False),
    ]
    for gate in gates:
        console.print(f"  {gate}")
    return 0 if all(gate.holds for gate in gates) else 1


def _observed(fragments: int, seconds: float, capacity: int) -> tuple[pa.Table, pa.Table]:
    """Radar readings of the pieces, each once, and the truth behind them."""
    breakup = Breakup(fragments=fragments, after_s=5.0, published_after_s=36_000.0)
    world = simulate(
        "fragmentation", start_time_ns=START_NS, duration_s=seconds, seed=7, objects=[], breakup=breakup,
        plan=ObservingPlan(radar_capacity=capacity),
    )  # fmt: skip
    segments = [segment for segment in world if segment.feed == "radar"]
    truth = pa.concat_tables([segment.truth for segment in segments])
    truth = truth.filter(pc.greater_equal(truth["norad_id"], FIRST_FRAGMENT_ID))
    truth = truth.filter(pc.equal(truth["fault"], "none"))
    rows = decode_segments([(segment.data, segment.meta) for segment in segments]).select(READING_COLUMNS)
    rows = rows.filter(pc.is_in(rows["observation_id"], truth["observation_id"].combine_chunks()))
    _, first = np.unique(rows["observation_id"].to_numpy(), return_index=True)
    return rows.take(pa.array(np.sort(first))), truth


def _errors_m(rows: pa.Table, truth: pa.Table) -> np.ndarray:
    """How far each orbit (n,) is from its first reading's true place."""
    place = {row["observation_id"]: row for row in truth.to_pylist()}
    of_first = [place[row["observation_ids"][0]] for row in rows.to_pylist()]
    when = np.array([row["true_time_ns"] for row in of_first])
    _, found, _ = Propagator(ElementSets.from_columns(arrays(rows))).at(np.arange(rows.num_rows), when)
    true = np.array([[row[name] for name in ("x_m", "y_m", "z_m")] for row in of_first])
    return np.asarray(np.linalg.norm(found * 1e3 - true, axis=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=1_800)
    parser.add_argument("--seconds", type=float, default=95.0, help="of observation; the break-up comes after five")
    parser.add_argument("--radar-capacity", type=int, default=2_000, help="tracks that a radar follows at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

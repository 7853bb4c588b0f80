"""A break-up into 1,800 pieces that no one published: how many become orbits, how soon, and is any of them false?

    python benchmarks/fragmentation.py [--fragments 1800] [--seconds 95] [--radar-capacity 2000] [--platform DIRECTORY]

The simulation's own scenario: a rocket stage comes apart above a radar, which follows the pieces at 1 Hz. Its segments
are decoded as the platform does it; observations of the pieces become tracklets, orbits, links, and confirmed objects.
Which observations are theirs is taken from the truth: that association leaves them alone is `--platform`'s matter,
which lands the same world in the zones of a whole platform (`platform_fragmentation.py`), with the real catalogue, and
runs its jobs until the pieces are numbered, catalogued and screened (four minutes: `--seconds 245`). Times are
processor times of one process, and of a job of the platform wall times.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from contest import Gate
from platform_fragmentation import console, platform_at, play, provisional, taken_in, tracked

from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.lake.arrow import arrays
from sda_platform.orbit_determination.tracklets import tracklets
from sda_platform.orbit_determination.uncorrelated_tracks import PROVISIONAL_SCHEMA, discovered
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.breakup import FIRST_FRAGMENT_ID, Breakup
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.segments import after

WINDOW_NS = 30 * SECOND_NS


def main() -> int:
    """Run, print, and fail where a gate is missed."""
    options = _options()
    world = _world(options.fragments, options.begin, options.seconds, options.radar_capacity)
    truth = pa.concat_tables([segment.truth for segment in world if segment.feed == "radar"])
    truth = truth.filter(pc.greater_equal(truth["norad_id"], FIRST_FRAGMENT_ID))
    truth = truth.filter(pc.equal(truth["fault"], "none"))
    if options.platform is not None:
        rows, gates = _through_the_platform(options.platform, world, options.begin + options.seconds, options.fragments)
    else:
        rows, gates = _by_themselves(world, truth)
    gates = [*_judged(rows, truth, options.fragments), *gates]
    for gate in gates:
        console.print(f"  {gate}")
    return 0 if all(gate.holds for gate in gates) else 1


def _by_themselves(world: list[SimulatedSegment], truth: pa.Table) -> tuple[pa.Table, list[Gate]]:
    """The objects found in the fragments' observations alone."""
    readings = _readings(world, truth)
    began = time.process_time()
    found = list(tracklets(readings))
    orbits_s = time.process_time() - began
    rows = discovered(found, PROVISIONAL_SCHEMA.empty_table(), [], frozenset(), WINDOW_NS, 0, CONSTANT_DYNAMICS)
    linking_s = time.process_time() - began - orbits_s
    console.print(
        f"{readings.num_rows:,} readings: {len(found):,} orbits of tracklets in {orbits_s:.0f} s; "
        f"linked, fitted and confirmed in {linking_s:.0f} s"
    )
    return rows, [Gate("s of processor time", orbits_s + linking_s, 120.0, at_least=False)]


def _through_the_platform(
    home: Path, world: list[SimulatedSegment], seconds: float, fragments: int
) -> tuple[pa.Table, list[Gate]]:
    """The objects that the platform numbered first, after it has processed the world."""
    with platform_at(home) as platform:
        play(platform, world, seconds)
        known = taken_in(platform)
        console.print(f"{tracked(platform):,} are tracked")
        shares = [Gate(f"share {what}", count / fragments, 0.99, at_least=True) for what, count in known.items()]
        return provisional(platform), shares


def _judged(rows: pa.Table, truth: pa.Table, fragments: int) -> list[Gate]:
    """Whether the objects are the fragments, each once."""
    owner = dict(zip(truth["observation_id"].to_pylist(), truth["norad_id"].to_pylist(), strict=True))
    owners = [{owner.get(reading) for reading in row["observation_ids"]} for row in rows.to_pylist()]
    single = {next(iter(objects)) for objects in owners if len(objects) == 1}
    mixed = sum(len(objects) > 1 for objects in owners)
    error_m = _errors_m(rows, truth)
    console.print(
        f"{rows.num_rows:,} objects, {len(single):,} fragments found, {mixed} orbits of two objects, "
        f"{rows.num_rows - mixed - len(single)} found twice; {np.median(error_m):.0f} m off at the median, "
        f"{np.percentile(error_m, 99):.0f} m at the 99th percentile"
    )
    return [
        Gate("share of the fragments found", len(single) / fragments, 0.99, at_least=True),
        Gate("share of orbits that mix two", mixed / max(rows.num_rows, 1), 0.002, at_least=False),
    ]


def _world(fragments: int, begin: float, seconds: float, capacity: int) -> list[SimulatedSegment]:
    """What radars and links send while the pieces fly."""
    breakup = Breakup(fragments=fragments, after_s=5.0, published_after_s=None)
    world = simulate(
        "fragmentation", start_time_ns=after(begin), duration_s=seconds, seed=7, breakup=breakup,
        objects=[member.norad_id for member in protected_fleet()], plan=ObservingPlan(radar_capacity=capacity),
    )  # fmt: skip
    return [segment for segment in world if segment.feed in ("radar", "isl")]


def _readings(world: list[SimulatedSegment], truth: pa.Table) -> pa.Table:
    """The radars' observations of the pieces, each once."""
    segments = [segment for segment in world if segment.feed == "radar"]
    rows = decode_segments([(segment.data, segment.meta) for segment in segments]).select(OBSERVATION_COLUMNS)
    rows = rows.filter(pc.is_in(rows["observation_id"], truth["observation_id"].combine_chunks()))
    _, first = np.unique(rows["observation_id"].to_numpy(), return_index=True)
    return rows.take(pa.array(np.sort(first)))


def _errors_m(rows: pa.Table, truth: pa.Table) -> np.ndarray:
    """How far each orbit (n,) is from its first reading's true place."""
    place = {row["observation_id"]: row for row in truth.to_pylist()}
    of_first = [place[next(o for o in row["observation_ids"] if o in place)] for row in rows.to_pylist()]
    when = np.array([row["true_time_ns"] for row in of_first])
    _, found, _ = Propagator(ElementSets.from_columns(arrays(rows))).at(np.arange(rows.num_rows), when)
    true = np.array([[row[name] for name in ("x_m", "y_m", "z_m")] for row in of_first])
    return np.asarray(np.linalg.norm(found * 1e3 - true, axis=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fragments", type=int, default=1_800)
    parser.add_argument("--begin", type=float, default=0.0, help="s into the day; at 85 three radars see the stage")
    parser.add_argument("--seconds", type=float, default=95.0, help="of observation; the break-up comes after five")
    parser.add_argument("--platform", type=Path, help="an empty directory for a whole platform to live through it")
    parser.add_argument("--radar-capacity", type=int, default=2_000, help="tracks that a radar follows at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

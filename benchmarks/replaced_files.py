"""What a commit of refined ephemerides stores: the files with a changed row, or the whole table.

    python benchmarks/replaced_files.py [--objects 260] [--interest 60] [--turns 40]

Tracked objects of the shipped catalogue have an ephemeris of a day each, as `refined_ephemerides` holds them. Turns
choose 20 of them, objects of interest first, and the oldest of the others make room beyond 200. Spark commits each turn
to two tables, one of which keeps the files without a changed row. Printed: bytes of the table, bytes that a commit
adds (that is what an old version takes until VACUUM), their ratio, and seconds for a commit.
"""

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import MissionClock
from sda_platform.fusion.tables import lower_triangles
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.ephemeris_refinement import EPHEMERIS_SCHEMA, without_room
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbit_determination.turns import TOGETHER_NS, Turn
from sda_platform.orbits.determination.track_ephemerides import ephemeris_of_orbit
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients, orbits_of_teme
from sda_platform.orbits.propagation import Propagator
from sda_platform.spark.engine import python_path
from sda_platform.spark.session import attach
from sda_platform_tests.support.third_party import START_NS, catalogue_table, propagator_of

AT_ONCE = 20
_DAYS_KEPT, _TURNS_A_DAY = 8, 86_400 * 10**9 // TOGETHER_NS
"""Data files are kept so long; a turn comes every ten minutes."""


def main() -> None:
    """Print the figures of both tables and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=260)
    parser.add_argument("--interest", type=int, default=60)
    parser.add_argument("--turns", type=int, default=40)
    given = parser.parse_args()
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONPATH=python_path())
    table = catalogue_table()
    chosen = np.random.default_rng(3).choice(table.num_rows, given.objects, replace=False)
    propagator = propagator_of(table.take(pa.array(np.sort(chosen))))
    rows = pa.Table.from_pylist(
        [row for number in range(len(propagator)) if (row := _row(propagator, number)) is not None], EPHEMERIS_SCHEMA
    )
    print(f"{rows.num_rows} objects, {rows.nbytes / rows.num_rows / 1e3:.0f} kB each in memory", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        session = attach("local", "benchmark", {"spark.sql.warehouse.dir": f"{directory}/warehouse"})
        added = {}
        for in_part in (False, True):
            kind = dataclasses.replace(REFINED_EPHEMERIDES, consumes=(), reads=(), keeps_other_files=in_part)
            lake = Lake(f"{directory}/{in_part}", MissionClock(START_NS, 0, 0.0), lambda: session, "run")
            lake.requires_lineage = False
            lake.reads_unverified = True
            name = "files with a changed row" if in_part else "the whole table"
            added[in_part], stored, seconds = _turns(lake, kind, rows, given.interest, given.turns)
            kept = added[in_part] * _TURNS_A_DAY * _DAYS_KEPT
            print(
                f"{name}: {stored / 1e6:.1f} MB stored; a commit adds {added[in_part] / 1e6:.2f} MB in {seconds:.2f} s "
                f"(median), {kept / 1e9:.1f} GB in {_DAYS_KEPT} days",
                flush=True,
            )
        print(f"ratio {added[False] / added[True]:.1f}")
        session.stop()


def _turns(lake: Lake, table: Table, rows: pa.Table, interest: int, turns: int) -> tuple[float, int, float]:
    """Mean bytes that a commit of the second half adds, bytes of the newest version, median seconds of a commit."""
    numbers = rows["norad_id"].to_numpy()
    first = numbers[np.random.default_rng(4).choice(len(numbers), interest, replace=False)].tolist()
    turn, known, added, seconds = Turn(), set[str](), list[int](), list[float]()
    for position in range(turns):
        segment = SegmentRef("turns", f"{position}.seg", "0" * 64, 1, 1)
        plan = lake.plan_landing(table, lake.head(table), [segment])
        held = lake.current_rows(plan).select(["norad_id", "epoch_time_ns"])
        now_ns = START_NS + position * TOGETHER_NS
        lately = held.filter(pc.greater(held["epoch_time_ns"], now_ns - 3 * TOGETHER_NS))["norad_id"]
        due = rows.select(["norad_id"]).filter(pc.invert(pc.is_in(rows["norad_id"], lately.combine_chunks())))
        chosen, turn = turn.next(due, first, AT_ONCE, now_ns)
        new = rows.filter(pc.is_in(rows["norad_id"], chosen["norad_id"].combine_chunks()))
        at = new.schema.get_field_index("epoch_time_ns")
        new = new.set_column(at, "epoch_time_ns", pa.array(np.full(new.num_rows, now_ns)))
        began = time.perf_counter()
        lake.replace(plan, new, removed=without_room(held, new, first))
        seconds.append(time.perf_counter() - began)
        files = dict(
            zip(*(lake.log(table).live_files()[name].to_pylist() for name in ("path", "size_bytes")), strict=True)
        )
        added.append(sum(size for path, size in files.items() if path not in known))
        known |= files.keys()
    return float(np.mean(added[turns // 2 :])), sum(files.values()), median(seconds)


def _row(propagator: Propagator, number: int) -> dict[str, object] | None:
    """The ephemeris of an object whose position is known to 20 m and its velocity to 2 cm/s."""
    epoch_ns = np.array([START_NS])
    error, r, v = propagator.at([number], epoch_ns)
    if error.any():
        return None
    coefficients, of_coefficients = first_coefficients(propagator.elements.bstar_per_earth_radius[[number]])
    covariance = np.zeros((1, 8, 8))
    covariance[:, :6, :6] = np.diag([4e-4] * 3 + [4e-10] * 3)
    covariance[:, 6:, 6:] = of_coefficients
    orbit = orbits_of_teme(epoch_ns, np.hstack([r, v]), coefficients, covariance)
    try:
        made = ephemeris_of_orbit(orbit, CONSTANT_DYNAMICS)
    except ValueError:
        return None
    return {
        **{name: 1 for name in EPHEMERIS_SCHEMA.names if pa.types.is_integer(EPHEMERIS_SCHEMA.field(name).type)},
        **{name: 1.0 for name in EPHEMERIS_SCHEMA.names if pa.types.is_floating(EPHEMERIS_SCHEMA.field(name).type)},
        "norad_id": int(propagator.elements.norad_id[number]),
        "epoch_time_ns": START_NS,
        "state_time_ns": made.state_time_ns.tolist(),
        "state": made.state.ravel().tolist(),
        "covariance_time_ns": made.covariance_time_ns.tolist(),
        "covariance": np.asarray(lower_triangles(made.covariance)).ravel().tolist(),
    }


if __name__ == "__main__":
    main()

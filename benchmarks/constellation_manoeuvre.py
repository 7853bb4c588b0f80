"""How soon an alert follows from a manoeuvre of a third party that observers in orbit see.

    python benchmarks/constellation_manoeuvre.py [--dv 0 3] [--before 40] [--after 60] [--seed 1]

A real pair of the shipped catalogue, a member of the fleet and another object, passes at about 9 km. Five hours
before, the other one burns, so that it passes at 60 m: with the smallest such burn, or one of a given size. A part of
the constellation and of the catalogue is simulated at the rate that gives an object as many observations as 30 million
a day of the whole. Windows, tracks, candidates, assessments and levels are those of the platform's functions, every
10 s of mission time. Printed: when the track shows a manoeuvre, and when the event is yellow and red, since the first
observation after the burn; and what a step takes.
"""

import argparse
import dataclasses

import numpy as np

from sda_platform.simulation.sky import Sky
from sda_platform_tests.support.third_party import (
    BEFORE_TCA_NS,
    HOUR_NS,
    RATE_PER_OBJECT,
    START_NS,
    THINNED,
    a_part_of,
    approaches,
    burn_to,
    catalogue_table,
    play,
    propagator_of,
)


def main() -> None:
    """Print a line a burn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dv", type=float, nargs="+", default=[0.0, 3.0], help="sizes of burns, m/s; 0: the smallest")
    parser.add_argument("--pairs", type=int, default=1, help="how many approaches")
    parser.add_argument("--before", type=float, default=40.0, help="minutes of observations before the burn")
    parser.add_argument("--after", type=float, default=60.0, help="most minutes after it")
    parser.add_argument("--part", type=int, default=20, help="every how many-th object is simulated")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    table = catalogue_table()
    propagator = propagator_of(table)
    begin_ns = START_NS + round(given.before * 60e9) + BEFORE_TCA_NS
    for approach in approaches(table, propagator, begin_ns, begin_ns + 6 * HOUR_NS)[: given.pairs]:
        ids = [int(propagator.elements.norad_id[row]) for row in (approach.fleet, approach.third)]
        sky = Sky.of_catalogue(table, objects=ids, seed=given.seed, catalogue_error_s=0.05, start_time_ns=START_NS)
        for size in given.dv:
            burn, miss_km, after_km = burn_to(sky, ids[1], approach.tca_ns - BEFORE_TCA_NS, approach.tca_ns, size)
            objects = a_part_of(table, ids, given.part)
            seen_by = dataclasses.replace(THINNED, rate_per_s=round(RATE_PER_OBJECT * len(objects)))
            found = play(
                table,
                ids,
                approach.tca_ns,
                burn,
                objects,
                seen_by,
                before_s=given.before * 60,
                after_s=given.after * 60,
                seed=given.seed,
            )
            dv = np.linalg.norm(burn.dv_rtn_m_s)
            print(f"{ids}: {miss_km:.3f} km before, {1e3 * after_km:.0f} m after {dv:.2f} m/s:")
            print(f"  {dataclasses.asdict(found)}", flush=True)


if __name__ == "__main__":
    main()

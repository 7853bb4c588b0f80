"""How soon an alert follows from a manoeuvre of a third party that observers in orbit see.

    python benchmarks/constellation_manoeuvre.py [--dv 10 3] [--seeds 3] [--pairs 1] [--before 15] [--after 10]

A real pair of the shipped catalogue, a member of the fleet and another object, passes at about 9 km. Five hours
before, the other one burns, so that it passes at 60 m: with a burn of each given size, along its orbit's normal with
seeds 1, 4, …, against it with the others. Two dozen satellites of the constellation near the other one observe it, as
often as 30 million observations a day of the whole catalogue would. Windows, tracks, candidates, assessments and levels
are those of the platform's functions and defaults, every 10 s of mission time, against the whole shipped fleet. Printed
for each burn and seed, since the first observation after the burn: when the track shows a manoeuvre, when the event is
a candidate, yellow, and red. With them: other events of the object that became alerts, objects that were suspected and
did not burn, and the longest screening. The last line of each seed is the same without a burn.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.sky import Sky
from sda_platform_tests.support.third_party import (
    BEFORE_TCA_NS,
    ERROR_S,
    HOUR_NS,
    START_NS,
    Approach,
    Play,
    Timeline,
    approaches,
    around,
    burn_to,
    catalogue_table,
    propagator_of,
)

_PROMISED_S = 300.0


def main() -> None:
    """Print a line a burn and seed, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dv", type=float, nargs="+", default=[10.0, 3.0], help="sizes of burns, m/s; 0: the smallest")
    parser.add_argument("--pairs", type=int, default=1, help="how many approaches")
    parser.add_argument("--observers", type=int, default=24)
    parser.add_argument("--before", type=float, default=15.0, help="minutes of observations before the burn")
    parser.add_argument(
        "--after", type=float, default=10.0, help="most minutes after the first observation since the burn"
    )
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    table = catalogue_table()
    propagator = propagator_of(table)
    begin_ns = START_NS + round(given.before * 60e9) + BEFORE_TCA_NS
    found: dict[float, list[Timeline]] = {}
    for approach in itertools.islice(_approaches(table, propagator, begin_ns), given.pairs):
        pair = [int(propagator.elements.norad_id[row]) for row in (approach.fleet, approach.third)]
        burn_ns = approach.tca_ns - BEFORE_TCA_NS
        objects = around(table, pair, burn_ns, given.observers)
        for seed in range(1, given.seeds + 1):
            sky = Sky.of_catalogue(table, objects=pair, seed=seed, catalogue_error_s=ERROR_S, start_time_ns=START_NS)
            for size in given.dv:
                burn, miss_km, after_km = burn_to(
                    sky, pair[1], burn_ns, approach.tca_ns, size, is_along_normal=seed % 3 == 1
                )
                play = Play(table, pair, approach.tca_ns, burn_ns, [burn], objects, seed=seed)
                line = play.run(before_s=given.before * 60, after_s=given.after * 60)
                dv = float(np.linalg.norm(burn.dv_rtn_m_s))
                what = f"{miss_km:.2f} km before, {1e3 * after_km:.0f} m after {dv:.2f} m/s"
                print(f"{pair} seed {seed}: {what}: {_told(line)}", flush=True)
                found.setdefault(size, []).append(line)
            still = Play(table, pair, approach.tca_ns, burn_ns, [], objects, seed=seed)
            line = still.run(before_s=given.before * 60, after_s=given.after * 60)
            print(f"{pair} seed {seed}: no burn: {_told(line)}", flush=True)
    for size, lines in found.items():
        yellow = [line.yellow_s for line in lines if line.yellow_s is not None]
        suspected = [line.suspected_s for line in lines if line.suspected_s is not None]
        in_time = sum(each <= _PROMISED_S for each in yellow)
        print(
            f"{size:g} m/s: suspected after {_median(suspected)} s, alert after {_median(yellow)} s (medians); "
            f"{in_time} of {len(lines)} within {_PROMISED_S:.0f} s"
        )


def _approaches(table: pa.Table, propagator: Propagator, begin_ns: int) -> Iterator[Approach]:
    """The approaches of three days, which are searched as far as is needed."""
    for start_ns in range(begin_ns, begin_ns + 72 * HOUR_NS, 6 * HOUR_NS):
        yield from approaches(table, propagator, start_ns, start_ns + 6 * HOUR_NS)


def _told(line: Timeline) -> str:
    stages = ("suspected", "candidate", "yellow", "red")
    times = ((name, getattr(line, f"{name}_s")) for name in stages)
    reached = ", ".join(f"{name} {'-' if at_s is None else f'{at_s:.0f} s'}" for name, at_s in times)
    return (
        f"{reached}{f' by {line.rule}' if line.rule else ''}; Pc {line.pc:.1e}, miss {line.miss_km:.2f} km; "
        f"{line.candidates} candidates, {line.other_alerts} other alerts; {line.suspected_others} of {line.objects} "
        f"suspected without a burn; screened in {line.screening_s:.1f} s; {line.observations} observations after"
    )


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.0f}" if values else "-"


if __name__ == "__main__":
    main()

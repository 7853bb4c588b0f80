"""How good is the schedule of the sensors, next to a first-fit script and the optimum that CP-SAT finds?

    python benchmarks/schedule.py [--contended] [--requests 1440] [--sensors 9] [--seconds 60]

A day of real passes in twelve regions; with ``--contended`` of 3,000 requests over three radars, which cannot serve
them all. Every entry is checked before its value counts: no antenna twice, no deadline missed. CP-SAT needs no time for
turning, so its bound holds for all.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from schedule_optimum import optimum

from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform.tasking.antennas import AntennaTimeline
from sda_platform.tasking.scheduling import ObservationPlan, Rules, schedule
from sda_platform.units import DAY_NS
from sda_platform_tests.support.tasking_days import Day, day_of_passes, first_fit

console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and fail where the schedule is not valid or misses a bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contended", action="store_true", help="more requests than the sensors can serve")
    parser.add_argument("--requests", type=int)
    parser.add_argument("--sensors", type=int)
    parser.add_argument("--seconds", type=float, default=60.0, help="what CP-SAT is given")
    options = parser.parse_args(arguments)
    requests, sensors = (3_000, 3) if options.contended else (1_440, 9)
    day = day_of_passes(options.requests or requests, sensors=options.sensors or sensors)
    began = time.process_time()
    plan = schedule(day.requests, day.windows, day.antennas, REFERENCE_TIME_NS, Rules(aging_ns=10**19))
    seconds = time.process_time() - began
    _require_valid(day, plan)
    script = first_fit(day)
    best, bound = optimum(day, options.seconds)
    bound = min(bound, day.value)
    entries = {
        "the rule": (len(plan.booked), plan.value(day.requests)),
        "first fit": (len(script), sum(each.value for each in day.requests if each.request_id in script)),
        "CP-SAT's best": (None, best),
    }
    console.print(
        f"{len(day.requests):,} requests, {len(day.antennas)} radars; no schedule is worth more than {bound:,.0f}"
    )
    for name, (served, value) in entries.items():
        shown = "" if served is None else f"{served:,} served, "
        console.print(f"{name}: {shown}{100 * value / bound:.2f} % of the bound")
    busy = sum(each.end_ns - each.start_ns for each in plan.booked.values()) / (len(day.antennas) * DAY_NS)
    console.print(f"the rule took {seconds:.2f} s of processor time; antennas observe {busy:.0%} of the day")
    ours, theirs = entries["the rule"][1], entries["first fit"][1]
    bounds = [
        ("10 points above first fit", ours >= theirs + 0.1 * bound),
        ("a day in less than 60 s", seconds < 60),
    ]
    if options.contended:
        urgent = [each.request_id for each in day.requests if each.priority_class == 0]
        bounds += [
            ("antennas busy for 70 % of the day", busy >= 0.7),
            ("within 5 % of the bound", ours >= 0.95 * bound),
            ("all that CP-SAT finds", ours >= best),
            ("99.9 % of class 0", sum(name in plan.booked for name in urgent) >= 0.999 * len(urgent)),
        ]
    else:
        bounds += [
            ("99.9 % of the deadlines", len(plan.booked) >= 0.999 * len(day.requests)),
            ("within 3 % of the optimum", ours >= 0.97 * bound),
        ]
    missed = [what for what, holds in bounds if not holds]
    console.print(f"missed: {', '.join(missed)}" if missed else "all bounds hold")
    return 1 if missed else 0


def _require_valid(day: Day, plan: ObservationPlan) -> None:
    timelines = {name: AntennaTimeline(antenna) for name, antenna in day.antennas.items()}
    deadlines = {each.request_id: each.deadline_ns for each in day.requests}
    for booking in plan.booked.values():
        timelines[booking.source_id].add(booking)
        if booking.end_ns > deadlines[booking.request_id]:
            raise ValueError(f"{booking.request_id} ends after its deadline")


if __name__ == "__main__":
    sys.exit(main())

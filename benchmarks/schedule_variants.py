"""What would best fit, headroom and several planners change on a contended day? (decision 31)

    python benchmarks/schedule_variants.py [--requests 3000] [--sensors 3]

The day of `schedule.py --contended`, planned by the rule and by variants of it: free time where the gap that stays is
the smallest (best fit), and 15 % of each antenna kept free of all but class 0 (headroom).
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console

from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform.tasking.antennas import AntennaPass, AntennaTimeline, Booking
from sda_platform.tasking.scheduling import ObservationPlan, Rules, schedule
from sda_platform.units import DAY_NS, HOUR_NS
from sda_platform_tests.support.tasking_days import Day, day_of_passes

HEADROOM = 0.15
NO_AGING = Rules(aging_ns=10**19)
KEPT = replace(NO_AGING, freeze_ns=DAY_NS)
"""What is planned stays, but for class 0."""
console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and print; fail where a variant is worth 1 % more than the rule, or serves more of class 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--sensors", type=int, default=3)
    options = parser.parse_args(arguments)
    day = day_of_passes(options.requests, sensors=options.sensors)
    variants: dict[str, Callable[[Day], ObservationPlan]] = {
        "the rule": by_rule, "best fit": best_fit, "headroom of 15 %": with_headroom,
    }  # fmt: skip
    urgent = [each.request_id for each in day.requests if each.priority_class == 0]
    values, urgent_served = {}, {}
    for name, planned in variants.items():
        began = time.process_time()
        plan = planned(day)
        took_s = time.process_time() - began
        values[name] = plan.value(day.requests)
        served = urgent_served[name] = sum(request_id in plan.booked for request_id in urgent)
        console.print(
            f"{name}: {len(plan.booked):,} of {len(day.requests):,} served, of class 0 {served} of {len(urgent)}, "
            f"{values[name] / values['the rule']:.2%} of the rule's value, {took_s:.1f} s of processor time"
        )
    is_worth_it = max(values.values()) > 1.01 * values["the rule"]
    return int(is_worth_it or max(urgent_served.values()) > urgent_served["the rule"])


def by_rule(day: Day) -> ObservationPlan:
    """Plan as the platform does."""
    return schedule(day.requests, day.windows, day.antennas, REFERENCE_TIME_NS, NO_AGING)


def best_fit(day: Day) -> ObservationPlan:
    """Plan with the free time that leaves the smallest gap to its neighbours, instead of that nearest culmination."""
    with _placed_by(_tightest):
        return by_rule(day)


def with_headroom(day: Day) -> ObservationPlan:
    """Plan classes 1 and 2 without the last 15 % of each hour, then class 0 in all of it."""
    kept_free = tuple(
        (start_ns + round((1 - HEADROOM) * HOUR_NS), start_ns + HOUR_NS)
        for start_ns in range(REFERENCE_TIME_NS, REFERENCE_TIME_NS + DAY_NS, HOUR_NS)
    )
    closed = {name: replace(antenna, closed_ns=kept_free) for name, antenna in day.antennas.items()}
    lower = [each for each in day.requests if each.priority_class > 0]
    first = schedule(lower, day.windows, closed, REFERENCE_TIME_NS, NO_AGING)
    return schedule(day.requests, day.windows, day.antennas, REFERENCE_TIME_NS, KEPT, first.booked.values())


@contextmanager
def _placed_by(free: Callable[..., Booking | None]) -> Iterator[None]:
    usual = AntennaTimeline.free
    AntennaTimeline.free = free  # type: ignore[method-assign]
    try:
        yield
    finally:
        AntennaTimeline.free = usual  # type: ignore[method-assign]


def _tightest(
    timeline: AntennaTimeline, request_id: str, window: AntennaPass, between_ns: tuple[int, int], duration_ns: int
) -> Booking | None:
    places = timeline.candidates(request_id, window, between_ns, duration_ns)
    free = [each for each in places if not timeline.conflicts(each)]
    return min(free, key=lambda each: _gap_ns(timeline, each), default=None)


def _gap_ns(timeline: AntennaTimeline, booking: Booking) -> float:
    around = timeline.within((booking.start_ns - HOUR_NS, booking.end_ns + HOUR_NS))
    before = min(
        (booking.start_ns - each.end_ns for each in around if each.end_ns <= booking.start_ns), default=math.inf
    )
    after = min(
        (each.start_ns - booking.end_ns for each in around if each.start_ns >= booking.end_ns), default=math.inf
    )
    return min(before, after)


if __name__ == "__main__":
    sys.exit(main())

"""Are commands executed at most once, and uplinks replaced in time, over many schedules of faults?

    python benchmarks/ground_segment.py [--seeds 1000] [--seconds 60]

Each schedule is a pure function of its seed (`protocols.uplink_model`). It fails where a command is executed twice, an
accepted one is neither executed nor expired, or a promotion takes more than 30 s. The peer is a station with a planted
bug, which trusts every sender: the schedules must find it.
"""

import argparse
import sys
import time
from collections.abc import Iterable

from rich.console import Console

from sda_platform.protocols.uplink_model import UplinkOutcome, run

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Run, print, and fail where a schedule does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated time of a schedule")
    options = parser.parse_args()
    began_s = time.process_time()
    outcomes = [run(seed, seconds=options.seconds) for seed in range(options.seeds)]
    trusting = [run(seed, seconds=options.seconds, is_fenced=False) for seed in range(max(1, options.seeds // 50))]
    failing = [o.seed for o in outcomes if o.executed_twice or o.unserved or o.slowest_promotion_s > 30]
    console.print(
        f"{len(outcomes)} schedules of {options.seconds:g} s in {time.process_time() - began_s:.0f} s: "
        f"{_total(outcomes, 'accepted'):,} commands accepted, {_total(outcomes, 'executed'):,} executed, "
        f"{_total(outcomes, 'expired'):,} expired"
    )
    console.print(
        f"executed twice: [bold]{_total(outcomes, 'executed_twice')}[/bold]; lost: {_total(outcomes, 'unserved')}; "
        f"refused from former uplinks: {_total(outcomes, 'stale_refused'):,}; promotions: "
        f"{_total(outcomes, 'promotions'):,}; slowest from stop to promotion: "
        f"{max(o.slowest_promotion_s for o in outcomes):.1f} s; fastest drain: "
        f"{max(o.fastest_drain_per_s for o in outcomes):.1f} commands/s"
    )
    console.print(f"a station that trusts every sender executes twice: {_total(trusting, 'executed_twice'):,} commands")
    if failing:
        console.print(f"failing seeds: {failing[:20]}")
    return 1 if failing or not _total(trusting, "executed_twice") else 0


def _total(outcomes: Iterable[UplinkOutcome], name: str) -> int:
    return sum(int(getattr(each, name)) for each in outcomes)


if __name__ == "__main__":
    sys.exit(main())

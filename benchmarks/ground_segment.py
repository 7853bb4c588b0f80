"""Are commands executed at most once, uplinks replaced in time, and stale writes refused, over many fault schedules?

    python benchmarks/ground_segment.py [--seeds 1000] [--seconds 60]

Each schedule is a pure function of its seed (`protocols.uplink_model`). It fails where a command is executed twice or
for a former uplink, an accepted one is neither executed nor expired, or a promotion takes more than 30 s. The peers are
stations with a planted bug, which take any token or forget ids: the schedules must find both. The same holds for leases
(`protocols.lease_model`): pauses and cut networks, and a store that ignores tokens. A stop of the primary on each class
of path is timed on its own.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import count

from rich.console import Console

from sda_platform.protocols import lease_model
from sda_platform.protocols.failover import BACKUP, Failover
from sda_platform.protocols.failure_detection import CROSS_REGION, INTRA_REGION, PathClass
from sda_platform.protocols.uplink_model import STEP_S, UplinkOutcome, run

console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and fail where a schedule does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated time of a schedule")
    options = parser.parse_args(arguments)
    began_s = time.process_time()
    outcomes = [run(seed, seconds=options.seconds) for seed in range(options.seeds)]
    forgetful = [run(seed, seconds=options.seconds, remembers=False) for seed in range(max(1, options.seeds // 50))]
    trusting = [run(seed, seconds=options.seconds, is_fenced=False) for seed in range(options.seeds)]
    failing = [
        o.seed for o in outcomes if o.executed_twice or o.executed_stale or o.unserved or o.slowest_promotion_s > 30
    ]
    console.print(
        f"{len(outcomes)} schedules of {options.seconds:g} s in {time.process_time() - began_s:.0f} s: "
        f"{_total(outcomes, 'accepted'):,} commands accepted, {_total(outcomes, 'executed'):,} executed, "
        f"{_total(outcomes, 'expired'):,} expired"
    )
    console.print(
        f"executed twice: [bold]{_total(outcomes, 'executed_twice')}[/bold]; for a former uplink: "
        f"[bold]{_total(outcomes, 'executed_stale')}[/bold]; lost: {_total(outcomes, 'unserved')}; "
        f"refused from former uplinks: {_total(outcomes, 'stale_refused'):,}; promotions: "
        f"{_total(outcomes, 'promotions'):,}; slowest from stop to promotion: "
        f"{max(o.slowest_promotion_s for o in outcomes):.1f} s; fastest drain: "
        f"{max(o.fastest_drain_per_s for o in outcomes):.1f} commands/s"
    )
    console.print(
        f"a station that takes any token executes {_total(trusting, 'executed_stale'):,} commands of former uplinks; "
        f"one that forgets ids executes {_total(forgetful, 'executed_twice'):,} twice"
    )
    if failing:
        console.print(f"failing seeds: {failing[:20]}")
    is_late = [path for path in (INTRA_REGION, CROSS_REGION) if not _replaces(path)]
    is_fenced = _leases(options.seeds)
    are_found = _total(trusting, "executed_stale") and _total(forgetful, "executed_twice")
    return 1 if failing or is_late or not is_fenced or not are_found else 0


def _replaces(path: PathClass) -> bool:
    """Whether the backup takes over within 30 s after the primary's heartbeats end."""
    link, stopped_s, now_s = Failover(path, count(1).__next__), 60.0, 0.0
    while link.active != BACKUP and now_s < stopped_s + 60:
        now_s += STEP_S
        for each in link.paths.values() if now_s % path.interval_s < STEP_S else ():
            if now_s < stopped_s or each.name == BACKUP:
                each.note_heartbeat(now_s)
        link.update(now_s)
    console.print(
        f"a path with a heartbeat each {path.interval_s:g} s: {now_s - stopped_s:.2f} s from stop to promotion"
    )
    return now_s - stopped_s <= 30


def _leases(seeds: int) -> bool:
    """Whether no stale write is accepted in any schedule of leases, and a store without tokens accepts some."""
    fenced = [lease_model.run(seed) for seed in range(seeds)]
    trusting = [lease_model.run(seed, checks_tokens=False) for seed in range(max(1, seeds // 50))]
    stale, planted = (sum(each.stale_writes for each in done) for done in (fenced, trusting))
    console.print(
        f"{seeds} schedules of leases: {sum(each.accepted for each in fenced):,} writes, "
        f"{sum(each.refused for each in fenced):,} of former holders refused, accepted: [bold]{stale}[/bold]; "
        f"a store that ignores tokens accepts {planted:,} in {len(trusting)}"
    )
    return stale == 0 and planted > 0 and not any(each.grants_while_held for each in fenced)


def _total(outcomes: Iterable[UplinkOutcome], name: str) -> int:
    return sum(int(getattr(each, name)) for each in outcomes)


if __name__ == "__main__":
    sys.exit(main())

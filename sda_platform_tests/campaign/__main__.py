"""The fault campaign: ``python -m sda_platform_tests.campaign [--sample] [--repeats N] [--seed N]
[--tier models,t0,t1,t2] [--point NAME] [--after LOG]``.

Prints what each tier found. The exit code is 1 when anything failed or a point was not reached.
"""

import argparse
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sda_platform_tests.campaign import (
    deliveries,
    planted_bugs,
    power_loss,
    processes,
    protocol_models,
    resends,
    simulator,
    t2,
    ticks,
)
from sda_platform_tests.campaign.cases import by_the_clock, cases, moving_clock
from sda_platform_tests.campaign.points import CRASH_POINTS
from sda_platform_tests.campaign.report import Report, joined

REPEATS = 25
# What T2 costs on two idle cores: most cases take 5 to 30 s with their judgement. The end replays every table.
_CASE_S = 20.0
_BEGIN_AND_END_S = 1200.0
# What the tiers try that is no crash point of the requirements.
_BESIDE = (
    *(f"models: {name}, planted bugs {', '.join(model.bugs)}" for name, model in protocol_models.MODELS.items()),
    *(f"T0 teeth: {bug.name}" for bug in planted_bugs.PLANTED_BUGS),
    "T0 stories: a file sent twice; sixty idle nights; an unsynced compaction at every step; two faults in a row",
    f"{power_loss.NAME}: every failpoint, and controls without syncs",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen tiers, the fastest first."""
    chosen = _parsed(arguments)
    if chosen.list:
        sys.stdout.writelines(f"{line}\n" for line in _matrix())
        return 0
    began = time.monotonic()
    reports = []
    for tier in chosen.tier.split(","):
        _say(f"{tier} begins, seed {chosen.seed}")
        reports.append(_TIERS[tier](chosen))
        _say(str(reports[-1]))
    is_green = all(report.is_green for report in reports)
    _say(f"{'green' if is_green else 'RED'} after {(time.monotonic() - began) / 60:.1f} min")
    return 0 if is_green else 1


def _matrix() -> Iterator[str]:
    """The crash matrix: each point, and T2's cases of it or the reason why there is none."""
    for point in CRASH_POINTS:
        every = (*cases(), *by_the_clock(), *moving_clock())
        names = [case.name for case in every if point.id in case.stands_for.split()]
        yield f"{point.id:6} {point.state}: {point.elsewhere or '; '.join(names)}"
    yield from ("", "Beside the points:", *(f"  {part}" for part in _BESIDE))


def _models(chosen: argparse.Namespace) -> Report:
    return protocol_models.run(200 if chosen.sample else 1_000, chosen.seed, chosen.point)


def _t0(chosen: argparse.Namespace) -> Report:
    seeds, budget_s = (2_000, 60.0) if chosen.sample else (100_000, 3600.0)
    parts = [simulator.run(seeds, chosen.seed, budget_s=budget_s), planted_bugs.run(chosen.seed)]
    return joined("T0, simulated disk, clock and scheduler", chosen.seed, parts)


def _t1(chosen: argparse.Namespace) -> Report:
    stride = 3 if chosen.sample else 1
    parts = [
        processes.run(chosen.repeats, chosen.seed, stride=stride, point=chosen.point),
        ticks.run(chosen.repeats, chosen.seed),
        deliveries.run(chosen.repeats, chosen.seed),
        resends.run(1 if chosen.sample else chosen.repeats, chosen.seed, point=chosen.point),
    ]
    if re.search(chosen.point, power_loss.NAME):
        parts.append(power_loss.run(stride=12 if chosen.sample else 1, seed=chosen.seed))
    return joined("T1, real processes without an engine", chosen.seed, parts)


def recovered_in(output: str) -> frozenset[str]:
    """The cases that recovered without a failure, by the output of T2."""
    recovered = re.findall(r"^\S+   (.*): recovered in [\d.]+ s$", output, re.MULTILINE)
    return frozenset(name for name in recovered if f"FAILED {name}: " not in output)


def _t2(chosen: argparse.Namespace) -> Report:
    recovered = recovered_in(chosen.after.read_text()) if chosen.after else frozenset()
    selected, clocked, moving = (
        [
            case
            for case in every
            if re.search(chosen.point, case.name)
            and (case.in_sample or not chosen.sample)
            and case.name not in recovered
        ]
        for every in (cases(), by_the_clock(), moving_clock())
    )
    count = len(selected) + len(clocked) + len(moving)
    tries = count * chosen.repeats
    hours = (_BEGIN_AND_END_S + tries * _CASE_S) / 3600
    _say(f"  {count} cases, each {chosen.repeats}×: some {hours:.1f} h on two idle cores")
    home = Path(tempfile.mkdtemp(prefix="sda-campaign-"))
    replayed = "fused_tracks" if chosen.sample or chosen.point else "all"
    report = t2.run(
        chosen.repeats, chosen.seed, selected, home, _say, clocked=clocked, moving=moving, replayed=replayed
    )
    if report.is_green:
        shutil.rmtree(home)
    else:
        _say(f"t2: what was left is in {home}")
    return report


_TIERS = {"models": _models, "t0": _t0, "t1": _t1, "t2": _t2}


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sda_platform_tests.campaign", description=__doc__)
    parser.add_argument("--sample", action="store_true", help="a sample of every part, once, in about a quarter hour")
    parser.add_argument("--repeats", type=int, help=f"how often each case is tried (default: {REPEATS}; sample: 1)")
    parser.add_argument(
        "--seed",
        type=int,
        default=1,
        help="decides the world and the order of landings; first schedule of a model",
    )
    parser.add_argument("--tier", default=",".join(_TIERS), help="tiers to run, separated by commas")
    parser.add_argument("--point", default="", help="only the cases whose name has this regular expression")
    parser.add_argument(
        "--after", type=Path, metavar="LOG", help="output of a run of T2 that was stopped; go on with its other cases"
    )
    parser.add_argument("--list", action="store_true", help="only tell the crash points and the cases of each")
    chosen = parser.parse_args(arguments)
    chosen.repeats = chosen.repeats or (1 if chosen.sample or chosen.point else REPEATS)
    return chosen


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""T0 of the fault campaign: the kernel's decisions on a disk, a scheduler and a clock that a test holds in its hand.

Short histories are cut at *every* step in every way; then seeds draw longer ones. The text of a case replays it:
``python -m sda_platform_tests.campaign.simulator --case TEXT``.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, zip_longest

from sda_platform_tests.campaign.disk import LOSSES
from sda_platform_tests.campaign.histories import FAULTS, Case, Fault, length, outcome
from sda_platform_tests.campaign.report import Report

MAX_FAILURES = 20
AT_THE_END = 10_000
_PORTION = 64
_WORKERS = multiprocessing.get_context("forkserver")
_WORKERS.set_forkserver_preload([outcome.__module__])

# Of each case what went wrong, and the seconds that it took.
_Tried = list[tuple[list[str], float]]


def exhaustive(batches: Iterable[int] = (1, 2, 3)) -> Iterator[Case]:
    """Every fault at every step of the bare histories; a rival at every step of the shortest, and another writer's
    commits at every step of the next; the other stories."""
    losses: tuple[Fault, ...] = ("none", *LOSSES)
    for count in batches:
        steps, looks = length(Case(count))
        yield from (Case(count, fault, step) for step in range(1, steps + 1) for fault in FAULTS if fault != "none")
        if count == 1:
            yield from (Case(count, fault, 0, rival) for rival in range(1, steps + looks + 1) for fault in losses)
            yield from twice_struck(Case(count), "kill", "drop", (8, 16, 24, 32))
            yield from _of_the_stories()
        if count == 2:
            yield from foreign_commits()


def foreign_commits() -> Iterator[Case]:
    """An unsynced compaction of every table at every step, and a power loss at once, soon or at the end."""
    for rival in range(1, sum(length(Case(2))) + 1):
        yield from (Case(2, fault, step, rival, foreign=1) for fault in LOSSES for step in (0, 3, AT_THE_END))


def twice_struck(of: Case, fault: Fault, then: Fault, at_steps: Iterable[int]) -> Iterator[Case]:
    """``fault`` at every step, and ``then`` at some steps of the repetition."""
    steps, _ = length(of)
    for again in at_steps:
        yield from (replace(of, fault=fault, step=step, again=again, then=then) for step in range(1, steps + 1))


def _of_the_stories() -> Iterator[Case]:
    """A file that comes twice, and bulk files, with every fault at every step, and with kills in the repetition.

    Also a rival at every step of the bulk files, and idle nights.
    """
    twice, nights, bulk = Case(story="twice"), Case(2, story="nights"), Case(2, story="bulk")
    steps, looks = length(bulk)
    yield from (replace(bulk, fault=fault, step=n) for n in range(1, steps + 1) for fault in FAULTS if fault != "none")
    losses: tuple[Fault, ...] = ("none", *LOSSES)
    yield from (replace(bulk, fault=fault, rival=n) for n in range(1, steps + looks + 1) for fault in losses)
    yield from twice_struck(bulk, "kill", "drop", (8, 16, 24, 32))
    steps, _ = length(twice)
    yield from (replace(twice, fault=fault, step=n) for n in range(1, steps + 1) for fault in FAULTS if fault != "none")
    yield from twice_struck(twice, "kill", "kill-all", range(1, 9))
    yield from twice_struck(twice, "reorder", "kill-all", range(1, 9))
    steps, _ = length(nights)
    yield from (replace(nights, fault=fault, step=n) for n in range(1, steps + 1, steps // 10) for fault in FAULTS)


def run(
    repeats: int = 2000,
    seed: int = 1,
    *,
    stride: int = 1,
    budget_s: float = 60.0,
    batches: Iterable[int] = (1, 2, 3),
    processes: int | None = None,
) -> Report:
    """Every ``stride``-th exhaustive case and ``repeats`` seeds from ``seed`` on, in turns, on every core.

    ``processes`` 1 is this one. Ends early, and states so, once ``budget_s`` seconds are over.
    """
    began, notes = time.monotonic(), []
    failures: list[str] = []
    recoveries: list[float] = []
    stepwise = _portions(islice(exhaustive(batches), 0, None, stride))
    drawn = _portions(Case(seed=number) for number in range(seed, seed + repeats))
    portions = filter(None, chain.from_iterable(zip_longest(stepwise, drawn)))
    for problems, seconds in chain.from_iterable(_tried(portions, processes)):
        failures += problems
        recoveries.append(seconds)
        if len(failures) >= MAX_FAILURES:
            break
        if time.monotonic() - began > budget_s:
            notes.append(f"the simulator ended after {len(recoveries)} cases, its budget of {budget_s:g} s")
            break
    return Report(
        "T0 simulator",
        seed,
        len(recoveries),
        failures=tuple(failures),
        recovery_seconds=tuple(recoveries),
        notes=tuple(notes),
    )


def _portions(cases: Iterator[Case]) -> Iterator[list[Case]]:
    """Neighbours together: they come to the same states."""
    while portion := list(islice(cases, _PORTION)):
        yield portion


def _tried(portions: Iterable[list[Case]], processes: int | None) -> Iterator[_Tried]:
    if processes == 1:
        yield from map(_try, portions)
        return
    with _WORKERS.Pool(processes) as pool:
        yield from pool.imap_unordered(_try, portions)


def _try(cases: list[Case]) -> _Tried:
    tried: _Tried = []
    held: set[bytes] = set()
    for case in cases:
        began = time.perf_counter()
        tried.append((outcome(case, held=held), time.perf_counter() - began))
    return tried


def main(arguments: list[str]) -> int:
    """Run the tier, one case or one seed; the exit code is 1 where something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", type=Case.parse, help="replay this case, with its trace")
    parser.add_argument("--seed", type=int, help="replay the history that this seed draws, with its trace")
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds follow the exhaustive cases")
    parser.add_argument("--budget-s", type=float, default=60.0, help="seconds to spend at most")
    chosen = parser.parse_args(arguments)
    if chosen.case or chosen.seed:
        problems = outcome(chosen.case or Case(seed=chosen.seed), trace=True)
        sys.stdout.write("\n".join(problems or ["it held"]) + "\n")
        return 1 if problems else 0
    report = run(chosen.seeds, budget_s=chosen.budget_s)
    sys.stdout.write(f"{report}\n")
    return 0 if report.is_green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

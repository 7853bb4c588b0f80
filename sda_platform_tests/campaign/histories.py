"""One history of T0: files land, the pool runs, something strikes, and left alone the platform must drain.

A case is deterministic, and its text replays it.
"""

import math
import random
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from sda_platform import failpoints
from sda_platform.units import SECOND_NS
from sda_platform_tests.campaign.disk import LOSSES, Loss
from sda_platform_tests.campaign.scheduling import Process, Scheduler
from sda_platform_tests.campaign.simulated_oracle import contradictions, lost_promises, waiting
from sda_platform_tests.campaign.simulated_partner import Delivery, delivery
from sda_platform_tests.campaign.simulated_platform import ORPHAN_GRACE_S, World

_REPLAY = "python -m sda_platform_tests.campaign.simulator --case"
Fault = Literal["none", "kill", "kill-engine", "kill-all", "full", "drop", "reorder", "tear", "lie"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
Story = Literal["plain", "twice", "nights", "bulk"]
IDLE_NIGHTS = 60
DRAINING_RUNS = 12
REFUSED = "O8: it does not start"
NANOSECONDS_PER_HOUR = 3600 * SECOND_NS


@dataclass(frozen=True)
class Case:
    """One history: ``batches`` files landed and run, and what strikes.

    At ``step`` of the first process ``fault`` strikes: ``kill`` ends that process (the engine continues),
    ``kill-engine`` the engine (the process gets an error), ``kill-all`` both; ``full`` leaves the disk without space
    until the process ends; ``lie`` ends all, and the disk has forgotten the newest commit of the records, which it had
    confirmed; the others are a power loss. Where ``rival`` is set, a second process begins and ends while the first is
    at that step, and ``step`` counts from there: a second writer, or, with ``foreign``, a compaction of every table
    that no one syncs. Where ``again`` is set, everything is tried again, and ``then`` strikes at this step of it.

    ``story`` is what the partner and the nights bring: ``plain`` files; a file that comes ``twice`` under two names,
    and another under one of the two; 60 idle ``nights`` of another tool's commits between two files; or ``bulk`` files,
    whose records Arrow writes into data files before the engine adds them. ``seed`` 0 is
    this bare history; any other draws files, writers, their interleaving and several faults by chance.
    """

    batches: int = 1
    fault: Fault = "none"
    step: int = 0
    rival: int | None = None
    seed: int = 0
    foreign: int = 0
    again: int = 0
    then: Fault = "none"
    story: Story = "plain"

    def __str__(self) -> str:
        plain = Case()
        shown = {name: value for name, value in asdict(self).items() if value != getattr(plain, name)}
        return ",".join(f"{name}={value}" for name, value in {"batches": self.batches, **shown}.items())

    @classmethod
    def parse(cls, text: str) -> "Case":
        """The case of this text. Raises ValueError."""
        known = {f.name for f in fields(cls)}
        facts: dict[str, Any] = dict(part.split("=", 1) for part in text.split(","))
        if unknown := set(facts) - known:
            raise ValueError(f"{text!r}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
        facts |= {name: int(value) for name, value in facts.items() if name not in ("fault", "then", "story")}
        return cls(**facts)


def outcome(case: Case, *, trace: bool = False, held: set[bytes] | None = None) -> list[str]:
    """What went wrong in ``case``; nothing: it held.

    ``held`` are states of a world from which it drained as it must: a history that comes to one of them need not be
    followed to its end again, and one that holds adds its own.
    """
    world = _world(case)
    try:
        problems = _drawn_history(world, case.seed) if case.seed else _cut_history(world, case)
        state = world.state() if held is not None and world.scheduler.is_idle else None
        if held is None or state not in held:
            # A platform that refuses to start does nothing.
            problems += [] if any(map(_is_refusal, problems)) else _drain(world) or contradictions(world)
        if held is not None and state is not None and not problems:
            held.add(state)
    except Exception as error:  # an oracle that cannot read the tables is a finding too
        problems = [f"{type(error).__name__}: {error}"]
    finally:
        failpoints.watch(None)
    if world.may_refuse:
        problems = [problem for problem in problems if not _is_refusal(problem)]
    if trace:
        sys.stdout.write("".join(f"{n:4} {line}\n" for n, line in enumerate(world.scheduler.trace, 1)))
    return [f"{problem} [replay: {_REPLAY} {case}]" for problem in problems]


def _is_refusal(problem: str) -> bool:
    return problem.startswith(REFUSED)


def length(case: Case) -> tuple[int, int]:
    """Steps and looks of the history of ``case`` without its faults."""
    world = _world(case)
    world.start("main", lambda: _live(world, case.story))
    world.scheduler.run(_newest)
    failpoints.watch(None)
    return world.scheduler.steps, world.scheduler.looks


def steps_of(case: Case, kind: str, place: str) -> list[int]:
    """The steps of ``kind`` (such as ``unlink``) below ``place`` in that history."""
    world = _world(case)
    world.start("main", lambda: _live(world, case.story))
    world.scheduler.run(_newest)
    failpoints.watch(None)
    lines = enumerate(world.scheduler.trace, 1)
    return [number for number, line in lines if f": {kind} " in line and place in line]


def _world(case: Case) -> World:
    files = _drawn_files(random.Random(case.seed)) if case.seed else _files(case)
    return World(files, is_bulk=case.story == "bulk")


def _files(case: Case) -> list[Delivery]:
    """Names in no order, one feed twice, one name twice."""
    if case.story == "twice":
        first = delivery(1, "radar", "b", 2)
        return [first, first.again("a"), first.again("a"), delivery(2, "radar", "b", 1)]
    return [delivery(1, "radar", "b", 2), delivery(2, "isl", "a", 1), delivery(3, "radar", "a", 1)][: case.batches]


def _drawn_files(chance: random.Random) -> list[Delivery]:
    """Names in any order, none twice, since a lander makes them of the content; but a partner may send a file again,
    or another one under a name that it used."""
    feeds = [chance.choice(("radar", "isl")) for _ in range(chance.randint(1, 4))]
    files = [
        delivery(n, feed, f"{chance.choice('abc')}-{n}", chance.randint(1, 3), chance.random() < 0.1)
        for n, feed in enumerate(feeds, 1)
    ]
    for number in range(len(files) + 1, len(files) + 1 + chance.choice((0, 0, 1, 2))):
        known = chance.choice(files)
        again = known.again(chance.choice((known.name, f"again-{number}")))
        other = delivery(number, known.feed, known.name, 1)
        files.insert(chance.randint(0, len(files)), chance.choice((again, again, other)))
    return files


def _live(world: World, story: Story) -> None:
    """What a platform does when nothing happens to it."""
    while world.unsent:
        if story == "twice":
            world.land_all()
        else:
            world.land(world.unsent[0])
        world.run_tables()
        if story == "nights" and world.unsent:
            world.pass_nights(IDLE_NIGHTS)


def _work(world: World) -> None:
    """A few runs of the pool, one after another, as its sensor requests them."""
    for _ in range(3):
        world.run_tables()


def _newest(ready: list[Process]) -> Process:
    return ready[-1]


def _run_until(scheduler: Scheduler, step: float) -> None:
    """No one is interrupted, until a process is about to take this step."""
    scheduler.run(lambda ready: None if scheduler.steps >= step else _newest(ready))


def _cut_history(world: World, case: Case) -> list[str]:
    scheduler = world.scheduler
    first = world.start("first", lambda: _live(world, case.story))
    if case.rival is not None:
        rival, number = case.rival, scheduler.steps + scheduler.looks
        scheduler.run(lambda ready: None if scheduler.steps + scheduler.looks >= number + rival else _newest(ready))
        second = world.start("second", world.compact_unsynced if case.foreign else world.run_tables)
        scheduler.run(lambda ready: None if second.is_over else _newest(ready))
        _run_until(scheduler, scheduler.steps + case.step)
    else:
        _run_until(scheduler, case.step or math.inf)
    problems = _strike(world, first, case.fault, random.Random(str(case)))
    if case.again and not problems:
        second = world.start("again", lambda: _live(world, case.story))
        _run_until(scheduler, scheduler.steps + case.again)
        problems = _strike(world, second, case.then, random.Random(str(case)))
    return problems


def _strike(world: World, victim: Process, fault: Fault, chance: random.Random) -> list[str]:
    if fault == "kill":
        victim.kill()
    elif fault == "kill-engine":
        world.kill_engine()
        world.scheduler.run(_newest)
    elif fault == "kill-all":
        world.scheduler.kill_all()
    elif fault == "full":
        world.disk.is_full = True
        world.scheduler.run(_newest)
        world.disk.is_full = False
    elif fault in LOSSES:
        world.lose_power(fault, chance)
        problems = _restart(world, fault, chance)
        if problems:
            return problems
    elif fault == "lie":
        world.scheduler.kill_all()
        world.forget_newest_commit()
        problems = _restart(world, "reorder", chance)
        if problems:
            return problems
    return lost_promises(world)


def _restart(world: World, loss: Loss, chance: random.Random) -> list[str]:
    """The recovery at the start; twice it loses power as well, somewhere, unless it is through by then."""
    for steps in (chance.randint(1, 12), chance.randint(1, 12)):
        recovery = world.start("recovery", world.recover)
        _run_until(world.scheduler, world.scheduler.steps + steps)
        if recovery.is_over:
            break
        world.lose_power(loss, chance)
    else:
        recovery = world.start("recovery", world.recover)
        world.scheduler.run(_newest)
    return [f"{REFUSED}: {recovery.failure}"] if recovery.failure else []


def _drawn_history(world: World, seed: int) -> list[str]:
    """A lander, one or two writers and up to three failpoints, all by chance."""
    chance, problems = random.Random(-seed), []
    for _ in range(chance.randint(1, 3)):
        lander = world.start("lander", world.land_all)
        writers = [world.start(f"writer-{n}", lambda: _work(world)) for n in range(chance.randint(1, 2))]
        if chance.random() < 0.3:
            world.start("maintenance", world.maintain)
        last = world.scheduler.steps + chance.randint(1, 120)
        stays = chance.choice((0.5, 0.9, 0.99))
        world.scheduler.run(_by_chance(world.scheduler, chance, stays, last))
        problems += _strike(world, chance.choice(writers), chance.choice(FAULTS), chance)
        if any(map(_is_refusal, problems)):
            return problems
        lander.kill()  # one lander at a time: the next one finds what this one left
        world.now_ns += chance.choice((0, 1, -1, 24, -24)) * NANOSECONDS_PER_HOUR
    return problems


def _by_chance(
    scheduler: Scheduler, chance: random.Random, stays: float, last_step: int
) -> Callable[[list[Process]], Process | None]:
    """The process that continued last continues with probability ``stays``."""
    last: list[Process] = []

    def choose(ready: list[Process]) -> Process | None:
        if scheduler.steps >= last_step:
            return None
        if not (last and last[0] in ready and chance.random() < stays):
            last[:] = [chance.choice(ready)]
        return last[0]

    return choose


def _drain(world: World) -> list[str]:
    """O8: restarted and left alone, the platform lands and delivers what there is, within so many runs."""
    failure: Exception | None = None
    quiet_runs = 0
    world.outlive_clock_jumps()
    for _ in range(DRAINING_RUNS):
        world.start("lander", world.land_all)
        run = world.start("drain", world.run_tables)
        world.scheduler.run(_newest)
        world.now_ns += 2 * round(ORPHAN_GRACE_S) * SECOND_NS
        failure = run.failure
        quiet_runs = quiet_runs + 1 if failure is None and not world.unsent and not waiting(world) else 0
        if quiet_runs == 2:  # the second has seen what the first left to the grace time of orphans
            return []
    return [f"O8: it does not drain: {waiting(world)}, {type(failure).__name__}: {failure}"]

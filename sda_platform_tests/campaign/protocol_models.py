"""The models of protocols: many seeded schedules of each, and controls with a planted bug that must be found.

Each schedule is a function of model, planted bug and seed, so a failing one is repeated by these three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sda_platform_tests.campaign.report import Report
from sda_platform_tests.models import gossip_schedule, lease_model, uplink_model
from sda_platform_tests.models.raft import schedule as raft
from sda_platform_tests.models.raft.messages import PLANTED_BUGS, RaftRules

MOST_CONTROLS: Final = 600
"""Schedules after which a control gives up: the rarest planted bug is found within a sixth of them on average."""


@dataclass(frozen=True)
class ScheduleOutcome:
    """What a schedule did. ``bug``: the planted one, empty: none; ``violations``: what broke, in words."""

    model: str
    bug: str
    seed: int
    operations: int
    faults: int
    violations: tuple[str, ...]


@dataclass(frozen=True)
class ProtocolModel:
    """A protocol model: how to carry out a seed with a planted bug (empty: none), and the bugs that it has."""

    carry_out: Callable[[int, str], ScheduleOutcome]
    bugs: tuple[str, ...]


def _raft(seed: int, bug: str) -> ScheduleOutcome:
    done = raft.run(seed, rules=RaftRules(**{bug: False}) if bug else None)
    return ScheduleOutcome("raft", bug, seed, done.answered, done.crashes, done.violations)


def _lease(seed: int, bug: str) -> ScheduleOutcome:
    done = lease_model.run(seed, checks_tokens=not bug)
    counted = (
        (done.stale_writes, "writes of former holders were accepted"),
        (done.grants_while_held, "leases were granted while another holder had them"),
    )
    return ScheduleOutcome("lease", bug, seed, done.accepted, done.refused, _stated(counted))


def _uplink(seed: int, bug: str) -> ScheduleOutcome:
    done = uplink_model.run(seed, seconds=60.0, is_fenced=bug != "is_fenced", remembers=bug != "remembers")
    late = done.slowest_promotion_s > 30.0
    counted = (
        (done.executed_twice, "commands were executed twice"),
        (done.executed_stale, "commands were executed for a former uplink"),
        (done.unserved, "accepted commands were neither executed nor expired"),
        (int(late), f"promotion took {done.slowest_promotion_s:.1f} s"),
    )
    return ScheduleOutcome("uplink", bug, seed, done.accepted, done.promotions, _stated(counted))


def _stated(counted: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """What went wrong, with its number, of what was counted."""
    return tuple(f"{count} {what}" for count, what in counted if count)


def _gossip(seed: int, bug: str) -> ScheduleOutcome:
    done = gossip_schedule.run(seed, **{bug: False} if bug else {})
    return ScheduleOutcome("gossip", bug, seed, done.rounds, done.faults, done.violations)


MODELS: Final[Mapping[str, ProtocolModel]] = MappingProxyType(
    {
        "raft": ProtocolModel(_raft, PLANTED_BUGS),
        "lease": ProtocolModel(_lease, ("checks_tokens",)),
        "uplink": ProtocolModel(_uplink, ("is_fenced", "remembers")),
        "gossip": ProtocolModel(_gossip, ("probes_dead", "refutes")),
    }
)


def schedules(seeds: Mapping[str, Iterable[int]]) -> Iterator[ScheduleOutcome]:
    """The schedules of the correct models with these seeds, by the model's name."""
    for name, numbers in seeds.items():
        for seed in numbers:
            yield MODELS[name].carry_out(seed, "")


def control(name: str, bug: str, first_seed: int, at_most: int = MOST_CONTROLS) -> ScheduleOutcome:
    """The first schedule of a model from ``first_seed`` on that finds its planted bug, or else the last one tried."""
    tried = (MODELS[name].carry_out(seed, bug) for seed in range(first_seed, first_seed + at_most))
    for last in tried:
        if last.violations:
            break
    return last


def run(count: int, seed: int, point: str = "") -> Report:
    """``count`` schedules from ``seed`` on, and controls, of each model whose name matches ``point``."""
    chosen = [name for name in MODELS if re.search(point, name)]
    done = list(schedules({name: range(seed, seed + count) for name in chosen}))
    return judged(seed, done, [control(name, bug, seed) for name in chosen for bug in MODELS[name].bugs])


def judged(seed: int, done: Sequence[ScheduleOutcome], planted: Sequence[ScheduleOutcome]) -> Report:
    """What a campaign found; a planted bug is a point, which is missed when no schedule found it."""
    again = "python -m sda_platform_tests.campaign --tier models"
    return Report(
        "models of protocols",
        seed,
        cases=len(done) + len(planted),
        points_reached=frozenset(f"{each.model}.{each.bug}" for each in planted if each.violations),
        points_missed=frozenset(f"{each.model}.{each.bug}" for each in planted if not each.violations),
        failures=tuple(
            f"{each.model}: {'; '.join(each.violations)} [{again} --seed {each.seed} --point {each.model}]"
            for each in done
            if each.violations
        ),
    )

"""The vitals: each condition that must be reported to a person, judged from facts alone. This is their one declaration.

`sda status`, the asset `vitals` in the UI, the notices and `/health` all show the readings that `evaluate` returns.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sda_platform.observability.vitals.facts import Facts
from sda_platform.setting_sections import VitalsSettings


class VitalState(StrEnum):
    """Unknown: the process that has this information does not run here."""

    GREEN = "green"
    RED = "red"
    UNKNOWN = "unknown"


class Side(StrEnum):
    """Who must act on a red vital."""

    SOURCES = "sources"
    COLLECTORS = "collectors"
    PLATFORM = "platform"
    SUBSCRIBER = "subscriber"
    MACHINE = "machine"


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the side at fault."""

    side: Side
    text: str


@dataclass(frozen=True)
class Reading:
    """The state of one vital; ``side`` is at fault and ``text`` names all ``problems``; all are empty without one."""

    vital: str
    state: VitalState
    side: str = ""
    text: str = ""
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.vital} ({self.side}): {self.text}" if self.text else f"{self.vital}: {self.state}"


# Yields problems; returns None where the facts are not known.
Judge = Callable[[Facts, VitalsSettings], Iterator[Fault] | None]


@dataclass(frozen=True)
class Vital:
    """A condition. ``meaning`` is what holds while it is green."""

    name: str
    meaning: str
    judge: Judge

    def reading(self, facts: Facts, rules: VitalsSettings) -> Reading:
        """Its state by ``facts``. Of several problems the first names the side."""
        found = self.judge(facts, rules)
        if found is None:
            return Reading(self.name, VitalState.UNKNOWN)
        problems = list(found)
        if not problems:
            return Reading(self.name, VitalState.GREEN)
        texts = tuple(each.text for each in problems)
        return Reading(self.name, VitalState.RED, problems[0].side, "; ".join(texts), texts)


def evaluate(facts: Facts, rules: VitalsSettings) -> tuple[Reading, ...]:
    """The reading of every vital, in the order of `VITALS`. Pure."""
    return tuple(vital.reading(facts, rules) for vital in VITALS)


def _sources(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Silence is the sources' fault unless the collectors are away, or the platform leaves their data unread."""
    away = facts.collectors.answer if facts.collectors else None
    for silence in facts.silences:
        kind = silence.source.partition("-")[0]
        backlog = facts.backlogs.get(kind)
        text = silence.describe(facts.now_ns)
        if backlog and backlog.segments:
            yield Fault(Side.PLATFORM, f"{text}; yet {backlog} in landing zone {kind}")
        elif away:
            yield Fault(Side.COLLECTORS, f"{text}; {away}")
        else:
            yield Fault(Side.SOURCES, text)


def _collectors(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    found = facts.collectors
    if found is None:
        return None
    problems = [found.answer] if found.answer else list(found.problems)
    return (Fault(Side.COLLECTORS, each) for each in problems)


def _backlog(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    for feed, backlog in facts.backlogs.items():
        if (backlog.oldest_s or 0.0) > rules.backlog_max_age_s:
            yield Fault(Side.PLATFORM, f"landing zone {feed}: {backlog}")


def _watermark(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    found = facts.watermark
    if found.unread_s > rules.watermark_stall_s:
        yield Fault(Side.PLATFORM, f"observations have waited {found.unread_s:,.0f} s for the fusion")
    elif found.stalled_s > rules.watermark_stall_s:
        slowest = f"; {found.slowest} holds it back" if found.slowest else ""
        yield Fault(Side.SOURCES, f"the watermark has not advanced for {found.stalled_s:,.0f} s{slowest}")


def _orphans(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    return (Fault(Side.SOURCES, orphan) for orphan in facts.orphans)


def _dead_letters(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    return (Fault(Side.SOURCES, growth) for growth in facts.growing_letters)


def _tables(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    return (Fault(Side.PLATFORM, table) for table in facts.red_tables)


def _subscriber(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    found = facts.delivery
    if found.waiting_s > rules.subscriber_lag_s:
        side = Side.SUBSCRIBER if found.refusal else Side.PLATFORM
        reason = f"; {found.refusal}" if found.refusal else "; no delivery was refused, so no run delivers"
        yield Fault(side, f"alerts have waited {found.waiting_s:,.0f} s for the subscriber{reason}")


def _engine(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    if facts.engine_answers is None:
        return None
    silent = [] if facts.engine_answers else [Fault(Side.PLATFORM, "the Spark engine executes no statement")]
    return iter(silent)


def _daemon(facts: Facts, rules: VitalsSettings) -> Iterator[Fault] | None:
    if facts.daemon is None:
        return None
    if facts.daemon.unreadable:
        return iter([Fault(Side.PLATFORM, f"Dagster's records cannot be read: {facts.daemon.unreadable}")])
    silent_s = facts.daemon.silent_s
    if silent_s is None:
        return iter([Fault(Side.PLATFORM, "Dagster's daemon has written no heartbeat")])
    late = [Fault(Side.PLATFORM, f"Dagster's daemon has written no heartbeat for {silent_s:,.0f} s: no run starts")]
    return iter(late if silent_s > rules.heartbeat_max_s else [])


def _processes(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    if facts.processes is None:
        return None
    wrong = [
        (each, "ends again and again" if each.is_exhausted else "does not run")
        for each in facts.processes
        if each.is_exhausted or not each.is_alive
    ]
    return (
        Fault(Side.PLATFORM, f"the process {each.name} {what}, restarted {each.restarts} times") for each, what in wrong
    )


def _pools(facts: Facts, rules: VitalsSettings) -> Iterator[Fault] | None:
    if facts.runs is None:
        return None
    limits = {"queued": rules.queue_max_s, "started": rules.run_max_s}
    return (
        Fault(
            Side.PLATFORM,
            f"pool {run.pool or 'none'}: run {run.run_id[:8]} of {run.job} has been {run.state} for {run.age_s:,.0f} s",
        )
        for run in facts.runs
        if run.age_s > limits[run.state]
    )


def _disk(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    for disk in facts.disks:
        if disk.free < rules.disk_min_free * disk.total:
            share = disk.free / disk.total if disk.total else 0.0
            yield Fault(Side.MACHINE, f"{disk.path}: {share:.1%} of the disk is free ({disk.free / 2**30:,.1f} GiB)")


VITALS: Sequence[Vital] = (
    Vital("sources_report", "Every source has reported within the time that its feed allows.", _sources),
    Vital("collectors_answer", "The collectors answer, and every source of theirs runs.", _collectors),
    Vital("backlog_is_taken", "No segment has been pending for too long.", _backlog),
    Vital("watermark_advances", "The fusion's watermark advances while observations come.", _watermark),
    Vital("no_orphans_wait", "Every landed file belongs to a segment that a table reads.", _orphans),
    Vital("dead_letters_do_not_grow", "No kind of dead letter comes much more often than usual.", _dead_letters),
    Vital("tables_are_sound", "No table has an open finding: each is repaired or acknowledged.", _tables),
    Vital("subscriber_is_level", "The subscriber has every alert.", _subscriber),
    Vital("engine_answers", "The Spark engine executes statements.", _engine),
    Vital("daemon_beats", "Dagster's daemon writes its heartbeat, so that runs start.", _daemon),
    Vital("processes_run", "Every process that the platform supervises runs.", _processes),
    Vital("pools_move", "No run has been under way or queued for too long.", _pools),
    Vital("disk_has_space", "Every file system that the platform writes to has free space.", _disk),
)
"""Every vital, in the order in which they are shown: along the way of the data, then the machinery."""

"""How each vital is judged: the faults that follow from the facts. None: the facts are not known here."""

from collections.abc import Callable, Iterator

from sda_platform.observability.vitals.facts import Facts
from sda_platform.observability.vitals.faults import Fault, Side, duration
from sda_platform.published import COLLECTOR
from sda_platform.setting_sections import VitalsSettings

Judge = Callable[[Facts, VitalsSettings], Iterator[Fault] | None]


def _is_down(facts: Facts, process: str) -> bool:
    """Return whether ``process`` does not run, which `processes_run` names: what it does not do then is no
    other fault.
    """
    return any(each.name == process and not each.is_well for each in facts.processes or ())


def sources(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    """Silence is judged where data can arrive: while no collector answers, its absence says nothing of the sources."""
    if facts.collectors and facts.collectors.answer:
        return None
    return (
        Fault(each.source, Side.SOURCES, each.describe(facts.now_ns), each.lasted_s(facts.now_ns))
        for each in facts.silences
    )


def listed(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find sensors that report, and that the list of ground sensors lacks."""
    return (Fault(each.subject, Side.SOURCES, each.text) for each in facts.unlisted)


def collectors(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    """Return the collector as a whole, or what its report names."""
    found = facts.collectors
    if found is None or _is_down(facts, COLLECTOR):
        return None
    if found.answer:
        return iter([Fault("collector", Side.COLLECTORS, found.answer)])
    return (Fault(each.partition(":")[0], Side.COLLECTORS, each) for each in found.problems)


def backlog(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    """Zones whose oldest segment waits too long."""
    for feed, backlog in facts.backlogs.items():
        oldest_s = backlog.oldest_s or 0.0
        if oldest_s > rules.backlog_max_age_s:
            yield Fault(feed, Side.PLATFORM, f"landing zone {feed}: {backlog}", oldest_s)


def watermark(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    """Yield the kind of source that holds the watermark back."""
    found = facts.watermark
    if found.stalled_s > rules.watermark_stall_s:
        slowest = f"; {found.slowest} holds it back" if found.slowest else ""
        text = f"the watermark has not advanced for {duration(found.stalled_s)}{slowest}"
        yield Fault(found.slowest or "watermark", Side.SOURCES, text, found.stalled_s)


def consumed(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    """Tables on the way to alerts that have not consumed what waits."""
    for table, waiting_s in facts.unconsumed_s.items():
        if waiting_s > rules.watermark_stall_s:
            text = f"{table} has not consumed what has waited for it for {duration(waiting_s)}"
            yield Fault(table, Side.PLATFORM, text, waiting_s)


def catalogue(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Element sets that no longer arrive."""
    found = facts.stale_catalogue
    return iter([Fault(found.subject, Side.SOURCES, found.text, found.lasted_s)] if found else [])


def screening(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """A full screening that is too old."""
    found = facts.stale_screening
    return iter([Fault(found.subject, Side.PLATFORM, found.text, found.lasted_s)] if found else [])


def unalerted_cdms(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find conjunctions that received CDMs state at the level of an alert, without an alert of our own."""
    return (Fault(each.subject, Side.PLATFORM, each.text) for each in facts.unalerted_cdms)


def edits(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find edits of the catalogue that claim what is not so."""
    return (Fault(each.subject, Side.SOURCES, each.text) for each in facts.edit_faults)


def orphans(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Lone files by zone, and by who left them."""
    for each in facts.orphans:
        side = Side.PLATFORM if each.is_ours else Side.SOURCES
        yield Fault(f"{each.zone} ({side})", side, each.text, each.oldest_s)


def dead_letters(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find kinds of dead letters that grow."""
    return (Fault(each.subject, Side.SOURCES, each.text) for each in facts.growing_letters)


def refused_rows(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Tables that lately computed rows which break their contract."""
    return (Fault(each.subject, Side.PLATFORM, each.text, each.lasted_s) for each in facts.refused_rows)


def tables(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Findings of tables."""
    return (Fault(each.subject, Side.PLATFORM, each.text) for each in facts.red_tables)


def subscriber(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    """Deliveries that wait, and alerts that were refused for their content."""
    found = facts.delivery
    if found.waiting_s > rules.subscriber_lag_s:
        side = Side.SUBSCRIBER if found.refusal else Side.PLATFORM
        reason = found.refusal or "no delivery was refused, so no run delivers"
        text = f"alerts have waited {duration(found.waiting_s)} for the subscriber; {reason}"
        yield Fault("deliveries", side, text, found.waiting_s)
    if found.disagreement:
        yield Fault("agreement", Side.SUBSCRIBER, found.disagreement)
    for each in found.refused:
        yield Fault(f"alert {each.subject}", Side.SUBSCRIBER, each.text, each.lasted_s)


def notified(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find channels to people that take no messages."""
    return (Fault(each.subject, Side.SUBSCRIBER, each.text, each.lasted_s) for each in facts.unnotified)


def engine(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    """Judge the local engine."""
    if facts.engine_answers is None or _is_down(facts, "engine"):
        return None
    silent = Fault("engine", Side.PLATFORM, "the Spark engine executes no statement")
    return iter([] if facts.engine_answers else [silent])


def daemon(facts: Facts, rules: VitalsSettings) -> Iterator[Fault] | None:
    """Judge Dagster's daemon and its records."""
    found = facts.daemon
    if found is None or _is_down(facts, "daemon"):
        return None
    if found.unreadable:
        return iter([Fault("records", Side.PLATFORM, f"Dagster's records cannot be read: {found.unreadable}")])
    silent_s = found.silent_s
    if silent_s is None:
        return iter([Fault("daemon", Side.PLATFORM, "Dagster's daemon has written no heartbeat")])
    text = f"Dagster's daemon has written no heartbeat for {duration(silent_s)}: no run starts"
    return iter([Fault("daemon", Side.PLATFORM, text, silent_s)] if silent_s > rules.heartbeat_max_s else [])


def processes(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault] | None:
    """Supervised processes. Of the watchdog, which looks at the others, another process sees only the silence."""
    if facts.watchdog_silent_s is not None:
        text = f"the watchdog has evaluated nothing for {duration(facts.watchdog_silent_s)}"
        return iter([Fault("watchdog", Side.PLATFORM, text, facts.watchdog_silent_s)])
    if facts.processes is None:
        return None
    wrong = [
        (each, "ends again and again" if each.is_exhausted else "does not run")
        for each in facts.processes
        if not each.is_well
    ]
    return (
        Fault(each.name, Side.PLATFORM, f"the process {each.name} {what}, restarted {each.restarts} times")
        for each, what in wrong
    )


def pools(facts: Facts, rules: VitalsSettings) -> Iterator[Fault] | None:
    """The pool is the subject: a run that ends does not end the fault while the next one is as late.

    That runs wait where none can be started is the fault of `runs_succeed`.
    """
    if facts.runs is None:
        return None
    limits = {"queued": rules.queue_max_s, "started": rules.run_max_s}
    judged = [run for run in facts.runs if run.state != "queued" or not facts.nothing_starts]
    late = [run for run in judged if run.age_s > limits[run.state]]
    oldest = {run.pool or "none": run for run in sorted(late, key=lambda run: run.age_s)}
    return (
        Fault(
            pool,
            Side.PLATFORM,
            f"pool {pool}: run {run.run_id[:8]} of {run.job} has been {run.state} for {duration(run.age_s)}",
            run.age_s,
        )
        for pool, run in oldest.items()
    )


def runs(facts: Facts, rules: VitalsSettings) -> Iterator[Fault] | None:
    """A subscriber that is away is the fault of `subscriber_is_level`, and not of the jobs that deliver."""
    if facts.failing is None:
        return None
    if facts.nothing_starts:
        text = f"no run can be started, so all wait in the queue: {facts.nothing_starts}"
        return iter([Fault("launches", Side.PLATFORM, text)])
    return (
        Fault(each.job, Side.PLATFORM, f"the last {each.runs} runs of {each.job} failed: {each.reason}", each.lasted_s)
        for each in facts.failing
        if each.runs >= rules.failed_runs_max and not each.is_at_subscriber
    )


def disk(facts: Facts, rules: VitalsSettings) -> Iterator[Fault]:
    """Find file systems without space."""
    for disk in facts.disks:
        if disk.free < rules.disk_min_free * disk.total:
            share = disk.free / disk.total if disk.total else 0.0
            text = f"{disk.path}: {share:.1%} of the disk is free ({disk.free / 2**30:,.1f} GiB)"
            yield Fault(disk.path, Side.MACHINE, text)


def backups(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Find that no backup of late can be restored, where backups are wanted."""
    found = facts.backup
    if found is not None and found.age_s is None:
        yield Fault("backups", Side.PLATFORM, f"{found.place} has no complete backup")
    elif found is not None and found.age_s is not None and found.age_s > found.most_s:
        text = f"the newest backup in {found.place} was made {duration(found.age_s)} ago"
        yield Fault("backups", Side.PLATFORM, text, found.age_s)


def replicas(facts: Facts, _rules: VitalsSettings) -> Iterator[Fault]:
    """Return the servers of the station state as one: with a silent leader all followers are late."""
    if facts.replica_problems:
        yield Fault("station state", Side.PLATFORM, f"station state: {'; '.join(facts.replica_problems)}")

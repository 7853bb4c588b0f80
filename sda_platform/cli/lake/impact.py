"""`sda lake impact`: what rests on an input, and what the alerts would be without it, as text."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Console

from sda_platform import audit_log
from sda_platform.cli.lake.replay import commits_bar
from sda_platform.cli.lake.session import session_of
from sda_platform.cli.people import lake_of
from sda_platform.clock import iso
from sda_platform.definitions import default_resources
from sda_platform.history.impact import Impact
from sda_platform.history.recomputed_alerts import AlertState, RecomputedImpact, recompute_impact
from sda_platform.lake.correction_log import RETRACT
from sda_platform.registry import TABLES_BY_NAME
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.settings import Settings


def run_recompute(
    settings: Settings, console: Console, found: Impact, corrected: bytes | None, since_ns: int | None
) -> RecomputedImpact:
    """Make again what rests on an input, in a shadow that is removed at the end; leaves an event in the audit log.

    Raises the errors of `recompute_impact`, and EngineUnavailable.
    """
    place = temporary_shadow(settings.lake_uri, "impact")
    with place as uri, session_of(settings) as session, commits_bar(console) as report:
        lake = lake_of(settings, session, "impact")
        resources = default_resources(settings)
        made = recompute_impact(
            lake, TABLES_BY_NAME, found, uri, resources, corrected=corrected, since_ns=since_ns, report=report
        )
    arguments = {"source": found.name, "corrected": corrected is not None}
    audit_log.record(settings.home, "impact", arguments, made.summary)
    return made


def impact_lines(found: Impact) -> Iterator[str]:
    """Write what rests on an input: rows, alerts, and commits of each table with the command that repeats them."""
    yield f"{found.kind} {found.name}: " + ", ".join(f"{count:,} rows of {name}" for name, count in found.rows.items())
    alerts = {event_id: list(rows) for event_id, rows in groupby(found.alerts, lambda row: row["event_id"])}
    if found.is_followed:
        yield f"alerts that rest on it: {len(alerts):,}, with {len(found.alerts):,} of their revisions"
    else:
        yield "alerts do not name such rows: those of the commits of conjunction_alerts below may rest on it"
    for event_id, rows in alerts.items():
        last, revisions = rows[-1], _ranges(sorted({row["sequence"] for row in rows}))
        fate = "withdrawn" if last["op"] == RETRACT else f"last {last['risk']} as of {iso(last['as_of_ns'])}"
        yield f"  {event_id[:8]}  {last['norad_id_1']} – {last['norad_id_2']}  revisions {revisions}, {fate}"
    yield "commits that read it, directly or through other tables; to verify them:"
    for each in found.tables:
        yield f"  {each.table}: {_ranges(each.sequences)}; {each.replay_command}"


def recomputed_lines(found: RecomputedImpact, *, is_corrected: bool) -> Iterator[str]:
    """Write what would have become of each alert."""
    how = "with the correction" if is_corrected else "without it"
    how += "" if found.since_ns is None else f" from {iso(found.since_ns)} on (--since all: from its begin)"
    yield f"{how}, {sum(found.commits.values()):,} commits made again: {found.summary}"
    for alert in found.alerts:
        yield f"  {alert.event_id[:8]}  {alert.norad_id_1} – {alert.norad_id_2}  {alert.verdict}"
        yield from (f"    {side:6}  {_state(state)}" for side, state in alert.sides().items())


def _state(state: AlertState | None) -> str:
    if state is None:
        return "no alert"
    pc = "of others only" if state.collision_probability is None else f"{state.collision_probability:.3g}"
    return (
        f"{state.risk}, Pc {pc}, miss {state.miss_distance_km:.3f} km, "
        f"TCA {iso(state.tca_time_ns)}, {state.status or 'open'}, revision {state.revisions - 1}"
    )


def _ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as text: 1–3, 7."""
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]))
    ends = ((run[0][1], run[-1][1]) for run in runs)
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ends)

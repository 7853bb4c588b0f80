"""`sda top`: the platform at a glance, again and again: rates, pools, latency, backlog, vitals."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from sda_platform.cli.listing import grid, number, word
from sda_platform.cli.people import console
from sda_platform.clock import iso
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import Facts
from sda_platform.observability.vitals.faults import VitalState
from sda_platform.registry import TABLES
from sda_platform.runtime.watchdog import current_facts
from sda_platform.settings import Settings

_RECENT_S = 60.0
_MOST_COMMITS = 100


@dataclass(frozen=True)
class TableActivity:
    """A table over the last minute (wall): commits, rows, and how long plan to commit took at the median."""

    table: str
    age_s: float | None
    commits: int
    rows: int
    took_s: float | None


def run_top(settings: Settings, lake: Lake, *, interval_s: float, once: bool) -> None:
    """Print one frame, or show a new one every ``interval_s`` seconds until Ctrl-C."""
    if once:
        console.print(frame(settings, lake))
        return
    live = Live(frame(settings, lake), console=console, screen=True, auto_refresh=False)
    with suppress(KeyboardInterrupt), live:
        while True:
            time.sleep(interval_s)
            live.update(frame(settings, lake), refresh=True)


def frame(settings: Settings, lake: Lake) -> Group:
    """Draw one frame of the display."""
    facts = current_facts(settings)
    wall_s = time.time()  # deterministic: shown to people; no row of the lake holds it
    activities = [activity(lake, table.name, lake.log(table).commits(_MOST_COMMITS), wall_s) for table in TABLES]
    head = Text(f"mission time {iso(facts.now_ns)}")
    below = (*_source_grid(settings), _vital_lines(settings, facts))
    zones, runs = grid(_ZONE_COLUMNS, facts.backlogs.items()), grid(_RUN_COLUMNS, facts.runs or ())
    return Group(head, grid(_ACTIVITY_COLUMNS, activities), Text(""), zones, Text(""), runs, *below)


def activity(lake: Lake, table: str, newest: list[Commit], wall_s: float) -> TableActivity:
    """Return the rates of ``table`` in the minute before ``wall_s`` (Unix seconds), from its ``newest`` commits.

    The time of the commit counts: a run that takes a minute commits what it planned a minute ago.
    """
    recent = [commit for commit in newest if commit.timestamp_ms / 1e3 > wall_s - _RECENT_S]
    planned = [(commit, lake.clock.wall_ns(commit.manifest.as_of_ns)) for commit in newest[:10]]
    took = sorted(commit.timestamp_ms / 1e3 - wall_ns / 1e9 for commit, wall_ns in planned if wall_ns is not None)
    age_s = max(wall_s - newest[0].timestamp_ms / 1e3, 0.0) if newest else None
    rows = sum(commit.rows_written for commit in recent)
    return TableActivity(table, age_s, len(recent), rows, max(took[len(took) // 2], 0.0) if took else None)


def _source_grid(settings: Settings) -> list[Any]:
    from sda_platform.cli.collector.report import read_report, source_grid
    from sda_platform.runtime.errors import PlatformError

    try:
        report: Mapping[str, Any] = read_report(settings.home)
    except PlatformError:
        return []
    return [Text(""), source_grid(dict(report))]


def _vital_lines(settings: Settings, facts: Facts) -> Text:
    readings = evaluate(facts, settings.vitals)
    red = [each for each in readings if each.state is VitalState.RED]
    lines = Text("\n")
    for each in red:
        lines.append(f"red: {each}\n", style="red")
    lines.append(f"{len(red)} of {len(readings)} vitals are red")
    return lines


_ACTIVITY_COLUMNS = (
    word("table", "table"),
    number("commits/min", "commits"),
    number("rows/s", lambda table: f"{table.rows / 60:,.1f}"),
    number("committed", lambda table: "never" if table.age_s is None else f"{table.age_s:,.0f} s ago"),
    number("plan to commit", lambda table: "–" if table.took_s is None else f"{table.took_s:.2f} s"),
)
_ZONE_COLUMNS = (
    word("landing zone", lambda zone: zone[0]),
    number("pending", lambda zone: f"{zone[1].segments:,}"),
    number("oldest", lambda zone: "–" if zone[1].oldest_s is None else f"{zone[1].oldest_s:,.0f} s"),
)
_RUN_COLUMNS = (
    word("run", lambda run: run.run_id[:8]),
    word("pool", "pool"),
    word("state", "state"),
    number("for", lambda run: f"{run.age_s:,.0f} s"),
)

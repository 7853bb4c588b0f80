"""`sda alert trace`: when the batches of an alert were where."""

from pathlib import Path

import click

from sda_platform.clock import iso
from sda_platform.lake.lake import Lake
from sda_platform.observability.otlp import export
from sda_platform.observability.timeline import AlertTimeline, timelines
from sda_platform.observability.timeline_page import page
from sda_platform.observability.trace import Trace


def write_timelines(lake: Lake, found: Trace, path: Path) -> None:
    """Write the page of an alert's timelines to ``path``. Raises OSError."""
    last = found.alerts[-1]
    pair = " – ".join(f"{last[f'object_name_{n}']} ({last[f'norad_id_{n}']})" for n in (1, 2))
    title = f"Alert {found.alert_id[:8]}: {pair}, TCA {iso(last['tca_time_ns'])}"
    path.write_text(page(_of(lake, found), title))
    click.echo(f"drawn: {path}", err=True)


def send_timelines(lake: Lake, found: Trace, endpoint: str) -> None:
    """Export an alert's timelines to the OpenTelemetry collector at ``endpoint``. Raises ClickException."""
    for each in _of(lake, found):
        if problem := export(endpoint, each):
            raise click.ClickException(problem)


def _of(lake: Lake, found: Trace) -> list[AlertTimeline]:
    return timelines(lake, found.alert_id, [row["commit_sequence"] for row in found.deliveries])

"""`sda alert trace`: an alert's story down to its raw records, and when the batches of it were where."""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from sda_platform.clock import iso
from sda_platform.conjunction.alert_policy import reported
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.observability.otlp import export
from sda_platform.observability.timeline import AlertTimeline, timelines
from sda_platform.observability.timeline_page import page
from sda_platform.observability.trace import Trace


def trace_lines(trace: Trace) -> Iterator[str]:
    """An alert's story, newest statement first, down to segments and records."""
    last = trace.alerts[-1]
    pair = [f"{last[f'object_name_{n}']} ({last[f'norad_id_{n}']})" for n in (1, 2)]
    yield f"alert {trace.alert_id}: {pair[0]} – {pair[1]}"
    for row in trace.alerts:
        miss = f"miss {row['miss_distance_km']:.3f} km at {iso(row['tca_time_ns'])}"
        facts = f"{reported(row)}, {miss}"
        why = f" ({row['change']})" if row["op"] == INSERT and row["change"] else ""
        yield f"  {row['op']} {row['sequence']} as of {iso(row['as_of_ns'])}: {row['risk']}, {facts}{why}"
    for row in trace.deliveries:
        batch = f"batch {row['batch_id']}"
        yield f"  delivered {row['op']} {row['sequence']} to {row['subscriber']}: {row['outcome']} ({batch})"
    for row in trace.candidates:
        yield f"  candidate {row['op']} {row['sequence']}: miss {row['miss_distance_km']:.3f} km by both element sets"
    for row in trace.elements:
        yield f"  elements of {row['norad_id']}: epoch {iso(row['epoch_time_ns'])}, {_where(row)}"
    for row in sorted((r for r in trace.tracks if r["op"] == INSERT), key=itemgetter("epoch_time_ns")):
        kinds = f"{row['radar_count']} radar, {row['optical_count']} optical, {row['isl_count']} ISL"
        yield f"  track of {row['norad_id']} at {iso(row['epoch_time_ns'])}, entry {row['sequence']}: {kinds}"
    for row in sorted(trace.observations, key=itemgetter("sensor_time_ns")):
        yield f"    {row['source_id']} {iso(row['sensor_time_ns'])}: {_where(row)}"
    for each in trace.acknowledgements:
        remark = f": {each['comment']}" if each["comment"] else ""
        when = iso(each["acknowledged_time_ns"])
        yield f"  acknowledged {each['revision']} by {each['acknowledged_by']} at {when}{remark}"
    for row in trace.messages:
        yield f"  {row['originator']} reported the same encounter, message {row['message_id']}: {_where(row)}"


def _where(row: dict[str, Any]) -> str:
    sender = row.get("source_name")
    came = f", from {sender}" + (f" at {row['peer']}" if row["peer"] else "") if sender else ""
    return f"segment {row['segment_name']} record {row['record_number']} (sha256 {row['segment_sha256'][:12]}…){came}"


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

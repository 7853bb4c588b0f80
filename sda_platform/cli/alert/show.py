"""`sda alert show`: one alert with objects, TCA, miss distance, risk level, and the history of its assessments."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from rich.table import Table as Grid

from sda_platform.catalog.held_lookup import newer_held_sets, why_held
from sda_platform.cli.listing import grid, number, word, words
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import known_actions
from sda_platform.conjunction.alert_policy import reported, why_level
from sda_platform.conjunction.currency import Currency
from sda_platform.conjunction.data_origins import SHORT_KINDS, DataOrigin, Key, of_whom
from sda_platform.conjunction.encounter_facts import action_row
from sda_platform.conjunction.event_plot import event_picture, risks_picture
from sda_platform.conjunction.history import EventHistory
from sda_platform.conjunction.state_choice import error_distribution, why_state
from sda_platform.formats.markings import Marking, of_event
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.observability.trace import Trace
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.tasking.reports import words_of_task


def alert_lines(
    trace: Trace,
    history: EventHistory,
    origins: Mapping[Key, DataOrigin] = MappingProxyType({}),
    most: int | None = None,
) -> Iterator[str | Grid]:
    """Yield the alert for the terminal: its state, geometry, history, and where to look for more.

    Of assessments and messages the last ``most`` are shown; None: all.
    """
    newest = trace.alerts[-1]
    last = history.last
    status = newest["risk"] if newest["op"] == INSERT else "withdrawn"
    shown = reported({**newest, "collision_probability": last["collision_probability"]})
    yield f"alert {trace.alert_id}: {status}, {shown}"
    yield _marks(of_event(last, newest))
    if newest["op"] == INSERT and (why := why_level(newest)):
        yield f"  level      {status} {why}"
    if why := trace.why_withdrawn:
        yield f"  withdrawn  {why}"
    for place, role in ((1, "primary"), (2, "secondary")):
        source = SHORT_KINDS[last[f"state_source_{place}"]]
        origin = origins.get((trace.alert_id, place))
        data = f", data {of_whom(origin.data)}" if origin and origin.data else ""
        named = f"{last[f'norad_id_{place}']} {last[f'object_name_{place}']}"
        yield f"  {role:<10} {named} (state from its {source}{data})"
        if why := why_state(last, place):
            yield f"  {'':<10} because {why}"
        if errors := error_distribution(last, place):
            yield f"  {'':<10} errors with {errors}"
        if last["radius_source_1"]:
            yield f"  {'':<10} hard-body radius {last[f'radius_{place}_m']:g} m ({last[f'radius_source_{place}']})"
    ahead_h = (last["tca_time_ns"] - last["as_of_ns"]) / 3.6e12
    yield f"  TCA        {iso(last['tca_time_ns'])}, {ahead_h:.1f} h after the last assessment"
    parts = ", ".join(
        f"{n} {last[f'{n}_miss_km'.replace('-', '_')]:+.3f}" for n in ("radial", "in-track", "cross-track")
    )
    yield f"  miss       {last['miss_distance_km']:.3f} km ({parts}) at {last['relative_speed_km_s']:.2f} km/s"
    yield (
        f"  risk       {last['mahalanobis_distance']:.2f} sigma, hard body {last['hard_body_radius_m']:.1f} m, "
        f"largest Pc {probability_text(last['maximum_probability'])}"
    )
    yield ""
    yield _history_grid(history, most)
    if history.opinions:
        yield ""
        yield _opinions_grid(history.opinions, last["tca_time_ns"], most)
    yield ""
    for each in trace.tasks if most is None else trace.tasks[-most:]:
        when = _minute(each["start_time_ns"])
        yield f"  tasked     {each['source_id']} at {when} for {each['norad_id']}: {words_of_task(each)}"
    yield (
        f"  delivered {len(trace.deliveries)} times; rests on {trace.rests_on}; sda alert trace {trace.alert_id[:8]}"
    )


def stated_lines(trace: Trace, currency: Currency, most: int | None = None) -> Iterator[str | Grid]:
    """An alert that we have not assessed: only received messages have its event; the last ``most`` are shown."""
    newest = trace.alerts[-1]
    why = currency.why_unassessed(newest["tca_time_ns"])
    status = newest["risk"] if newest["op"] == INSERT else "withdrawn"
    yield f"alert {trace.alert_id}: {status}, {reported(newest)}"
    yield _marks(Marking.of(newest))
    if why := trace.why_withdrawn:
        yield f"  withdrawn  {why}"
    for place, role in ((1, "primary"), (2, "secondary")):
        yield f"  {role:<10} {newest[f'norad_id_{place}'] or ''} {newest[f'object_name_{place}']}"
    yield f"  TCA        {iso(newest['tca_time_ns'])}"
    yield f"  miss       {newest['miss_distance_km']:.3f} km, as {newest['stated_by']} states"
    yield f"  own        {why}; {currency}"
    yield ""
    yield _opinions_grid(trace.messages, newest["tca_time_ns"], most)


def _marks(marking: Marking) -> str:
    classification, data_mode = (mark or "not known" for mark in marking)
    return f"  marked     classification {classification}, data mode {data_mode}"


def held_lines(lake: Lake, last: Mapping[str, Any]) -> Iterator[str]:
    """Yield the held element sets of both objects that are newer than the sets that the assessment may rest on."""
    for each in newer_held_sets(lake, [number for n in (1, 2) if (number := last[f"norad_id_{n}"])]):
        yield f"  newer data of {each['norad_id']}: {why_held(each)}; sda catalog held"


def action_lines(lake: Lake, landing_uri: str, alert_id: str) -> Iterator[str]:
    """Yield the hand-over log of an alert."""
    for each in known_actions(lake, landing_uri, [alert_id]).get(alert_id, ()):
        when, who, what, remark = action_row(each)
        yield f"  {when[:19]}Z {who} {what}{f': {remark}' if remark else ''}"


def write_picture(histories: Sequence[EventHistory], path: Path) -> None:
    """Write as PNG the picture of an alert, or Pc over time of several. Raises ClickException."""
    if path.suffix.lower() != ".png":
        raise click.ClickException(f"{path}: a picture is written as .png")
    try:
        path.write_bytes(event_picture(histories[0]) if len(histories) == 1 else risks_picture(histories))
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from None


def _history_grid(history: EventHistory, most: int | None) -> Grid:
    tca_ns = [row["tca_time_ns"] for row in history.assessments]
    moved_ns = (0, *(after - before for before, after in pairwise(tca_ns)))
    rows = list(zip(history.assessments, history.hours_to_tca, history.levels, moved_ns, strict=True))
    columns = (
        word("as of (UTC)", lambda each: _minute(each[0]["as_of_ns"])[5:]),
        number("h to\nTCA", lambda each: f"{each[1]:.2f}"),
        number("TCA\nmoved s", lambda each: f"{each[3] / 1e9:+.3f}"),
        number("miss km", lambda each: f"{each[0]['miss_distance_km']:.3f}"),
        number("Pc", lambda each: probability_text(each[0]["collision_probability"])),
        word("level", lambda each: each[2]),
        word("states", lambda each: " ".join(SHORT_KINDS[each[0][f"state_source_{n}"]] for n in (1, 2))),
    )
    levels = ", ".join(f"{level} from {pc:g}" for level, pc in history.thresholds.items())
    caption = f"level: of an alert by the policy in force, by Pc {levels}"
    if any("assumed" in row[f"state_source_{n}"] for row in history.assessments for n in (1, 2)):
        caption += "; *: its author states no covariance, that of element sets is assumed"
    if not history.is_current:
        caption += "; the event is gone: no screening finds it any more"
    kept, hidden = _last(rows, most)
    return grid(columns, kept, f"{hidden} assessments, see --all; {caption}" if hidden else caption)


def _last(rows: Sequence[Any], most: int | None) -> tuple[Sequence[Any], str]:
    """Return the last rows, and how many are left out in words; empty: none."""
    kept = rows if most is None else rows[-most:]
    return kept, f"without {len(rows) - len(kept):,} earlier" if len(kept) < len(rows) else ""


def _opinions_grid(messages: Sequence[Mapping[str, Any]], tca_ns: int, most: int | None) -> Grid:
    """Received messages: TCA against ``tca_ns``, their stated Pc, and the Pc that we compute from their states."""
    columns = (
        words("originator", lambda row: row["originator"] or "unknown"),
        word("created (UTC)", lambda row: _minute(row["created_time_ns"])),
        number("TCA differs s", lambda row: f"{(row['tca_time_ns'] - tca_ns) / 1e9:+.3f}"),
        number("miss km", lambda row: f"{row['miss_distance_km']:.3f}"),
        number("stated Pc", lambda row: _probability(row["stated_probability"])),
        number("recomputed Pc", lambda row: _probability(row["recomputed_probability"])),
        words("message", "message_id"),
    )
    kept, hidden = _last(messages, most)
    left = sorted({text for row in messages if (text := row.get("superseded"))})
    remarks = [f"{hidden} messages, see --all"] if hidden else []
    remarks += [f"messages before this count no more: {', '.join(left)}"] if left else []
    return grid(columns, kept, "; ".join(remarks))


def _minute(time_ns: int | None) -> str:
    return "unknown" if time_ns is None else iso(time_ns)[:19].replace("T", " ")


def _probability(value: float | None) -> str:
    return "none" if value is None else probability_text(value)

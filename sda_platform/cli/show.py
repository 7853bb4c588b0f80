"""`sda show`: one alert with objects, TCA, miss distance, risk level, and the history of its assessments."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.table import Table as Grid

from sda_platform.clock import iso
from sda_platform.conjunction.alert_policy import reported
from sda_platform.conjunction.data_origins import SHORT_KINDS, DataOrigin, Key
from sda_platform.conjunction.event_plot import event_picture
from sda_platform.conjunction.history import EventHistory
from sda_platform.lake.correction_log import INSERT
from sda_platform.observability.trace import Trace

_PROBABILITIES = ("stated_probability", "recomputed_probability")


class PictureError(ValueError):
    """A picture that cannot be written; the text has the file and the reason."""


def alert_lines(
    trace: Trace, history: EventHistory, origins: Mapping[Key, DataOrigin] = MappingProxyType({})
) -> Iterator[str | Grid]:
    """The alert for the terminal: its state, geometry, history, and where to look for more."""
    newest = trace.alerts[-1]
    last = history.last
    status = newest["risk"] if newest["op"] == INSERT else "withdrawn"
    yield f"alert {trace.alert_id}: {status}, Pc {last['collision_probability']:.2e}"
    for number, role in ((1, "primary"), (2, "secondary")):
        source = SHORT_KINDS[last[f"state_source_{number}"]]
        origin = origins.get((trace.alert_id, number))
        data = f", data of {origin.data}" if origin and origin.data else ""
        named = f"{last[f'norad_id_{number}']} {last[f'object_name_{number}']}"
        yield f"  {role:<10} {named} (state from its {source}{data})"
        if last["radius_source_1"]:
            yield f"  {'':<10} hard-body radius {last[f'radius_{number}_m']:g} m ({last[f'radius_source_{number}']})"
    ahead_h = (last["tca_time_ns"] - last["as_of_ns"]) / 3.6e12
    yield f"  TCA        {iso(last['tca_time_ns'])}, {ahead_h:.1f} h after the last assessment"
    parts = ", ".join(
        f"{n} {last[f'{n}_miss_km'.replace('-', '_')]:+.3f}" for n in ("radial", "in-track", "cross-track")
    )
    yield f"  miss       {last['miss_distance_km']:.3f} km ({parts}) at {last['relative_speed_km_s']:.2f} km/s"
    yield (
        f"  risk       {last['mahalanobis_distance']:.2f} sigma, hard body {last['hard_body_radius_m']:.1f} m, "
        f"largest Pc {last['maximum_probability']:.2e}"
    )
    yield ""
    yield _history_grid(history)
    if history.opinions:
        yield ""
        yield _opinions_grid(history.opinions, last["tca_time_ns"])
    yield ""
    yield (
        f"  delivered {len(trace.deliveries)} times; rests on {len(trace.elements)} element sets, "
        f"{len({row['fit_id'] for row in trace.tracks})} tracks and {len(trace.observations)} observations: "
        f"sda trace {trace.alert_id[:8]}"
    )


def stated_lines(trace: Trace) -> Iterator[str | Grid]:
    """An alert that we have not assessed: only received messages have its event."""
    newest = trace.alerts[-1]
    status = newest["risk"] if newest["op"] == INSERT else "withdrawn"
    yield f"alert {trace.alert_id}: {status}, {reported(newest)}"
    for number, role in ((1, "primary"), (2, "secondary")):
        yield f"  {role:<10} {newest[f'norad_id_{number}'] or ''} {newest[f'object_name_{number}']} (not screened here)"
    yield f"  TCA        {iso(newest['tca_time_ns'])}"
    yield f"  miss       {newest['miss_distance_km']:.3f} km, as {newest['stated_by']} states"
    yield "  Our screening has no such event: the objects' element sets, or the screening volume, differ."
    yield ""
    yield _opinions_grid(trace.messages, newest["tca_time_ns"])


def write_picture(history: EventHistory, path: Path) -> None:
    """Write the alert's picture as PNG. Raises PictureError."""
    if path.suffix.lower() != ".png":
        raise PictureError(f"{path}: a picture is written as .png")
    try:
        path.write_bytes(event_picture(history))
    except OSError as error:
        raise PictureError(f"{path}: cannot be written: {error.strerror}") from None


def _history_grid(history: EventHistory) -> Grid:
    headers = ("as of (UTC)", "h to\nTCA", "TCA\nmoved s", "miss km", "Pc", "level", "states")
    grid = Grid(*headers, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in grid.columns:
        column.justify = "left" if column.header in {"as of (UTC)", "level", "states"} else "right"
        column.no_wrap = True
    before_ns = history.assessments[0]["tca_time_ns"]
    for row, hours, level in zip(history.assessments, history.hours_to_tca, history.levels, strict=True):
        grid.add_row(
            iso(row["as_of_ns"])[5:19].replace("T", " "),
            f"{hours:.2f}",
            f"{(row['tca_time_ns'] - before_ns) / 1e9:+.3f}",
            f"{row['miss_distance_km']:.3f}",
            f"{row['collision_probability']:.2e}",
            level,
            " ".join(SHORT_KINDS[row[f"state_source_{number}"]] for number in (1, 2)),
        )
        before_ns = row["tca_time_ns"]
    levels = ", ".join(f"{level} from {pc:g}" for level, pc in history.thresholds.items())
    grid.caption = f"level: of an alert by the policy in force, by Pc {levels}"
    if any("assumed" in row[f"state_source_{n}"] for row in history.assessments for n in (1, 2)):
        grid.caption += "; *: its author states no covariance, that of element sets is assumed"
    if not history.is_current:
        grid.caption += "; the event is gone: no screening finds it any more"
    grid.caption_justify = "left"
    return grid


def _opinions_grid(messages: Sequence[Mapping[str, Any]], tca_ns: int) -> Grid:
    """Received messages: TCA against ``tca_ns``, their stated Pc, and the Pc that we compute from their states."""
    grid = Grid(
        "originator", "created (UTC)", "TCA differs s", "miss km", "stated Pc", "recomputed Pc", "message", box=None
    )
    for column in grid.columns:
        column.justify = "left" if column.header in {"originator", "created (UTC)", "message"} else "right"
    for row in messages:
        grid.add_row(
            row["originator"] or "unknown",
            "unknown" if row["created_time_ns"] is None else iso(row["created_time_ns"])[:19].replace("T", " "),
            f"{(row['tca_time_ns'] - tca_ns) / 1e9:+.3f}",
            f"{row['miss_distance_km']:.3f}",
            *("none" if row[name] is None else f"{row[name]:.2e}" for name in _PROBABILITIES),
            row["message_id"] or "",
        )
    return grid

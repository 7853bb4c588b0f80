"""The failover of uplinks as a picture: who was active when, and what was seen of each path."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from sda_platform.formats.ground_events import LINK_EVENTS
from sda_platform.ground_segment.links import terms

_MARKS = {
    "suspected": ("v", "#f9a825"),
    "declared": ("X", "#c62828"),
    "recovered": ("^", "#2e7d32"),
    "promoted": ("P", "#1565c0"),
    "failed_back": ("P", "#6a1b9a"),
    "deposed": ("s", "#757575"),
}
_MOST_EVENTS = 400
_MINUTE_NS = 60_000_000_000


def timeline(events: Sequence[Mapping[str, Any]]) -> str | None:
    """Markdown of the last events of all uplinks over the minutes before the newest; None where there are none."""
    found = sorted((e for e in events if e["event"] in LINK_EVENTS), key=lambda e: e["event_time_ns"])[-_MOST_EVENTS:]
    if not found:
        return None
    newest_ns, oldest_ns = found[-1]["event_time_ns"], found[0]["event_time_ns"]
    rows = sorted({(each["station"], each["uplink"]) for each in found})
    figure = Figure(figsize=(9.0, 1.2 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for term in terms(events):
        if (term.station, term.uplink) in rows:
            start_ns, end_ns = max(term.from_ns, oldest_ns), term.until_ns or newest_ns
            start_min, length_min = (start_ns - newest_ns) / _MINUTE_NS, (end_ns - start_ns) / _MINUTE_NS
            axes.barh(rows.index((term.station, term.uplink)), max(length_min, 0.0), left=start_min, color="#90caf9")
    for name, (mark, colour) in _MARKS.items():
        chosen = [each for each in found if each["event"] == name]
        if chosen:
            times_min = [(each["event_time_ns"] - newest_ns) / _MINUTE_NS for each in chosen]
            places = [rows.index((each["station"], each["uplink"])) for each in chosen]
            axes.scatter(times_min, places, marker=mark, color=colour, s=24, label=name.replace("_", " "), zorder=3)
    axes.set_yticks(range(len(rows)), [f"{station} {uplink}" for station, uplink in rows])
    axes.set_xlabel("minutes before the newest event; bars: active")
    axes.legend(fontsize=7, ncols=6, loc="upper left")
    out = io.BytesIO()
    with mpl.rc_context({"font.size": 8}):
        figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
    return f"![failover of the uplinks](data:image/png;base64,{base64.b64encode(out.getvalue()).decode()})"

"""Pictures of the ground segment: failover of the uplinks, views of the fleet, and rehearsed faults."""

import json
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sda_platform.clock import utc
from sda_platform.foreign_text import Markdown, in_figure
from sda_platform.formats.ground_events import LINK_EVENTS
from sda_platform.formats.membership_events import STATUS_NAMES
from sda_platform.ground.links import terms
from sda_platform.plots import figure_in_markdown
from sda_platform.units import MINUTE_NS

_MARKS = {
    "suspected": ("v", "#f9a825"),
    "declared": ("X", "#c62828"),
    "recovered": ("^", "#2e7d32"),
    "promoted": ("P", "#1565c0"),
    "failed_back": ("P", "#6a1b9a"),
    "deposed": ("s", "#757575"),
}
_MOST_EVENTS = 400
_COLOURS: Final = ("#eeeeee", "#66bb6a", "#f9a825", "#c62828", "#90a4ae")
_NAMES: Final = ("no claim", *STATUS_NAMES)
_MOST_LABELS: Final = 40
_OF_FAULTS: Final = ("#1565c0", "#f9a825", "#6a1b9a", "#2e7d32", "#00838f", "#6d4c41")


def timeline(events: Sequence[Mapping[str, Any]]) -> Markdown | None:
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
            start_min, length_min = (start_ns - newest_ns) / MINUTE_NS, (end_ns - start_ns) / MINUTE_NS
            axes.barh(rows.index((term.station, term.uplink)), max(length_min, 0.0), left=start_min, color="#90caf9")
    for name, (mark, colour) in _MARKS.items():
        chosen = [each for each in found if each["event"] == name]
        if chosen:
            times_min = [(each["event_time_ns"] - newest_ns) / MINUTE_NS for each in chosen]
            places = [rows.index((each["station"], each["uplink"])) for each in chosen]
            axes.scatter(times_min, places, marker=mark, color=colour, s=24, label=name.replace("_", " "), zorder=3)
    axes.set_yticks(range(len(rows)), [in_figure(f"{station} {uplink}") for station, uplink in rows])
    axes.set_xlabel("minutes before the newest event; bars: active")
    axes.legend(fontsize=7, ncols=6, loc="upper left")
    return figure_in_markdown(figure, "failover of the uplinks")


def views_picture(fleet: Sequence[Mapping[str, Any]]) -> Markdown | None:
    """Markdown of the newest claim of each observer (rows) about each member (columns); None without any claim."""
    members = [row["member"] for row in fleet]
    views = {row["member"]: json.loads(row["views"]) for row in fleet}
    observers = sorted({observer for each in views.values() for observer in each})
    if not observers:
        return None
    held = np.zeros((len(observers), len(members)), dtype=int)
    for column, member in enumerate(members):
        for observer, (_, status, *_) in views[member].items():
            held[observers.index(observer), column] = 1 + status
    figure = Figure(figsize=(9.0, min(1.6 + 0.22 * len(observers), 9.0)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(held, cmap=ListedColormap(_COLOURS), vmin=0, vmax=len(_COLOURS) - 1, aspect="auto")
    axes.set_xticks(*_ticks(members), rotation=90)
    axes.set_yticks(*_ticks(observers))
    axes.set_xlabel("member")
    axes.set_ylabel("observer")
    patches = [Patch(color=colour, label=name) for colour, name in zip(_COLOURS, _NAMES, strict=True)]
    figure.legend(handles=patches, ncols=len(patches), loc="outside upper left", fontsize=7)
    return figure_in_markdown(figure, "views of the fleet's members")


def _ticks(names: Sequence[str]) -> tuple[range, list[str]]:
    """Places and labels, as many as can be read."""
    places = range(0, len(names), -(-len(names) // _MOST_LABELS))
    return places, [in_figure(names[place]) for place in places]


def game_days_picture(rows: Sequence[Mapping[str, Any]]) -> Markdown:
    """Markdown of the time to detect and to recover of each rehearsed fault, over nights; a cross: not in time."""
    faults = sorted({row["fault"] for row in rows})
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for place, (column, bound, what) in zip(
        axes,
        (("detected_after_s", "detect_within_s", "detect"), ("recovered_after_s", "recover_within_s", "recover")),
        strict=True,
    ):
        for fault, colour in zip(faults, cycle(_OF_FAULTS), strict=False):
            nights = [row for row in rows if row["fault"] == fault and not row["skipped"]]
            # A bound of 0: it is well that there is no time.
            nights = [row for row in nights if row[bound] or row[column] is not None]
            times = [utc(row["started_time_ns"]) for row in nights]
            done = [row[column] is not None for row in nights]
            shown_s = [row[bound] if row[column] is None else row[column] for row in nights]
            place.plot(times, shown_s, color=colour, marker=".", linewidth=0.8, label=in_figure(fault))
            late = [pair for pair, is_done in zip(zip(times, shown_s, strict=True), done, strict=True) if not is_done]
            place.scatter([at for at, _ in late], [at_s for _, at_s in late], marker="X", color="#c62828", zorder=3)
        place.set_ylabel(f"time to {what}, s")
        place.set_ylim(bottom=0.0)
        place.tick_params(axis="x", rotation=30)
    axes[0].legend(fontsize=7)
    return figure_in_markdown(figure, "time to detect and to recover of rehearsed faults")

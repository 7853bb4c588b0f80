"""The schedule as pictures: observations of each sensor (Gantt chart) and directions of the antennas (sky plot)."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

_COLOURS = {0: "#c62828", 1: "#f9a825", 2: "#607d8b"}
_NAMES = {0: "class 0: red alerts", 1: "class 1", 2: "class 2: upkeep"}
_HOUR_NS = 3_600_000_000_000


def gantt_chart(tasks: Sequence[Mapping[str, Any]], as_of_ns: int) -> str:
    """Markdown of the observations of each sensor over the hours from ``as_of_ns``; ``tasks`` are scheduled rows."""
    sensors = sorted({task["source_id"] for task in tasks})
    figure = Figure(figsize=(9.0, 1.2 + 0.22 * len(sensors)), layout="constrained")
    axes = figure.subplots()
    for priority_class, colour in _COLOURS.items():
        chosen = [task for task in tasks if task["priority_class"] == priority_class]
        start_h = [(task["start_time_ns"] - as_of_ns) / _HOUR_NS for task in chosen]
        length_h = [(task["end_time_ns"] - task["start_time_ns"]) / _HOUR_NS for task in chosen]
        place = [sensors.index(task["source_id"]) for task in chosen]
        axes.barh(place, length_h, left=start_h, color=colour, label=f"{_NAMES[priority_class]} ({len(chosen)})")
    axes.set_yticks(range(len(sensors)), sensors)
    axes.set_xlabel("hours ahead")
    axes.grid(axis="x", linewidth=0.3)
    axes.legend(fontsize=7, ncols=3, loc="upper right")
    return _markdown(figure, "observations of each sensor")


def sky_plot(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Markdown of where the antennas begin, culminate and end, north up, the zenith in the middle."""
    figure = Figure(figsize=(4.6, 4.6), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar")
    for task in tasks:
        azimuth = np.radians([task["azimuth_start_deg"], task["azimuth_end_deg"]])
        zenith_deg = 90.0 - task["max_elevation_deg"]
        axes.plot(azimuth, [zenith_deg, zenith_deg], color=_COLOURS[task["priority_class"]], linewidth=0.8)
    axes.set_rlim(0, 90)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    return _markdown(figure, "directions of the observations")


def _markdown(figure: Figure, caption: str) -> str:
    out = io.BytesIO()
    with mpl.rc_context({"font.size": 8}):
        figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
    return f"![{caption}](data:image/png;base64,{base64.b64encode(out.getvalue()).decode()})"

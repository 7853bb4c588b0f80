"""The schedule and its outcomes as pictures: Gantt chart, sky plot, coverage by the hour, gains."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sda_platform.foreign_text import in_figure
from sda_platform.units import HOUR_NS

_COLOURS = {0: "#c62828", 1: "#f9a825", 2: "#607d8b"}
_NAMES = {0: "class 0: red alerts", 1: "class 1", 2: "class 2: upkeep"}


def gantt_chart(tasks: Sequence[Mapping[str, Any]], as_of_ns: int) -> Figure:
    """Draw the observations of each sensor over the hours from ``as_of_ns``; ``tasks`` are scheduled rows."""
    sensors = sorted({task["source_id"] for task in tasks})
    figure = Figure(figsize=(9.0, 1.2 + 0.22 * len(sensors)), layout="constrained")
    axes = figure.subplots()
    for priority_class, colour in _COLOURS.items():
        chosen = [task for task in tasks if task["priority_class"] == priority_class]
        if not chosen:
            continue
        start_h = [(task["start_time_ns"] - as_of_ns) / HOUR_NS for task in chosen]
        length_h = [(task["end_time_ns"] - task["start_time_ns"]) / HOUR_NS for task in chosen]
        place = [sensors.index(task["source_id"]) for task in chosen]
        axes.barh(place, length_h, left=start_h, color=colour, label=f"{_NAMES[priority_class]} ({len(chosen)})")
    axes.set_yticks(range(len(sensors)), list(map(in_figure, sensors)))
    axes.set_xlabel("hours ahead")
    axes.grid(axis="x", linewidth=0.3)
    axes.legend(fontsize=7, ncols=3, loc="upper right")
    return figure


def sky_plot(tasks: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw where the antennas begin, culminate and end, north up, the zenith in the middle."""
    figure = Figure(figsize=(4.6, 4.6), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar")
    for task in tasks:
        azimuth = np.radians([task["azimuth_start_deg"], task["azimuth_end_deg"]])
        zenith_deg = 90.0 - task["max_elevation_deg"]
        axes.plot(azimuth, [zenith_deg, zenith_deg], color=_COLOURS[task["priority_class"]], linewidth=0.8)
    axes.set_rlim(0, 90)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    return figure


def gains_plot(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the realised against the expected gain of each task that has ended, by sensor; rows of `task_outcomes`."""
    figure = Figure(figsize=(5.0, 4.4), layout="constrained")
    axes = figure.subplots()
    ended = [row for row in rows if row["realised_gain"] is not None]
    for sensor in sorted({row["source_id"] for row in ended}):
        mine = [row for row in ended if row["source_id"] == sensor]
        expected, realised = ([row[f"{name}_gain"] for row in mine] for name in ("expected", "realised"))
        axes.scatter(expected, realised, s=9, label=f"{in_figure(sensor)} ({len(mine)})")
    most = max([1.0, *(max(row["expected_gain"], row["realised_gain"]) for row in ended)])
    axes.plot([0, most], [0, most], color="grey", linewidth=0.5)
    axes.set_xlabel("expected gain")
    axes.set_ylabel("realised gain")
    axes.legend(fontsize=6, loc="upper left")
    return figure


def coverage_map(windows: Sequence[Mapping[str, Any]], tasks: Sequence[Mapping[str, Any]], as_of_ns: int) -> Figure:
    """Draw the requested objects that each sensor can see in each hour ahead; numbers: observations booked."""
    sensors = sorted({each["source_id"] for each in (*windows, *tasks)})
    hours = max(1, -(-max(window["los_time_ns"] - as_of_ns for window in windows) // HOUR_NS))
    seen = np.zeros((len(sensors), hours))
    objects = {
        (sensors.index(window["source_id"]), hour, window["norad_id"])
        for window in windows
        for hour in range(_hour(window["aos_time_ns"], as_of_ns), _hour(window["los_time_ns"], as_of_ns) + 1)
    }
    for sensor, hour, _ in sorted(objects):
        seen[sensor, min(hour, hours - 1)] += 1
    figure = Figure(figsize=(9.0, 1.4 + 0.22 * len(sensors)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(seen, cmap="Blues", aspect="auto", extent=(0, hours, len(sensors) - 0.5, -0.5))
    figure.colorbar(image, label="objects in view")
    booked = Counter((sensors.index(task["source_id"]), _hour(task["start_time_ns"], as_of_ns)) for task in tasks)
    for (sensor, hour), count in booked.items():
        colour = "white" if seen[sensor, min(hour, hours - 1)] > seen.max() / 2 else "black"
        axes.text(hour + 0.5, sensor, str(count), ha="center", va="center", fontsize=6, color=colour)
    axes.set_yticks(range(len(sensors)), list(map(in_figure, sensors)))
    axes.set_xlabel("hours ahead; numbers: observations that begin then")
    return figure


def _hour(time_ns: int, as_of_ns: int) -> int:
    """Return the hour ahead, 0 for what has begun."""
    return max(0, (time_ns - as_of_ns) // HOUR_NS)

"""One picture of a close approach: risk and miss distance over time, geometry in RTN, and values of received CDMs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from sda_platform.clock import iso
from sda_platform.conjunction.cdm_comparison import reported_probability
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.encounter_figures import LEAST_PROBABILITY, draw_received
from sda_platform.conjunction.history import EventHistory
from sda_platform.conjunction.level_colours import LEVEL_COLOURS
from sda_platform.foreign_text import in_figure
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.plots import png_of
from sda_platform.units import DAY_NS

_TRACE = "#90a4ae"
# Of events in one picture: none is like the colour of a level.
_EVENTS = ("#1f5fa8", "#7b3fa0", "#333333", "#0097a7", "#8d6e63", "#c2185b")


def event_picture(history: EventHistory) -> bytes:
    """Draw the event as PNG."""
    return png_of(event_figure(history))


def risks_picture(histories: Sequence[EventHistory]) -> bytes:
    """Draw Pc over time of several events as PNG, as assessed and as received messages state it.

    Each event has a colour; points have that of their level, and an edge in the event's.
    """
    figure = Figure(figsize=(10.5, 6.0), dpi=90, layout="constrained")
    axes = figure.subplots()
    axes.set_prop_cycle(color=_EVENTS)
    for history in histories:
        last = history.last
        names = " – ".join(in_figure(str(last[f"object_name_{n}"] or last[f"norad_id_{n}"])) for n in (1, 2))
        (line,) = axes.plot([], [], "-", linewidth=1.2, label=f"{names}, TCA {iso(last['tca_time_ns'])[:16]}Z")
        _draw_over_time(axes, history, line.get_color())
    for level, threshold in histories[0].thresholds.items():
        label = f"{level} from {threshold:.0e}"
        axes.axhline(threshold, color=LEVEL_COLOURS[level], linewidth=0.8, linestyle=":", label=label)
    axes.xaxis_date()
    title = f"Pc as assessed (points), and as received messages state it (×); ▽: below {LEAST_PROBABILITY:.0e}"
    axes.set(yscale="log", ylabel="probability of collision", xlabel="UTC", title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return png_of(figure)


def _draw_over_time(axes: Axes, history: EventHistory, colour: Any) -> None:
    times = [_moment(time_ns) for time_ns in history.values("as_of_ns")]
    values = history.values("collision_probability")
    axes.plot(times, [max(value, LEAST_PROBABILITY) for value in values], "-", color=colour, linewidth=1.2)
    for time, value, level in zip(times, values, history.levels, strict=True):
        marker = "o" if value >= LEAST_PROBABILITY else "v"
        style = {"markerfacecolor": LEVEL_COLOURS[level], "markeredgecolor": colour, "markersize": 6, "zorder": 3}
        axes.plot([time], [max(value, LEAST_PROBABILITY)], marker, **style)
    stated = [(_moment(reported_ns(each)), reported_probability(each)) for each in history.opinions]
    known = [(time, max(value, LEAST_PROBABILITY)) for time, value in stated if value is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "x--", color=colour, linewidth=0.8, markersize=7)


def _moment(time_ns: int) -> float:
    return time_ns / DAY_NS  # dates of matplotlib are days since 1970


def event_figure(history: EventHistory) -> Figure:
    """Return the picture: Pc with the levels that apply, miss distance, and the geometry at TCA."""
    figure = Figure(figsize=(10.5, 7.0), dpi=90)
    (risk, along), (miss, across) = figure.subplots(2, 2, width_ratios=(3, 2))
    figure.subplots_adjust(left=0.08, right=0.98, top=0.85, bottom=0.08, hspace=0.35, wspace=0.2)
    _risk(risk, history)
    _miss(miss, history)
    _geometry(along, history, ("in_track_miss_km", "in-track"), ("radial_miss_km", "radial"))
    _geometry(across, history, ("cross_track_miss_km", "cross-track"), ("radial_miss_km", "radial"))
    last = history.last
    names = " – ".join(f"{last[f'object_name_{n}']} ({last[f'norad_id_{n}']})" for n in (1, 2))
    figure.suptitle(f"{in_figure(names)}{'' if history.is_current else ' – withdrawn'}\n{_facts(history)}", fontsize=11)
    return figure


def _facts(history: EventHistory) -> str:
    last = history.last
    return (
        f"TCA {iso(last['tca_time_ns'])}, miss {last['miss_distance_km']:.3f} km, "
        f"{last['relative_speed_km_s']:.2f} km/s, "
        f"Pc {probability_text(last['collision_probability'])} ({history.levels[-1]})\n"
        f"{last['mahalanobis_distance']:.2f} sigma, hard body {last['hard_body_radius_m']:.1f} m, "
        f"states: {last['state_source_1']}, {last['state_source_2']}; {len(history.assessments)} assessments"
        f"{_counted(history.opinions)}"
    ).replace("_", " ")


def _counted(opinions: Sequence[Any]) -> str:
    return f", {len(opinions)} received messages" if opinions else ""


def _risk(axes: Axes, history: EventHistory) -> None:
    hours = history.hours_to_tca
    shown = {
        column: [max(value, LEAST_PROBABILITY) for value in history.values(column)]
        for column in ("collision_probability", "maximum_probability")
    }
    axes.plot(hours, shown["maximum_probability"], "--", color=_TRACE, marker="_", label="largest Pc (dilution)")
    axes.plot(hours, shown["collision_probability"], "-", color=_TRACE, zorder=1)
    colours = [LEVEL_COLOURS[level] for level in history.levels]
    axes.scatter(hours, shown["collision_probability"], c=colours, zorder=2, label="Pc")
    draw_received(axes, history, reported_probability)
    for level, pc in history.thresholds.items():
        axes.axhline(pc, color=LEVEL_COLOURS[level], linewidth=0.8, linestyle=":", label=f"{level} from {pc:.0e}")
    axes.set(yscale="log", ylabel="probability of collision", title="risk as the closest approach nears")
    axes.legend(fontsize=8)
    _towards_tca(axes)


def _miss(axes: Axes, history: EventHistory) -> None:
    hours = history.hours_to_tca
    axes.plot(hours, history.values("miss_distance_km"), "o-", color="black", markersize=4, label="miss distance")
    for axis, style in (("radial", ":"), ("in_track", "--"), ("cross_track", "-.")):
        values = [abs(value) for value in history.values(f"{axis}_miss_km")]
        axes.plot(hours, values, style, color=_TRACE, label=f"|{axis.replace('_', '-')}|")
    draw_received(axes, history, lambda message: message["miss_distance_km"])
    axes.set(ylabel="km", ylim=(0, None), title="miss distance and its components")
    axes.legend(fontsize=8)
    _towards_tca(axes)


def _towards_tca(axes: Axes) -> None:
    axes.invert_xaxis()
    axes.set_xlabel("hours to TCA")
    axes.grid(alpha=0.3)


def _geometry(axes: Axes, history: EventHistory, x: tuple[str, str], y: tuple[str, str]) -> None:
    """Where the other object was put at TCA, seen from the protected one: older places fainter."""
    across, up = history.values(x[0]), history.values(y[0])
    axes.plot(across, up, "-", color=_TRACE, linewidth=0.8, zorder=1)
    colour = LEVEL_COLOURS[history.levels[-1]]
    axes.scatter(across, up, c=[to_rgba(colour, alpha) for alpha in np.linspace(0.2, 1.0, len(up))], zorder=2)
    axes.scatter([0], [0], marker="+", s=120, color="black", zorder=3)
    axes.annotate("protected", (0, 0), textcoords="offset points", xytext=(-4, 8), fontsize=8, ha="center")
    axes.set(xlabel=f"{x[1]}, km", ylabel=f"{y[1]}, km", title="the other object at TCA")
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.2)
    axes.grid(alpha=0.3)

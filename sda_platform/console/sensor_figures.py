"""Pictures of a sensor: when it observed, where it looked, and its time-tag bias and residuals."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.plots import svg_of
from sda_platform.units import HOUR_NS

_COLOUR: Final = "#1e88e5"
_QUARTERS: Final = np.linspace(-24, 0, 97)
_MOST_DIRECTIONS: Final = 5_000


def times_figure(times_ns: IntArray, now_ns: int) -> str:
    """Draw how many observations it made in each quarter of an hour of the day before ``now_ns``."""
    figure = Figure(figsize=(6.5, 2.6))
    axes = figure.subplots()
    axes.hist((times_ns - now_ns) / HOUR_NS, bins=_QUARTERS.tolist(), color=_COLOUR)
    axes.set(xlim=(-24, 0), xlabel="hours before now", ylabel="observations in 15 min")
    axes.grid(alpha=0.3)
    return svg_of(figure)


def sky_figure(azimuth_rad: FloatArray, elevation_rad: FloatArray, lowest_deg: float) -> str:
    """Draw the directions of observations (n,), north up and the zenith in the middle, and the lowest elevation."""
    step = max(1, len(azimuth_rad) // _MOST_DIRECTIONS)
    figure = Figure(figsize=(4.6, 4.6))
    axes: Any = figure.add_subplot(projection="polar")
    axes.plot(azimuth_rad[::step], 90 - np.degrees(elevation_rad[::step]), ".", color=_COLOUR, markersize=3)
    axes.plot(np.linspace(0, 2 * np.pi, 181), np.full(181, 90 - lowest_deg), "--", color="#e53935", linewidth=1)
    axes.set_rlim(0, 90)
    axes.set_rgrids([0, 30, 60, 90], ["90°", "60°", "30°", "0°"], angle=22)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    return svg_of(figure)


def bias_figure(rows: Sequence[Mapping[str, Any]], now_ns: int) -> str:
    """Draw the time-tag bias with one sigma, and the residuals in sigmas, of rows of `time_tag_biases`."""
    hours = [(row["term_start_ns"] - now_ns) / HOUR_NS for row in rows]
    figure = Figure(figsize=(6.5, 4.2))
    bias, residual = figure.subplots(2, 1, sharex=True)
    offsets_ms, sigmas_ms = ([1000 * row[name] for row in rows] for name in ("offset_s", "sigma_s"))
    bias.errorbar(hours, offsets_ms, yerr=sigmas_ms, fmt="o", markersize=3, color=_COLOUR)
    bias.axhline(0, color="#888888", linewidth=0.8)
    bias.set(ylabel="bias, ms")
    residual.plot(hours, [row["residual_rms"] for row in rows], "o", markersize=3, color=_COLOUR)
    residual.axhline(1, color="#888888", linewidth=0.8)
    residual.set(ylabel="residuals, sigmas", xlabel="hours before now", ylim=(0, None))
    for axes in (bias, residual):
        axes.grid(alpha=0.3)
    return svg_of(figure)

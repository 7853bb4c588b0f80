"""Plots of the catalogue for the UI: PNG inside Markdown, some kilobytes each."""

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from sda_platform.arrays import FloatArray
from sda_platform.foreign_text import Markdown, in_figure
from sda_platform.plots import figure_in_markdown

_OLDEST_DAYS = 30.0


def ages(age_days: FloatArray, regime: npt.NDArray[np.str_]) -> Markdown:
    """Plot the ages of the sets in force by regime; the last bar has all ages above 30 days."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    axes = figure.subplots()
    names, counts = np.unique(regime, return_counts=True)
    shown = [np.clip(age_days[regime == name], 0, _OLDEST_DAYS) for name in names]
    labels = [f"{name} ({count:,})" for name, count in zip(names, counts, strict=True)]
    axes.hist(shown, bins=30, range=(0, _OLDEST_DAYS), stacked=True, label=labels)
    axes.set(xlabel="age of the set in force, days", ylabel="objects", yscale="log")
    axes.legend(fontsize=7)
    return figure_in_markdown(figure, "ages of element sets by regime")


def altitude_by_inclination(perigee_km: FloatArray, apogee_km: FloatArray, inclination_deg: FloatArray) -> Markdown:
    """Plot the number of objects by altitude and inclination."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    mean_km = np.maximum((perigee_km + apogee_km) / 2, 100.0)
    edges = np.geomspace(150, 60_000, 90)
    image = axes.hist2d(inclination_deg, mean_km, bins=(np.arange(0, 181, 2), edges), norm="log", cmap="viridis")[3]
    axes.set(yscale="log", xlabel="inclination, deg", ylabel="mean altitude, km")
    figure.colorbar(image, label="objects")
    return figure_in_markdown(figure, "objects by altitude and inclination")


def gabbard(title: str, period_min: FloatArray, perigee_km: FloatArray, apogee_km: FloatArray) -> Markdown:
    """Apogee and perigee of the fragments of one event against their period (Gabbard 1971)."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.scatter(period_min, apogee_km, s=6, color="tab:red", label="apogee")
    axes.scatter(period_min, perigee_km, s=6, color="tab:blue", label="perigee")
    axes.set(xlabel="period, min", ylabel="altitude, km", title=f"{in_figure(title)}: {len(period_min):,} fragments")
    axes.grid(linewidth=0.3)
    axes.legend(fontsize=7)
    return figure_in_markdown(figure, f"Gabbard plot of {title}")

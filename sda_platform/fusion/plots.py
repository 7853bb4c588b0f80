"""Plots for the UI: PNG inside Markdown, a few kilobytes each."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from sda_platform.arrays import FloatArray
from sda_platform.foreign_text import Markdown, in_figure
from sda_platform.fusion.association_quality import OUTCOMES, AssociationOutcomes
from sda_platform.fusion.track_states import STATES
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.plots import figure_in_markdown

_OUTCOMES = dict(zip(OUTCOMES, ("tab:green", "tab:orange", "tab:gray"), strict=True))
_COLOURS = dict(zip(STATES, ("tab:orange", "tab:green", "tab:blue", "tab:gray"), strict=True))


def residuals(biases: TimeTagBiases) -> Markdown:
    """Each sensor's residuals in units of their noise, and its time-tag bias."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    place = np.arange(len(biases.source_id))
    left.bar(place, biases.residual_rms, color="tab:blue")
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set_ylabel("residual, in sigmas of its noise")
    right.errorbar(place, biases.offset_s * 1e3, yerr=3 * biases.sigma_s * 1e3, fmt="o", markersize=3, capsize=2)
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set_ylabel("time-tag bias, ms (3 sigma)")
    for axes in (left, right):
        axes.set_xticks(place, list(map(in_figure, biases.source_id.tolist())), rotation=60, ha="right", fontsize=7)
    return figure_in_markdown(figure, "residuals and time-tag bias of each sensor")


def association(associations: AssociationOutcomes) -> Markdown:
    """Shares of association outcomes per sensor and window, and the histogram of chi-square levels."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    sensors, starts_ns = dict(associations.of_sensors()), np.unique(associations.window_start_ns)
    width = 0.8 / len(starts_ns)
    for number, start_ns in enumerate(starts_ns.tolist()):
        place = np.arange(len(sensors)) - 0.4 + (number + 0.5) * width
        outcomes = [sensor.outcome[sensor.window_start_ns == start_ns] for sensor in sensors.values()]
        bottom = np.zeros(len(sensors))
        for outcome, colour in _OUTCOMES.items():
            share = np.array([np.mean(found == outcome) if len(found) else 0.0 for found in outcomes])
            left.bar(place, share, 0.9 * width, bottom, color=colour, label=outcome if number == 0 else None)
            bottom += share
    left.set_xticks(np.arange(len(sensors)), list(map(in_figure, sensors)), rotation=60, ha="right", fontsize=6)
    left.set_ylabel(f"share of observations in each of {len(starts_ns)} windows")
    left.legend(fontsize=6, ncols=3, loc="lower left")
    right.hist(associations.levels, bins=20, range=(0, 1), color="tab:blue")
    right.axhline(len(associations.levels) / 20, color="black", linewidth=0.8)
    right.set(xlabel="chi-square level of the distance", ylabel="objects (line: as expected)")
    return figure_in_markdown(figure, "association of each sensor's observations")


def track_map(longitude_deg: FloatArray, latitude_deg: FloatArray, state: Sequence[str]) -> Markdown:
    """Ground positions (deg) of the tracked objects, by track state."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    states = np.asarray(state)
    for name, colour in _COLOURS.items():
        chosen = states == name
        label = f"{name} ({chosen.sum()})"
        axes.scatter(longitude_deg[chosen], latitude_deg[chosen], s=10, color=colour, label=label)
    axes.set(xlim=(-180, 180), ylim=(-90, 90), xlabel="longitude, deg", ylabel="latitude, deg")
    axes.grid(linewidth=0.3)
    axes.legend(loc="lower left", fontsize=7, ncols=4)
    return figure_in_markdown(figure, "tracks by position and state")


def watermark_trail(minutes: FloatArray, lag_s: Mapping[str, FloatArray], split: Mapping[str, FloatArray]) -> Markdown:
    """Lag of each kind's watermark behind the mission clock, commit by commit, and the split of the newest lag.

    ``minutes`` (n,) before the newest commit; ``lag_s`` by kind (n,), NaN where a kind has no watermark; ``split`` by
    kind (2,): source lag and pipeline lag, s.
    """
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for kind, lag in lag_s.items():
        left.plot(-minutes, lag, marker=".", markersize=3, label=kind)
    left.set(xlabel="minutes to the newest commit", ylabel="behind the mission clock, s", ylim=(0, None))
    left.legend(fontsize=7)
    kinds = list(split)
    theirs, ours = (np.array([split[kind][whose] for kind in kinds]) for whose in (0, 1))
    right.bar(kinds, theirs, label="source lag")
    right.bar(kinds, ours, bottom=theirs, label="pipeline lag")
    right.set_ylabel("median lag of the newest data, s")
    right.legend(fontsize=7)
    return figure_in_markdown(figure, "watermarks and lags")

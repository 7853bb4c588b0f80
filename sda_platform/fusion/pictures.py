"""Small pictures for the UI: PNG inside Markdown, a few kilobytes each."""

import base64
import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from sda_platform.fusion.track_states import STATES
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.tracking.clock_offset import ClockOffsets

_COLOURS = dict(zip(STATES, ("tab:orange", "tab:green", "tab:blue", "tab:gray"), strict=True))


def residuals(clocks: ClockOffsets) -> str:
    """Each sensor's residuals in units of their noise, and how far its clock is off."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    place = np.arange(len(clocks.source_id))
    left.bar(place, clocks.residual_rms, color="tab:blue")
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set_ylabel("residual, in sigmas of its noise")
    right.errorbar(place, clocks.offset_s * 1e3, yerr=3 * clocks.sigma_s * 1e3, fmt="o", markersize=3, capsize=2)
    right.axhline(0.0, color="black", linewidth=0.8)
    right.set_ylabel("clock ahead, ms (3 sigma)")
    for axes in (left, right):
        axes.set_xticks(place, clocks.source_id.tolist(), rotation=60, ha="right", fontsize=7)
    return _markdown(figure, "residuals and clocks of each sensor")


def track_map(longitude_deg: FloatArray, latitude_deg: FloatArray, state: Sequence[str]) -> str:
    """Below which places the tracked objects were last seen, by the state of their tracks."""
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
    return _markdown(figure, "tracks by place and state")


def watermark_trail(minutes: FloatArray, lag_s: Mapping[str, FloatArray], split: Mapping[str, FloatArray]) -> str:
    """How far each kind's watermark trails the mission clock, commit by commit, and whose lag the newest data has.

    ``minutes`` (n,) before the newest commit; ``lag_s`` by kind (n,), NaN where a kind has no watermark; ``split`` by
    kind (2,): the source's lag and ours.
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
    return _markdown(figure, "watermarks and lags")


def _markdown(figure: Figure, caption: str) -> str:
    out = io.BytesIO()
    with mpl.rc_context({"font.size": 8}):
        figure.savefig(out, format="png", dpi=80)
    return f"![{caption}](data:image/png;base64,{base64.b64encode(out.getvalue()).decode()})"

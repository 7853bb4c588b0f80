"""The picture of the dashboard: the queries of each panel, answered by a real Prometheus, where Grafana has the panel.

A panel whose queries find nothing says so, as it does in Grafana.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure

from sda_platform.plots import png_of
from sda_platform_tests.support.prometheus_server import MONITORING, asked

SCRAPE_S: Final = 5
_COLUMNS: Final = 24
_ROW_INCHES, _COLUMN_INCHES = 0.32, 0.62
_MOST_NAMES: Final = 6
Series = tuple[str, list[tuple[float, float]]]


def draw(address: str, since_s: float, path: Path) -> list[str]:
    """Write the dashboard of the time from ``since_s`` to now as a PNG; return the titles of panels without data."""
    panels = json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]
    until_s = time.time()
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = Figure(figsize=(_COLUMNS * _COLUMN_INCHES, rows * _ROW_INCHES), dpi=80)
    empty = []
    for panel in panels:
        place = panel["gridPos"]
        axes = figure.add_axes(
            (
                (place["x"] + 1.2) / _COLUMNS,
                1 - (place["y"] + place["h"] - 1.3) / rows,
                (place["w"] - 1.6) / _COLUMNS,
                (place["h"] - 2.6) / rows,
            )
        )
        axes.set_title(panel["title"], fontsize=9, loc="left")
        found = [each for target in panel["targets"] for each in _series(address, target, since_s, until_s)]
        if not found:
            empty.append(panel["title"])
        _draw_panel(axes, panel, found)
    path.write_bytes(png_of(figure))
    return empty


def _series(address: str, target: Mapping[str, str], since_s: float, until_s: float) -> Iterator[Series]:
    answer = asked(
        address, "query_range", query=target["expr"], start=f"{since_s}", end=f"{until_s}", step=f"{SCRAPE_S}s"
    )
    if answer is None:
        raise ValueError(f"Prometheus does not answer {target['expr']}")
    for each in answer["result"]:
        name = re.sub(r"{{(\w+)}}", partial(_label, each["metric"]), target["legendFormat"])
        # A quantile of no observations is NaN.
        yield name, [(float(at), float(value)) for at, value in each["values"] if value not in ("NaN", "+Inf")]


def _label(labels: Mapping[str, str], found: re.Match[str]) -> str:
    # Of a path the end: the place of a demo differs from machine to machine.
    return "/".join(labels.get(found[1], "").split("/")[-2:])


def _draw_panel(axes: Axes, panel: Mapping[str, Any], found: Sequence[Series]) -> None:
    axes.tick_params(labelsize=7)
    shown = [(name, values) for name, values in found if values]
    if panel["type"] != "timeseries":
        axes.set_axis_off()
        lines = [f"{name}   {_text(values[-1][1], panel)}" for name, values in shown]
        axes.text(0, 1, "\n".join(lines) or "none", va="top", fontsize=8, transform=axes.transAxes)
        return
    # The names of the largest: a legend of thirty tables would hide them all.
    ranked = sorted(shown, key=lambda each: -max(value for _, value in each[1]))
    for place, (name, values) in enumerate(ranked):
        times = np.array([1e3 * at for at, _ in values]).astype("datetime64[ms]")
        axes.plot(times, [value for _, value in values], lw=1, label=name if place < _MOST_NAMES else None)
    axes.set_ylabel(panel["fieldConfig"]["defaults"]["custom"]["axisLabel"], fontsize=7)
    if not shown:
        axes.text(0.5, 0.5, "no data", ha="center", va="center", fontsize=8, transform=axes.transAxes)
        axes.set(xticks=[], yticks=[])
        return
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]
    axes.legend(fontsize=6, loc="upper left", framealpha=0.6)


def _text(value: float, panel: Mapping[str, Any]) -> str:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    if unit == "dateTimeAsIso":
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    return f"{value:.1%}" if unit == "percentunit" else f"{value:g}"

"""`sda sources`: the report of the running collector on its sources, as a table for people."""

from pathlib import Path
from typing import Any

from rich.table import Table as Grid

from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.published import COLLECTOR, published
from sda_platform.runtime.errors import PlatformError


def read_report(home: Path) -> dict[str, Any]:
    """The report of the collector that runs in ``home`` (`edge.report`). Raises PlatformError if none answers."""
    control = published(home, COLLECTOR)
    if control is None:
        raise PlatformError(f"no collector runs in {home}; `sda collect` or `sda up` starts one")
    try:
        return fetch_report(control)
    except NoReport as error:
        raise PlatformError(str(error)) from None


def source_grid(report: dict[str, Any]) -> Grid:
    """One row per source; below it, what is wrong."""
    notes = [*report["problems"]]
    if report["saturated"]:
        notes.append(f"saturated, low priority is deferred: {', '.join(report['saturated'])}")
    if report["bottleneck"]:
        notes.append(f"the bottleneck is {report['bottleneck']}")
    grid = Grid("source", "kind", "address", "state", "records/s", "last record", "sealed", "deferred", "dropped",
                "refused", "restarts", caption="\n".join(notes) or None, caption_justify="left")  # fmt: skip
    for each in report["sources"]:
        silent = "never" if each["silent_s"] is None else f"{each['silent_s']:.0f} s ago"
        dropped = each["dropped"] + (each["kernel_drops"] or 0)
        state = each["state"] + (f" ({each['detail']})" if each["detail"] else "")
        numbers = (each["sealed"], each["deferred"], dropped, sum(each["errors"].values()), each["restarts"])
        facts = (each["name"], each["kind"], each["address"], state, f"{each['rate_per_s']:,.1f}", silent)
        grid.add_row(*facts, *(f"{number:,}" for number in numbers))
    return grid

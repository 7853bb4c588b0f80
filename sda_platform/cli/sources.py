"""`sda sources`: the report of the running collector on its sources, as a table for people."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.table import Table as Grid

from sda_platform.cli.people import lake_of
from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.published import COLLECTOR, published
from sda_platform.runtime.errors import PlatformError
from sda_platform.settings import Settings


def read_report(home: Path) -> dict[str, Any]:
    """The report of the collector that runs in ``home`` (`edge.report`). Raises PlatformError if none answers."""
    control = published(home, COLLECTOR)
    if control is None:
        raise PlatformError(f"no collector runs in {home}; `sda collect` or `sda up` starts one")
    try:
        return fetch_report(control)
    except NoReport as error:
        raise PlatformError(str(error)) from None


def agents_of(settings: Settings) -> dict[str, str]:
    """Status of the agents of the fleet by name: the agent of a source has the name of the source."""
    from sda_platform.ground.current_fleet import current_fleet

    fleet = current_fleet(lake_of(settings), settings.landing_uri)
    return {row["member"]: row["status"] or "never seen" for row in fleet if row["is_registered"]}


def source_grid(report: dict[str, Any], agents: Mapping[str, str] = MappingProxyType({})) -> Grid:
    """One row per source, with the status of its agent if it has one; below it, what is wrong."""
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
        agent = agents.get(each["name"])
        details = "; ".join([*([each["detail"]] if each["detail"] else []), *([f"agent {agent}"] if agent else [])])
        state = each["state"] + (f" ({details})" if details else "")
        numbers = (each["sealed"], each["deferred"], dropped, sum(each["errors"].values()), each["restarts"])
        facts = (each["name"], each["kind"], each["address"], state, f"{each['rate_per_s']:,.1f}", silent)
        grid.add_row(*facts, *(f"{number:,}" for number in numbers))
    return grid

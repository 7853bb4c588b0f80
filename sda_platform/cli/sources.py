"""`sda sources`: what the running collector says of its sources, as a table for people."""

import os
from pathlib import Path
from typing import Any

import httpx
from rich.table import Table as Grid

from sda_platform.edge.published import published
from sda_platform.runtime.supervisor import PlatformError

TOKEN_VARIABLE = "SDA_COLLECT_TOKEN"  # noqa: S105 - the name of a variable
_PATIENCE_S = 5.0


def read_report(home: Path) -> dict[str, Any]:
    """The report of the collector that runs in ``home`` (`edge.report`). Raises PlatformError if none answers."""
    control = published(home)
    if control is None:
        raise PlatformError(f"no collector runs in {home}; `sda collect` or `sda up` starts one")
    token = os.environ.get(TOKEN_VARIABLE, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(f"http://{control}/sources", headers=headers, timeout=_PATIENCE_S)
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        hint = f"; set {TOKEN_VARIABLE}" if error.response.status_code == httpx.codes.UNAUTHORIZED else ""
        raise PlatformError(f"the collector at {control} answered {error.response.status_code}{hint}") from None
    except httpx.HTTPError as error:
        raise PlatformError(f"the collector at {control} does not answer: {error}") from None
    return dict(answer.json())


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

"""`sda collector status`: the report of the running collector on its sources, as a table for people."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.table import Table as Grid

from sda_platform.cli.listing import grid, number, word, words
from sda_platform.cli.people import lake_of
from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.published import COLLECTOR, published
from sda_platform.runtime.errors import PlatformError
from sda_platform.settings import Settings


def read_report(home: Path) -> dict[str, Any]:
    """Return the report of the collector that runs in ``home`` (`edge.report`). Raises PlatformError if none
    answers.
    """
    control = published(home, COLLECTOR)
    if control is None:
        raise PlatformError(f"no collector runs in {home}; `sda collector run` or `sda up` starts one")
    try:
        return fetch_report(control)
    except NoReport as error:
        raise PlatformError(str(error)) from None


def agents_of(settings: Settings) -> dict[str, str]:
    """Status of the agents of the fleet by name: the agent of a source has the name of the source."""
    from sda_platform.ground.current_fleet import current_fleet

    fleet = current_fleet(lake_of(settings), settings.landing_uri)
    return {row["member"]: row["status"] or "never seen" for row in fleet if row["is_registered"]}


def source_grid(report: Mapping[str, Any], agents: Mapping[str, str] = MappingProxyType({})) -> Grid:
    """Tabulate the sources, each with the status of its agent if it has one; below, problems and errors by reason."""

    def state(source: Mapping[str, Any]) -> str:
        agent = f"agent {agents[source['name']]}" if source["name"] in agents else ""
        details = "; ".join(filter(None, (source["detail"], agent)))
        return f"{source['state']} ({details})" if details else str(source["state"])

    notes = [*report["problems"]]
    for source in report["sources"]:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(source["errors"].items()))
        notes += [f"{source['name']}: {reasons}"] if reasons else []
    if report["saturated"]:
        notes.append(f"saturated, low priority is deferred: {', '.join(report['saturated'])}")
    if report["bottleneck"]:
        notes.append(f"the bottleneck is {report['bottleneck']}")
    columns = (
        words("source", "name"),
        words("kind", "kind"),
        words("address", "address"),
        words("state", state),
        number("records/s", lambda source: f"{source['rate_per_s']:,.1f}"),
        word("last record", lambda s: "never" if s["silent_s"] is None else f"{s['silent_s']:.0f} s ago"),
        number("sealed", lambda source: f"{source['sealed']:,}"),
        number("deferred", lambda source: f"{source['deferred']:,}"),
        number("dropped", lambda source: f"{source['dropped'] + (source['kernel_drops'] or 0):,}"),
        number("errors", lambda source: f"{sum(source['errors'].values()):,}"),
        number("restarts", "restarts"),
    )
    return grid(columns, report["sources"], "\n".join(notes))

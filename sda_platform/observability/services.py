"""The HTTP services of a home, the collector and the lookup endpoint, and their health reports."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.published import CATALOGUE, COLLECTOR, published, trust_of, url_of
from sda_platform.serving.health_client import NoHealth, fetch_health


@dataclass(frozen=True)
class ServiceState:
    """A service that runs: where it answers, in one line how it is, what is wrong, and its figures."""

    service: str
    address: str
    summary: str
    problems: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def service_states(home: Path) -> list[ServiceState]:
    """Every service that has published its address in ``home``, with its answer now."""
    describe = {CATALOGUE: _catalogue, COLLECTOR: _collector}
    return [describe[name](home, address) for name in describe if (address := published(home, name))]


def _catalogue(home: Path, address: str) -> ServiceState:
    try:
        facts = fetch_health(str(url_of(home, CATALOGUE)), trust_of(home, CATALOGUE))
    except (NoHealth, OSError) as error:
        return ServiceState(CATALOGUE, address, "does not answer", (str(error),))
    stream, problems = facts["event_stream"], tuple[str, ...]()
    if stream and stream["problem"]:
        problems = (f"events are not published, {stream['behind_commits']:,} commits wait: {stream['problem']}",)
    served = facts["catalogue"]
    if served is None:
        return ServiceState(CATALOGUE, address, "no version of the catalogue yet", problems, facts)
    lag = f"{facts['lag_s']:.1f} s behind" if facts["is_behind"] else "up to date"
    waiting = f", {facts['pending_sets']:,} acknowledged sets wait" if facts["pending_sets"] else ""
    summary = f"version {served['version']}, {served['objects']:,} objects, {lag}{waiting}"
    return ServiceState(CATALOGUE, address, summary, problems, facts)


def _collector(_home: Path, address: str) -> ServiceState:
    try:
        report = fetch_report(address)
    except NoReport as error:
        return ServiceState(COLLECTOR, address, "does not answer", (str(error),))
    sources, problems = report["sources"], tuple(report["problems"])
    rate = sum(each["rate_per_s"] for each in sources)
    summary = f"{len(sources)} sources, {rate:,.1f} records/s, {len(problems) or 'no'} problems"
    return ServiceState(COLLECTOR, address, summary, problems, report)

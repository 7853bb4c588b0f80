"""The collector's sources in Dagster: an external asset per kind of source, with a check that each source runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import dagster as dg

from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.orchestration.external_reports import ExternalState, external_sensor
from sda_platform.orchestration.resources import LakeResource
from sda_platform.published import COLLECTOR, published

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "radar": "Radars, which send frames by UDP.",
        "optical": "Archives of telescopes, polled over HTTP.",
        "isl": "Receivers of inter-satellite links, which send beacons by TCP.",
        "telemetry": "Ground stations that connect and send telemetry frames by TCP.",
        "station": "Ground stations that are called for telemetry frames.",
        "folder": "Folders into which partners copy files.",
        "upload": "Files uploaded over HTTP.",
        "pull": "Catalogues of other organisations, requested over HTTP.",
    }
)
"""The kinds of source that the collector can have."""
_CHECK: Final = "sources_run"
_INTERVAL_S: Final = 15
_REPORTED_S: Final = 600.0
_FIGURES: Final = ("rate_per_s", "silent_s", "sealed", "deferred", "dropped", "kernel_drops")


def source_key(kind: str) -> dg.AssetKey:
    """Return the asset of the sources of one kind."""
    return dg.AssetKey(["sources", kind])


source_assets = [
    dg.AssetSpec(
        source_key(kind),
        group_name=RAW_RECORDS.group,
        description=f"{contents} The collector receives them (`sda collector run`, `sda collector status`); a sensor "
        "reports them.",
        kinds={"http" if kind in {"optical", "upload", "pull"} else "file" if kind == "folder" else "ip"},
    )
    for kind, contents in KINDS.items()
]


def _check(kind: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=source_key(kind), name=_CHECK, description="Every source of this kind runs.")
    def sources_run(lake: LakeResource) -> dg.AssetCheckResult:
        """Sources that failed with their reason, and the figures of each; passes where there is none."""
        for state in source_states(Path(lake.home), time.time()):  # deterministic: a check, of no row
            if state.key == source_key(kind):
                return state.result()
        return dg.AssetCheckResult(passed=True, description="this collector has no such source")

    return sources_run


source_checks = [_check(kind) for kind in KINDS]


def _ask(context: dg.SensorEvaluationContext) -> list[ExternalState]:
    lake: LakeResource = context.resources.lake
    return source_states(Path(lake.home), time.time())  # deterministic: a sensor, of no row


sources_sensor = external_sensor(
    "collector_sources",
    "Reports the collector's sources every ten minutes, and at once when one fails or recovers.",
    _INTERVAL_S,
    _ask,
)


def source_states(home: Path, wall_s: float) -> list[ExternalState]:
    """Return the sources of the collector of ``home``, by kind; empty where none runs.

    Figures are reported anew every ten minutes. A collector that does not answer is a problem of every kind.
    """
    control = published(home, COLLECTOR)
    if control is None:
        return []
    mark = str(int(wall_s // _REPORTED_S))
    try:
        report = fetch_report(control)
    except NoReport as error:
        return [ExternalState(source_key(kind), _CHECK, mark, problems=[str(error)]) for kind in KINDS]
    return [_state(kind, report, mark) for kind in KINDS if any(each["kind"] == kind for each in report["sources"])]


def _state(kind: str, report: Mapping[str, Any], mark: str) -> ExternalState:
    sources = [each for each in report["sources"] if each["kind"] == kind]
    zones = {each["zone"] for each in sources}
    problems = [f"source {each['name']}: {each['problem']}" for each in sources if each["problem"] is not None]
    problems += [
        problem for problem in report["problems"] if any(problem.startswith(f"sealer of {zone} ") for zone in zones)
    ]
    facts = {f"{each['name']}_{name}": each[name] for each in sources for name in _FIGURES if each[name] is not None}
    return ExternalState(
        source_key(kind),
        _CHECK,
        mark,
        problems=problems,
        metadata={**facts, "bottleneck": report["bottleneck"] or "none"},
    )

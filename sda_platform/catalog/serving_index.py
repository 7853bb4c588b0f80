"""The serving index in Dagster: an external asset bound to a version of the catalogue, with a check that it follows."""

import time
from pathlib import Path
from typing import Any, Final

import dagster as dg

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Head
from sda_platform.orchestration.external_reports import ExternalState, external_sensor
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.published import CATALOGUE, trust_of, url_of
from sda_platform.serving.health_client import NoHealth, fetch_health

MOST_LAG_S: Final = 5.0
"""How long after a verified commit of the catalogue its index must serve it."""
_KEY: Final = dg.AssetKey("catalog_index")
_CHECK: Final = "index_is_current"
_INTERVAL_S: Final = 10

catalog_index = dg.AssetSpec(
    _KEY,
    deps=[ORBITAL_CATALOG.name],
    group_name=ORBITAL_CATALOG.group,
    description="The catalogue as the lookup endpoint serves it: an ordered map in `<home>/serving`, bound to one "
    "verified version of `orbital_catalog`. The endpoint keeps it (`sda up`, `sda catalog serve`); a sensor "
    "reports it.",
    kinds={"rocksdb"},
)


@dg.asset_check(
    asset=_KEY,
    name=_CHECK,
    description="The index serves the newest verified version within 5 s, with every object of it; its events are "
    "published where a stream is set.",
    op_tags=AFTER_ALERTS,
)
def index_is_current(lake: LakeResource) -> dg.AssetCheckResult:
    """Version, lag and objects of the index; passes where the catalogue is not served."""
    state = served_state(Path(lake.home), lake.open())
    return state.result() if state else dg.AssetCheckResult(passed=True, description="the catalogue is not served here")


def _ask(context: dg.SensorEvaluationContext) -> list[ExternalState]:
    lake: LakeResource = context.resources.lake
    state = served_state(Path(lake.home), lake.open())
    return [state] if state else []


index_sensor = external_sensor(
    "catalog_index", "Reports each version of the catalogue that the index has taken in.", _INTERVAL_S, _ask
)


def served_state(home: Path, store: Lake) -> ExternalState | None:
    """Compare what the endpoint of ``home`` serves with the catalogue's log; None where no endpoint runs."""
    url = url_of(home, CATALOGUE)
    if url is None:
        return None
    try:
        health = fetch_health(url, trust_of(home, CATALOGUE))
    except (NoHealth, OSError) as error:
        return ExternalState(_KEY, _CHECK, "", problems=[str(error)])
    head = store.readable(ORBITAL_CATALOG).head
    rows = store.log(ORBITAL_CATALOG).row_count() if head.commit else 0
    return judged(health, head, rows, time.time())


def judged(health: dict[str, Any], head: Head, rows: int, wall_s: float) -> ExternalState:
    """Return the state of an index with this ``health``, where ``head`` is the newest verified commit of ``rows``
    objects.
    """
    served = health["catalogue"] or {"version": -1, "manifest_sha256": "", "objects": 0, "sets": 0}
    is_behind = head.commit is not None and served["manifest_sha256"] != head.manifest_sha256
    lag_s = wall_s - head.commit.timestamp_ms / 1000 if is_behind and head.commit else 0.0
    problems = []
    if lag_s > MOST_LAG_S:
        problems.append(f"version {head.commit_version} was committed {lag_s:.0f} s ago, {served['version']} is served")
    if not is_behind and head.commit and served["objects"] != rows:
        problems.append(f"the index holds {served['objects']:,} objects, version {served['version']} has {rows:,}")
    if (stream := health["event_stream"]) and stream["problem"]:
        problems.append(f"{stream['behind_commits']:,} commits wait for the stream of events: {stream['problem']}")
    facts = {name: served[name] for name in ("version", "objects", "sets")}
    facts |= {"lag_s": round(lag_s, 3), "pending_sets": health["pending_sets"]}
    if health["followed_after_s"] is not None:
        facts["followed_after_s"] = round(health["followed_after_s"], 3)
    return ExternalState(_KEY, _CHECK, served["manifest_sha256"], True, problems, facts)

"""Plots of the active alerts with the highest risk, and received CDMs compared with our assessments.

Drawn outside the alerts pool: a picture costs a second, and may fail, which no alert should wait for.
"""

from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.conjunction.cdm_comparison import open_comparisons
from sda_platform.conjunction.history import event_history
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import markdown_table
from sda_platform.recovery.verification import current_keys

KEY = dg.AssetKey(["reports", "conjunctions"])
SHOWN = 5


@dg.asset(
    key=KEY,
    group_name=CONJUNCTION_ALERTS.group,
    deps=[CONJUNCTION_ALERTS.name, RECEIVED_CDMS.name],
    kinds={"matplotlib"},
)
def conjunction_report(lake: LakeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster accepts only the bare class as an annotation
    """Active alerts with the highest risk: miss distance and probability against time to TCA, and the geometry.

    A table compares received messages of encounters ahead with our probabilities. The plot of an alert shows both.
    """
    return report(lake.open())


def report(store: Lake) -> dg.MaterializeResult[Any]:
    """The pictures as metadata, highest risk first, the number of current alerts, and received CDMs."""
    # Drawing takes a second to import, which every run's process would spend.
    from sda_platform.conjunction.event_plot import as_markdown, event_picture

    alerts = current_keys(store.log(CONJUNCTION_ALERTS), ["collision_probability"]).to_pylist()
    worst = sorted(alerts, key=lambda alert: (-alert["collision_probability"], alert["event_id"]))[:SHOWN]
    facts: dict[str, Any] = {"current_alerts": len(alerts)}
    opinions = [opinion.row() for opinion in open_comparisons(store, store.clock.now_ns())]
    if opinions:
        facts["received_cdms"] = dg.MetadataValue.md(markdown_table(pa.Table.from_pylist(opinions)))
    for place, alert in enumerate(worst, start=1):
        picture = event_picture(event_history(store, alert["event_id"]))
        facts[f"alert_{place}"] = dg.MetadataValue.md(as_markdown(picture, f"alert {alert['event_id']}"))
    return dg.MaterializeResult(asset_key=KEY, metadata=facts)

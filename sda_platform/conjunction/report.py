"""Plots of the active alerts with the highest risk, and received CDMs compared with our assessments.

Drawn outside the alerts pool: a picture costs a second, and may fail, which no alert should wait for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.dataset as ds

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import acknowledgements_of, known_actions
from sda_platform.conjunction.alert_policy import most_urgent
from sda_platform.conjunction.cdm_comparison import open_comparisons
from sda_platform.conjunction.data_origins import data_origins
from sda_platform.conjunction.history import EventHistory, event_history
from sda_platform.conjunction.tables import ALERT_ACKNOWLEDGEMENTS, CONJUNCTION_ALERTS, RECEIVED_CDMS
from sda_platform.formats.markings import MARKS, Marking
from sda_platform.lake.lake import Lake
from sda_platform.markdown_elements import picture
from sda_platform.orchestration.jobs import CONJUNCTION_REPORT
from sda_platform.orchestration.materialization import in_ui, shown_table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.published import CATALOGUE, url_of
from sda_platform.recovery.verification import current_keys

SHOWN = 5
LISTED = 40
_LISTED = (
    "risk", "norad_id_1", "object_name_1", "norad_id_2", "object_name_2", "tca_time_ns", "miss_distance_km",
    "collision_probability", "maximum_probability", "stated_probability", "stated_by", "rule",
    *MARKS,
)  # fmt: skip


@dg.asset(
    key=CONJUNCTION_REPORT,
    group_name=CONJUNCTION_ALERTS.group,
    deps=[CONJUNCTION_ALERTS.name, RECEIVED_CDMS.name, ALERT_ACKNOWLEDGEMENTS.name],
    kinds={"matplotlib"},
)
def conjunction_report(lake: LakeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster accepts only the bare class as an annotation
    """The active alerts, highest level first; of the first five miss distance and Pc against time to TCA, and geometry.

    A table compares received messages of encounters ahead with our probabilities. The plot of an alert shows both.
    Each of these alerts has a report, an HTML page below `<home>/reports/alerts`; `alert_…_report` is its path. While
    the catalogue is served, `console`, `what_waits` and `alert_…_page` lead to the pages of the console.
    """
    home = Path(lake.home)
    return report(lake.open(), home / "reports" / "alerts", url_of(home, CATALOGUE))


def report(store: Lake, pages: Path, console: str | None = None) -> dg.MaterializeResult[Any]:
    """Return the list of current alerts and pictures of the first of them as metadata, highest level first; received
    CDMs.

    The alerts' reports are written below ``pages``. ``console``: the URL at which it is served.
    """
    # Drawing takes a second to import, which every run's process would spend.
    from sda_platform.conjunction.alert_page import AlertReport
    from sda_platform.conjunction.event_plot import event_picture

    current = current_keys(store.log(CONJUNCTION_ALERTS), [*_LISTED, "status"]).to_pylist()
    alerts = [alert for alert in current if alert["status"] != "closed"]
    assessed = [alert for alert in alerts if alert["collision_probability"] is not None]
    worst = most_urgent(assessed, SHOWN)[:SHOWN]
    facts: dict[str, Any] = {"current_alerts": len(alerts)}
    if console:
        facts["console"] = dg.MetadataValue.url(f"{console}/")
        facts["what_waits"] = dg.MetadataValue.url(f"{console}/waiting")
    if alerts:
        facts["alerts"] = dg.MetadataValue.table([_listed(alert) for alert in most_urgent(alerts, LISTED)])
    opinions = [opinion.row() for opinion in open_comparisons(store, store.clock.now_ns())]
    if opinions:
        facts["received_cdms"] = shown_table(opinions)
    known = known_actions(store)
    acknowledged = acknowledgements_of(known)
    seen = [{**acknowledged[each["event_id"]][-1]} for each in alerts if each["event_id"] in acknowledged]
    if seen:
        facts["acknowledged"] = shown_table(seen)
    for place, alert in enumerate(worst, start=1):
        event_id = alert["event_id"]
        history = event_history(store, event_id)
        facts[f"alert_{place}"] = in_ui(picture(event_picture(history), f"alert {event_id}"))
        entries = store.log(CONJUNCTION_ALERTS).rows(where=ds.field("event_id") == event_id).to_pylist()
        origins = data_origins(store, [history.last])
        page = AlertReport(
            event_id, entries, history, known.get(event_id, ()), _lineage(store, history), origins=origins
        )
        pages.mkdir(parents=True, exist_ok=True)
        path = pages / f"{event_id}.html"
        path.write_text(page.html(), encoding="utf-8")
        if console:
            facts[f"alert_{place}_page"] = dg.MetadataValue.url(f"{console}/conjunctions/{event_id}")
        facts[f"alert_{place}_report"] = dg.MetadataValue.path(path.absolute())
    return dg.MaterializeResult(asset_key=CONJUNCTION_REPORT, metadata=facts)


def _listed(alert: Mapping[str, Any]) -> dg.TableRecord:
    primary, secondary = (f"{alert[f'object_name_{n}'] or 'unnamed'} ({alert[f'norad_id_{n}'] or '–'})" for n in (1, 2))
    return dg.TableRecord(
        {
            "level": alert["risk"],
            "primary": primary,
            "secondary": secondary,
            "TCA (UTC)": iso(alert["tca_time_ns"]),
            "miss km": _number(alert["miss_distance_km"], ".3f"),
            "Pc": _number(alert["collision_probability"], ".2e"),
            "largest Pc": _number(alert["maximum_probability"], ".2e"),
            "stated Pc": _number(alert["stated_probability"], ".2e"),
            "by": alert["stated_by"] or "",
            "rule": alert["rule"] or "",
            "marking": Marking.of(alert).shown,
            "alert": alert["event_id"],
        }
    )


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _lineage(store: Lake, history: EventHistory) -> list[str]:
    """Return the element sets in force of both objects, with their segments; `sda alert report` also lists
    observations.
    """
    ids = [history.last[f"norad_id_{n}"] for n in (1, 2)]
    columns = ["norad_id", "epoch_time_ns", "segment_name", "record_number", "segment_sha256"]
    rows = store.log(ORBITAL_CATALOG).rows(columns, ds.field("norad_id").isin(ids)).sort_by("norad_id").to_pylist()
    return [
        f"elements of {row['norad_id']}: epoch {iso(row['epoch_time_ns'])}, segment {row['segment_name']} record "
        f"{row['record_number']} (sha256 {row['segment_sha256']})"
        for row in rows
    ]

"""The platform's one Definitions object; reads like a table of contents.

Loading this module starts nothing and reads nothing but the environment: no session, no listing, no file.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

from sda_platform.catalog import assets as catalog
from sda_platform.catalog import checks as catalog_checks
from sda_platform.catalog import sensors as catalog_sensors
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.conjunction import assets as conjunction
from sda_platform.conjunction import checks as conjunction_checks
from sda_platform.conjunction import sensors as conjunction_sensors
from sda_platform.conjunction.report import conjunction_report
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.delivery import assets as delivery
from sda_platform.delivery import checks as delivery_checks
from sda_platform.delivery import sensors as delivery_sensors
from sda_platform.delivery.choosing import chosen_subscriber, require_idempotency
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion import assets as fusion
from sda_platform.fusion import checks as fusion_checks
from sda_platform.fusion import own_element_assets
from sda_platform.fusion import sensors as fusion_sensors
from sda_platform.fusion.clock_assets import clock_offsets
from sda_platform.fusion.clock_tables import CLOCK_OFFSETS
from sda_platform.fusion.report import fusion_report
from sda_platform.fusion.resource import FusionResource
from sda_platform.ingest import assets as ingest
from sda_platform.ingest import checks as ingest_checks
from sda_platform.ingest import sensors as ingest_sensors
from sda_platform.ingest.growth import GrowthResource
from sda_platform.lake.failures.reports import FailureReports, run_failures
from sda_platform.lake.jobs import lane_job
from sda_platform.lake.maintenance import maintenance_job, nightly
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.sensors import unread_sensor
from sda_platform.lake.spark.session import SparkResource
from sda_platform.registry import TABLES
from sda_platform.settings import Settings

OWNERS = {
    "ingest": ["team:sensor-operations"],
    "catalog": ["team:catalogue"],
    "fusion": ["team:orbit-determination"],
    "conjunction": ["team:conjunction-assessment"],
}
FRESHNESS = {
    "ingest": dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=1), warn_window=timedelta(minutes=10)),
    "fusion": dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=1), warn_window=timedelta(minutes=10)),
    "catalog": dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=48), warn_window=timedelta(hours=24)),
    "conjunction": dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=24), warn_window=timedelta(hours=12)),
}

EXTERNAL = [*ingest.landing_zones, catalog.element_zone, conjunction.message_zone]
INGEST = [ingest.raw_records, ingest.observations, ingest.dead_letters]
CATALOG = [catalog.element_sets, catalog.orbital_catalog]
CONJUNCTION = [
    conjunction.conjunction_candidates,
    conjunction.conjunction_assessments,
    conjunction.conjunction_alerts,
    delivery.alert_deliveries,
]
MESSAGES = [conjunction.conjunction_messages]
FUSION = [fusion.fused_tracks, fusion.tracks]
OWN_ELEMENTS = [own_element_assets.refined_elements, own_element_assets.provisional_elements]
CLOCKS = [clock_offsets]
REPORTS = [fusion_report, conjunction_report]
TABLE_ASSETS = [*INGEST, *CATALOG, *FUSION, *CLOCKS, *OWN_ELEMENTS, *CONJUNCTION, *MESSAGES]
CHECKS = [
    *ingest_checks.checks,
    *catalog_checks.checks,
    *fusion_checks.checks,
    *conjunction_checks.checks,
    *delivery_checks.checks,
]

hot = lane_job(
    "hot",
    "hot",
    dg.AssetSelection.assets(*INGEST, *FUSION, *CONJUNCTION[1:]),
    "Observations from the landing zones to delivered alerts, in one run.",
)
catalog_lane = lane_job(
    "catalog",
    "catalog",
    dg.AssetSelection.assets(*CATALOG, *MESSAGES, ingest.dead_letters, *CONJUNCTION),
    "Element sets from the landing zone through screening to delivered alerts, and the messages of others, in one run.",
)

delivery_lane = lane_job(
    "delivery",
    delivery_sensors.LANE,
    dg.AssetSelection.assets(delivery.alert_deliveries),
    "Alerts that waited for the subscriber, in a run that needs nothing else.",
)
own_elements = lane_job(
    "own_elements",
    fusion_sensors.LANE,
    dg.AssetSelection.assets(*CLOCKS, *OWN_ELEMENTS, *REPORTS),
    "Elements of our own for the catalogue, of tracked objects and of unknown ones; sensors' clocks; and the reports.",
)
maintenance = maintenance_job(TABLES)

# By the lane that makes up for it, the tables that may be behind; the outbox has a sensor of its own.
CATALOG_READERS = (ORBITAL_CATALOG, CONJUNCTION_CANDIDATES)
# Elements of our own, and sensors' clocks, are asked for by the clock, and commit only what is new.
BY_THE_CLOCK = (*fusion_sensors.OWN_ELEMENTS, CLOCK_OFFSETS)
HOT_READERS = tuple(t for t in TABLES if t not in (*CATALOG_READERS, *BY_THE_CLOCK, ALERT_DELIVERIES))


def default_resources(settings: Settings) -> dict[str, Any]:
    """The resources that ``settings`` describe; building them opens nothing."""
    spark = SparkResource(remote=settings.spark_remote, lake_uri=settings.lake_uri)
    return {
        "lake": LakeResource(uri=settings.lake_uri, home=str(settings.home.absolute()), spark=spark),
        "landing": LandingResource(
            root=settings.landing_uri,
            max_segments=settings.batch_max_segments,
            max_bytes=settings.batch_max_bytes,
            orphan_grace_s=settings.orphan_grace_s,
            backlog_max_age_s=settings.backlog_max_age_s,
        ),
        "fusion": FusionResource(
            window_s=settings.window_s,
            allowed_lateness_s=settings.allowed_lateness_s,
            idle_after_s=settings.idle_after_s,
            sources=list(settings.sources),
            sensors=settings.sensors,
        ),
        "screening": ScreeningResource(
            fleet=settings.fleet,
            scope=settings.screening_scope,
            fleet_internal=settings.screening_fleet_internal,
            volumes=settings.screening_volumes,
            objects_per_task=settings.screening_objects_per_task,
            at_once=settings.screening_at_once,
            horizon_h=settings.screening_horizon_h,
            refresh_h=settings.screening_refresh_h,
            threshold_km=settings.screening_threshold_km,
        ),
        "growth": GrowthResource(
            factor=settings.dead_letter_growth,
            factor_by_kind=settings.dead_letter_growth_by_kind,
            floor_per_min=settings.dead_letter_floor_per_min,
        ),
        "failure_reports": FailureReports(settings.failure_webhook, settings.shown_ui_url),
        "subscriber": chosen_subscriber(settings.subscriber, settings.home),
    }


def build_defs(resources: Mapping[str, Any] | None = None, settings: Settings | None = None) -> dg.Definitions:
    """The definitions, with some resources replaced (for tests) or other settings than the environment's."""
    chosen = settings or Settings()
    provided = {**default_resources(chosen), **(resources or {})}
    require_idempotency(provided["subscriber"])
    assets: list[Any] = [*EXTERNAL, *TABLE_ASSETS, *REPORTS]
    sensors = [
        *ingest_sensors.build_sensors(hot, chosen.sensor_interval_s),
        *catalog_sensors.build_sensors(catalog_lane, chosen.sensor_interval_s),
        *conjunction_sensors.build_sensors(catalog_lane, chosen.sensor_interval_s),
        *delivery_sensors.build_sensors(delivery_lane),
        unread_sensor(hot, "hot", HOT_READERS, TABLES),
        unread_sensor(catalog_lane, "catalog", CATALOG_READERS, TABLES),
        *fusion_sensors.build_sensors(),
        run_failures,
    ]
    return dg.Definitions(
        assets=dg.map_asset_specs(_with_policy, assets),
        asset_checks=CHECKS,
        jobs=[hot, catalog_lane, delivery_lane, own_elements, maintenance],
        sensors=sensors,
        schedules=[
            *catalog_sensors.build_schedules(catalog_lane),
            *fusion_sensors.build_schedules(
                own_elements,
                running=chosen.fusion_refresh,
                # Clocks go into every fit, whether or not elements are made of them.
                assets=[a.key for a in (*CLOCKS, *(OWN_ELEMENTS if chosen.own_elements else ()), *REPORTS)],
            ),
            nightly(maintenance),
        ],
        resources=provided,
        executor=dg.in_process_executor,
    )


def _with_policy(spec: dg.AssetSpec) -> dg.AssetSpec:
    """What holds for every asset of a group: owners, kinds, tags, and how fresh Dagster expects it."""
    group = spec.group_name or "ingest"
    is_table = not spec.kinds
    mapped = spec.replace_attributes(
        owners=OWNERS[group],
        kinds={"spark", "deltalake"} if is_table else spec.kinds,
        tags={**spec.tags, "domain": "space-domain-awareness", "stage": group},
    )
    return dg.apply_freshness_policy(mapped, FRESHNESS[group]) if is_table else mapped


defs = build_defs()

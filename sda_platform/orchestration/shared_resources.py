"""The resources that belong to no package: engine, tables, landing zones, leases, and reports of failed runs."""

import os
from typing import Any

from sda_platform.orchestration.leases import LeaseResource
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.run_failures import FailureReports
from sda_platform.settings import Settings
from sda_platform.spark.session import SparkResource


def shared_resources(settings: Settings) -> dict[str, Any]:
    """Each by its name; building them opens nothing."""
    home = str(settings.home.absolute())
    spark = SparkResource(remote=settings.spark_remote, lake_uri=settings.lake_uri)
    return {
        "spark": spark,
        "lake": LakeResource(uri=settings.lake_uri, home=home, spark=spark),
        "landing": LandingResource(root=settings.landing_uri, **settings.intake.model_dump()),
        "leases": LeaseResource(endpoints=list(settings.etcd), holder=f"{os.uname().nodename}:{home}"),
        "failure_reports": FailureReports(ReportWebhook.of(settings, settings.failure_webhook), settings.shown_ui_url),
    }

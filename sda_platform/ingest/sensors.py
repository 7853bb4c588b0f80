"""What starts the job from observations to alerts: segments in the landing zones of the sensors."""

import dagster as dg

from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.sensors import landing_sensor


def build_sensors(interval_s: int) -> list[dg.SensorDefinition]:
    """One sensor for the landing zones of all kinds of sensor: one run takes what waits in any of them."""
    return [landing_sensor("observations", RAW_RECORDS.zones, OBSERVATIONS_TO_ALERTS, interval_s)]

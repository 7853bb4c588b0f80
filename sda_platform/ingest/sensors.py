"""What starts the job from observations to alerts: segments in the landing zones of the sensors."""

import dagster as dg

from sda_platform.ingest.tables import RAW_RECORDS, TELEMETRY_FRAMES
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS, TELEMETRY_TO_FRAMES
from sda_platform.orchestration.sensors import landing_sensor

_TELEMETRY_S = 10


def build_sensors(interval_s: int) -> list[dg.SensorDefinition]:
    """One sensor for the landing zones of all kinds of sensor: one run takes what waits in any of them.

    Telemetry has its own, which looks less often: nothing waits for it.
    """
    return [
        landing_sensor("observations", RAW_RECORDS.zones, OBSERVATIONS_TO_ALERTS, interval_s),
        landing_sensor("telemetry", TELEMETRY_FRAMES.zones, TELEMETRY_TO_FRAMES, max(interval_s, _TELEMETRY_S)),
    ]

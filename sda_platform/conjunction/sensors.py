"""What starts the job from the catalogue to alerts from here: received CDMs in their landing zone."""

import dagster as dg

from sda_platform.conjunction.tables import ACKNOWLEDGEMENTS_FEED, MESSAGES_FEED
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS
from sda_platform.orchestration.sensors import landing_sensor


def build_sensors(interval_s: int) -> list[dg.SensorDefinition]:
    """The sensor of the zones of received CDMs and acknowledgements; alerts do not wait for their job."""
    return [landing_sensor(MESSAGES_FEED, [MESSAGES_FEED, ACKNOWLEDGEMENTS_FEED], CATALOG_TO_ALERTS, interval_s)]

"""What triggers the catalog lane from here: the messages of others in their landing zone."""

from typing import Any

import dagster as dg

from sda_platform.conjunction.tables import MESSAGES_FEED
from sda_platform.lake.sensors import landing_sensor


def build_sensors(catalog_job: Any, interval_s: int) -> list[dg.SensorDefinition]:
    """The sensor of the messages' landing zone; what publishers send takes the lane in which alerts do not wait."""
    return [landing_sensor(MESSAGES_FEED, [MESSAGES_FEED], catalog_job, "catalog", interval_s)]

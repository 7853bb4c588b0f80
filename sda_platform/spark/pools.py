"""The pools: runs of one pool exclude each other and share one warm Spark session; pools run side by side."""

from enum import StrEnum


class Pool(StrEnum):
    """A Dagster concurrency pool; its value is the tag of its runs."""

    ALERTS = "alerts"
    CATALOG = "catalog"
    DELIVERY = "delivery"
    MAINTENANCE = "maintenance"


WARM_POOLS = (Pool.ALERTS, Pool.CATALOG, Pool.MAINTENANCE)
"""Pools whose sessions the engine keeps; deliveries use the engine too rarely."""
GIVING_WAY = (Pool.CATALOG, Pool.MAINTENANCE)
"""Pools whose work yields processor time to alerts."""

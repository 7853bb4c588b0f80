"""The pools: runs of one pool exclude each other and share one warm Spark session; pools run side by side."""

from typing import Final


class Pool:
    """The Dagster concurrency pools; a pool's name is the tag of its runs."""

    ALERTS: Final = "alerts"
    CATALOG: Final = "catalog"
    DELIVERY: Final = "delivery"
    MAINTENANCE: Final = "maintenance"
    PRODUCTS: Final = "products"


WARM_POOLS: Final = (Pool.ALERTS, Pool.CATALOG, Pool.PRODUCTS, Pool.MAINTENANCE)
"""Pools whose sessions the engine keeps; deliveries use the engine too rarely."""
GIVING_WAY: Final = (Pool.CATALOG, Pool.PRODUCTS, Pool.MAINTENANCE)
"""Pools whose work yields processor time to alerts."""

"""When messages and ephemerides that were received were created: what is newer counts before what is older."""

from collections.abc import Mapping
from typing import Any


def reported_ns(received: Mapping[str, Any]) -> int:
    """Return when a message or an ephemeris was created, or arrived if that is not stated; ns since the Unix epoch."""
    created: int | None = received["created_time_ns"]
    return int(received["received_time_ns"]) if created is None else created

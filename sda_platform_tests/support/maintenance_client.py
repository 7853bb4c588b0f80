"""Maintains the observations of a lake through a Connect server while alerts come, and prints what it did.

    python -m sda_platform_tests.support.maintenance_client ADDRESS LAKE STOPS ANSWER…

Each look for alerts takes the next ANSWER (1: an alert waits), and the last one for ever. At most STOPS stops.
"""

import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from sda_platform.archive.lifecycle import POLICY
from sda_platform.archive.maintenance import maintain_all
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import attach


def main(arguments: Sequence[str]) -> None:
    """Maintain once."""
    remote, uri, stops, *answers = arguments
    session = attach(remote, Pool.MAINTENANCE, lake_uri=uri)
    lake = Lake(uri, MissionClock(0, 0, 0.0), lambda: session, "maintenance")
    looks = itertools.chain(answers, itertools.repeat(answers[-1]))
    done = maintain_all(
        lake,
        [OBSERVATIONS],
        now_ms=time.time_ns() // 1_000_000,
        policy=replace(POLICY, stops_for_alerts=int(stops)),
        is_manual=True,
        alerts_wait=lambda: next(looks) == "1",
    )
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main(sys.argv[1:])

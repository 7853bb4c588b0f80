"""How long after a commit of the catalogue its index serves it, in a running platform: `sda up` with real element sets.

    python benchmarks/catalogue_lag.py [--updates 5] [--sets 2000]

The whole catalogue lands, then updates of so many sets. Of each version: from the commit to its verdict, and to the
answer of the endpoint that names it. Also from the answer of a put to the first lookup that shows it.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from catalogue import catalogue, element_sets

from sda_platform.catalog.tables import ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.published import CATALOGUE, published
from sda_platform.simulation.reference import REFERENCE_TIME_NS, reference_catalogue
from sda_platform_tests.support.running_platform import RunningPlatform
from sda_platform_tests.support.segments import land

_SECOND_NS = 10**9
_PAUSE_S = 0.05
_TIMEOUT_S = 240.0


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=5, help="updates after the whole catalogue")
    parser.add_argument("--sets", type=int, default=2000, help="element sets of an update")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        platform = RunningPlatform(Path(directory) / "home", REFERENCE_TIME_NS, {"SDA_SERVING": "true"})
        try:
            follow(platform, arguments.updates, arguments.sets)
        finally:
            platform.interrupt(60)
            platform.kill()


def follow(platform: RunningPlatform, updates: int, sets: int) -> None:
    """Land the catalogue and the updates; print the times of each version."""
    address = published(platform.home, CATALOGUE)
    with httpx.Client(base_url=f"http://{address}", timeout=30) as client:
        land(platform.zone(ELEMENTS_FEED), "catalogue.csv", reference_catalogue())
        served = report(platform, client, -1)
        known = element_sets(catalogue(sets))
        for update in range(1, updates + 1):
            later = [replace(each, epoch_time_ns=REFERENCE_TIME_NS + update * _SECOND_NS) for each in known]
            land(platform.zone(ELEMENTS_FEED), f"update-{update}.csv", encode_omm_csv(later))
            served = report(platform, client, served)


def report(platform: RunningPlatform, client: httpx.Client, before: int) -> int:
    """Wait for a version after ``before`` to be served, and print its times."""
    committed: dict[int, float] = {}
    verified: dict[int, float] = {}
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        head = platform.lake.log(ORBITAL_CATALOG).head()
        if head.commit is not None and head.commit_version > before:
            committed.setdefault(head.commit_version, head.commit.timestamp_ms / 1000)
            log = platform.lake.log(ORBITAL_CATALOG)
            if platform.lake.verdicts.read(log).readable.version >= head.commit_version:
                verified.setdefault(head.commit_version, time.time())
        found = health(client)["catalogue"]
        if found and found["version"] > before and found["version"] in committed:
            version = found["version"]
            at, checked = committed[version], verified.get(version, time.time())
            print(
                f"version {version}, {found['objects']:,} objects, {found['sets']:,} sets: verified after "
                f"{checked - at:.1f} s, served after {time.time() - at:.1f} s",
                flush=True,
            )
            return int(version)
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"no version after {before} was served; committed: {committed}, verified: {verified}")


def health(client: httpx.Client) -> Any:
    """What the endpoint serves."""
    return json.loads(client.get("/health").text)


if __name__ == "__main__":
    main()

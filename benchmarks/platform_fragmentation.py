"""A break-up through the whole platform: what radars send lands as it comes, and the pools' own jobs do the rest.

The catalogue is the real one, on an engine in this process. Mission time moves by the minute; each time, what the
sensors have sent by then is landed and processed in the alerts pool. Every two minutes orbit determination publishes
element sets, and the catalogue pool takes them in, as schedules and sensors do it on a running platform.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from sda_platform.catalog.tables import ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import TRACKS
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.spark.engine import python_path
from sda_platform.spark.session import attach
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.platform_run import Platform, checks
from sda_platform_tests.support.segments import START_NS, after, land

STEP_S, OWN_ELEMENTS_EVERY_S, REACTION_S = 60, 120, 5
console = Console(highlight=False, soft_wrap=True)


@contextmanager
def platform_at(home: Path) -> Iterator[Platform]:
    """An empty platform below ``home`` whose session ends with the block."""
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONPATH=python_path())
    session = attach("local", "benchmark", {"spark.sql.warehouse.dir": str(home / "warehouse")})
    try:
        yield Platform(home, session, START_NS)
    finally:
        session.stop()


def play(platform: Platform, world: Sequence[SimulatedSegment], seconds: float) -> None:
    """Everything up to ``seconds`` of mission time; shows of each run its wall time and the checks that are red."""

    def run(job: str) -> None:
        began = time.perf_counter()
        result = platform.run(job)
        took_s, at_s = time.perf_counter() - began, (platform.clock.now_ns() - START_NS) / SECOND_NS
        red = sorted(name for name, passed in checks(result).items() if not passed)
        console.print(f"{at_s:5.0f} s: {job} in {took_s:.1f} s; red: {', '.join(red) or 'none'}")

    land(platform.zone(ELEMENTS_FEED), "catalogue.csv", reference_catalogue())
    run("catalog_to_alerts")
    left = list(world)
    for end in range(STEP_S, round(seconds) + 1, STEP_S):
        now_ns = after(end + REACTION_S)
        platform.at(now_ns)
        platform.land(segment for segment in left if segment.available_time_ns <= now_ns)
        left = [segment for segment in left if segment.available_time_ns > now_ns]
        run("observations_to_alerts")
        if end % OWN_ELEMENTS_EVERY_S == 0:
            run("orbit_determination")
            if platform.zone(ELEMENTS_FEED).pending_names():
                run("catalog_to_alerts")


def provisional(platform: Platform) -> pa.Table:
    """The first element set of each unknown object, as it was numbered."""
    rows = platform.rows(PROVISIONAL_ELEMENTS).sort_by([("norad_id", "ascending"), ("commit_sequence", "ascending")])
    numbers = rows["norad_id"].to_pylist()
    return rows.take([n for n, number in enumerate(numbers) if n == 0 or number != numbers[n - 1]])


def taken_in(platform: Platform) -> dict[str, int]:
    """How many unknown objects the catalogue has, and how many objects the newest screening was of."""
    numbers = pc.unique(platform.rows(PROVISIONAL_ELEMENTS, "norad_id")["norad_id"])
    entries = platform.rows(ORBITAL_CATALOG, "norad_id")["norad_id"]
    screening = platform.lake.head(CONJUNCTION_CANDIDATES).commit
    return {
        "catalogued": pc.sum(pc.is_in(numbers, entries)).as_py() or 0,
        "screened": screening.manifest.counts["changed"] if screening else 0,
    }


def tracked(platform: Platform) -> int:
    """How many unknown objects have a confirmed track: radars saw them again once they were in the catalogue."""
    numbers = pc.unique(platform.rows(PROVISIONAL_ELEMENTS, "norad_id")["norad_id"])
    tracks = platform.rows(TRACKS, "norad_id", "state")
    confirmed = tracks.filter(pc.equal(tracks["state"], "confirmed"))
    return pc.sum(pc.is_in(numbers, confirmed["norad_id"])).as_py() or 0

"""All-against-all screening of a real catalogue against astroz (https://pypi.org/project/astroz, MIT), in turns.

    pip install astroz
    python benchmarks/screening_astroz.py [--hours 4] [--rounds 3]

Both read the catalogue of 2024-11-01 as TLEs, for that is what astroz takes, and search it in one process: astroz with
a grid of 30 s, which is the fastest here. Nothing is printed unless the events of at least 10 m/s are the same pairs,
within a second and a metre; slower ones astroz does not promise. Reading is not counted.
"""

import argparse
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import astroz
import numpy as np
import numpy.typing as npt
from screening import CATALOGUE, HOUR_NS, START_NS, THRESHOLD_KM, Found, compare, fast_events

from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.cli.data.convert import convert_file
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.search import screen
from sda_platform.units import SECOND_NS

GRID_MIN = 0.5
MOST_DIFFERENCE_M = 1.0


def main() -> int:
    """Run, print, and fail where the events differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    text = convert_file(CATALOGUE, "tle").data
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "catalogue.tle")
        file.write_bytes(text)
        elements = read_elements(file, START_NS, START_NS + 1).elements
    peer: Any = astroz
    theirs, propagator, rows = peer.Constellation(text.decode()), Propagator(elements), np.arange(len(elements))
    end_ns = START_NS + round(options.hours * HOUR_NS)
    screen(propagator, rows, rows, START_NS, START_NS + SECOND_NS, THRESHOLD_KM)  # compile before anything is timed
    seconds: dict[str, list[tuple[float, float]]] = {"ours": [], "astroz": []}
    for _ in range(options.rounds):
        begin = time.perf_counter(), time.process_time()
        ours = screen(propagator, rows, rows, START_NS, end_ns, THRESHOLD_KM)
        seconds["ours"].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        begin = time.perf_counter(), time.process_time()
        found = peer.screen(
            theirs,
            options.hours * 60,
            threshold=THRESHOLD_KM,
            step=GRID_MIN,
            start_time=datetime.fromtimestamp(START_NS / SECOND_NS, UTC),
        )
        seconds["astroz"].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    agreement = compare(fast_events(elements, ours), _of_astroz(np.asarray(theirs.satnums), found))
    print(f"{len(elements):,} objects, {options.hours:g} h: {agreement}")
    if agreement.missing or agreement.extra or agreement.miss_m > MOST_DIFFERENCE_M:
        print("the events differ: no time is worth printing")
        return 1
    medians = {
        name: [statistics.median(column) for column in zip(*each, strict=True)] for name, each in seconds.items()
    }
    for name, (wall_s, busy_s) in medians.items():
        print(f"{name}: {wall_s:.1f} s by the clock, {busy_s:.1f} s of processors")
    print(f"{medians['astroz'][0] / medians['ours'][0]:.1f} times faster by the clock")
    return 0


def _of_astroz(norad_id: npt.NDArray[Any], found: Any) -> Found:
    """Return its events with catalogue numbers, lower one first, Unix time and miss distance, km."""
    fast = np.flatnonzero(np.asarray(found.speed) >= SLOWEST_EVENT_KM_S)
    pairs = np.sort(np.stack([norad_id[found.i[fast]], norad_id[found.j[fast]]], axis=-1), axis=-1)
    times_ns = START_NS + np.round(found.time[fast] * 60 * SECOND_NS).astype(np.int64)
    return list(zip(map(tuple, pairs.tolist()), times_ns.tolist(), found.distance[fast].tolist(), strict=True))


if __name__ == "__main__":
    sys.exit(main())

"""Speed of finding pass windows, against Skyfield's ``find_events``.

    python benchmarks/pass_windows.py [--objects 26834] [--peer-pairs 60] [--hours 24]

Both search the shipped catalogue from the shipped radars, in one process. Skyfield takes a seeded choice of pairs
(object, radar). Nothing is printed unless rises and sets of these pairs agree to half a second. The rate is pairs per
second of processor time.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from itertools import starmap

import numpy as np
from rich.console import Console
from skyfield.api import EarthSatellite, load, wgs84

from sda_platform.clock import utc
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.passes import PassWindows, find_passes, site_sensor
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform_tests.support.reference_elements import reference_elements

SEED = 20241101
TOLERANCE_S = 0.5
console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and fail where the answers differ."""
    options = _options(arguments)
    end_ns = REFERENCE_TIME_NS + round(options.hours * 3600e9)
    elements = _elements(options.objects)
    sensors = list(sensor_registry().values())
    sites = [_as_site(sensor) for sensor in sensors]
    find_passes(Propagator(elements.take([0])), sites, REFERENCE_TIME_NS, end_ns)  # compile
    random = np.random.default_rng(SEED)
    pairs = [(int(random.integers(len(elements))), int(random.integers(len(sites)))) for _ in range(options.peer_pairs)]
    peer_s, differences = _compared(elements, sites, pairs, end_ns)
    if not differences or max(differences) > TOLERANCE_S:
        console.print(f"rises or sets differ by up to {max(differences, default=np.inf):.2f} s: no time is printed")
        return 1
    median_s, largest_s = statistics.median(differences), max(differences)
    console.print(f"{len(pairs)} pairs by both: rises and sets differ by {median_s:.3f} s, at most {largest_s:.3f} s")
    began, cpu = time.perf_counter(), time.process_time()
    found = find_passes(Propagator(elements), sensors, REFERENCE_TIME_NS, end_ns)
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    ours, peer = len(elements) * len(sensors) / cpu_s, len(pairs) / peer_s
    console.print(f"{len(elements):,} objects, {len(sensors)} sensors, {options.hours:g} h: {len(found):,} windows")
    console.print(f"in {wall_s:.1f} s, of which {cpu_s:.1f} s are processor time of one process")
    console.print(f"pairs a second: ours {ours:,.0f}, Skyfield {peer:,.1f}: [bold]{ours / peer:,.0f} times[/bold]")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=26_834)
    parser.add_argument("--peer-pairs", type=int, default=60, help="how many pairs Skyfield takes")
    parser.add_argument("--hours", type=float, default=24.0)
    return parser.parse_args(arguments)


def _elements(count: int) -> ElementSets:
    elements = reference_elements(every=1)
    return elements.take(np.linspace(0, len(elements) - 1, count).astype(int))


def _as_site(sensor: Sensor) -> Sensor:
    """The sensor without limits of range and light, which Skyfield's search does not have."""
    place = (sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
    return site_sensor(*place, sensor.min_elevation_deg)


def _compared(
    elements: ElementSets, sites: list[Sensor], pairs: list[tuple[int, int]], end_ns: int
) -> tuple[float, list[float]]:
    """Skyfield's processor time, and how far its rises and sets are from ours; infinite where their number differs.

    Skyfield itself stops at half a second.
    """
    scale = load.timescale(builtin=True)
    ends = [scale.from_datetime(utc(time_ns)) for time_ns in (REFERENCE_TIME_NS, end_ns)]
    propagator = Propagator(elements)
    peer_s, differences = 0.0, list[float]()
    for row, number in pairs:
        site = sites[number]
        windows = find_passes(propagator.take([row]), [site], REFERENCE_TIME_NS, end_ns)
        satellite = EarthSatellite.from_satrec(propagator._satrecs[row], scale)
        place = wgs84.latlon(site.latitude_deg, site.longitude_deg, elevation_m=site.altitude_m)
        began = time.process_time()
        moments, kinds = satellite.find_events(place, *ends, altitude_degrees=site.min_elevation_deg)
        peer_s += time.process_time() - began
        theirs = np.array([moment.timestamp() for moment in moments.utc_datetime()])
        differences += starmap(
            _difference, zip(_edges(windows, end_ns), (theirs[kinds == 0], theirs[kinds == 2]), strict=True)
        )
    return peer_s, [difference for difference in differences if difference >= 0]


def _edges(windows: PassWindows, end_ns: int) -> tuple[np.ndarray, np.ndarray]:
    return (
        windows.aos_ns[windows.aos_ns > REFERENCE_TIME_NS] / 1e9,
        windows.los_ns[windows.los_ns < end_ns] / 1e9,
    )


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    return float(np.abs(ours - theirs).max()) if len(ours) else -1.0


if __name__ == "__main__":
    sys.exit(main())

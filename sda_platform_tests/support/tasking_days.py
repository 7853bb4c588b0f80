"""A day of tasking with real passes: objects of the shipped catalogue over the shipped radars, owned by regions."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.passes import find_passes
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform.tasking.antennas import Antenna, AntennaPass, AntennaTimeline
from sda_platform.tasking.planning import request_value
from sda_platform.tasking.scheduling import Request
from sda_platform_tests.support.reference_elements import reference_elements

HOUR_NS = 3_600_000_000_000
REGIONS = 12


@dataclass(frozen=True)
class Day:
    """Requests, the windows of each, and the antennas."""

    requests: list[Request]
    windows: dict[str, list[AntennaPass]]
    antennas: dict[str, Antenna]

    @property
    def value(self) -> float:
        """What serving every request would be worth."""
        return sum(each.value for each in self.requests)


@cache
def day_of_passes(
    count: int, *, seed: int = 7, sensors: int = 14, slack: float = 0.9, duration_s: float = 120.0
) -> Day:
    """A day of ``count`` requests for real passes of real objects, with peaks in the morning and the evening.

    The deadline of a request is the end of one of its passes; its windows are the passes of its object from the request
    on, so about ``slack`` of the requests have more than one. One in twenty is of class 0, a third of class 1.
    """
    random = np.random.default_rng(seed)
    radars = sensor_registry().of_kind("radar")[:sensors]
    elements = reference_elements(every=1)
    elements = elements.take(random.choice(len(elements), count, replace=False))
    start_ns = REFERENCE_TIME_NS
    found = find_passes(Propagator(elements), radars, start_ns, start_ns + 24 * HOUR_NS, least_s=duration_s + 10)
    requests, windows = [], {}
    for row in range(count):
        mine = np.flatnonzero(found.index == row)
        if not len(mine):
            continue
        mine = mine[np.argsort(found.aos_ns[mine])]
        peak_h = random.choice([6.0, 18.0], p=[0.5, 0.5]) + random.normal(0, 2.5)
        asked_ns = start_ns + round(max(peak_h - 4.0, 0.0) * HOUR_NS)
        after = mine[found.aos_ns[mine] >= asked_ns]
        chosen = (after if len(after) else mine)[: int(random.integers(2, 6)) if random.random() < slack else 1]
        priority_class = int(random.choice([0, 1, 2], p=[0.05, 0.35, 0.6]))
        request = Request(
            f"request-{row:05d}",
            int(elements.norad_id[row]),
            priority_class,
            int(found.los_ns[chosen[-1]]),
            asked_ns,
            f"region-{row % REGIONS:02d}",
            request_value(priority_class, float(random.uniform(0, 10))),
            round(duration_s * 1e9),
        )
        requests.append(request)
        windows[request.request_id] = [
            AntennaPass(
                f"pass-{number}",
                radars[found.sensor[number]].source_id,
                int(found.aos_ns[number]),
                int(found.tca_ns[number]),
                int(found.los_ns[number]),
                (float(np.degrees(found.azimuth_aos_rad[number])), 3.0),
                (float(np.degrees(found.azimuth_tca_rad[number])), float(np.degrees(found.max_elevation_rad[number]))),
                (float(np.degrees(found.azimuth_los_rad[number])), 3.0),
            )
            for number in chosen
        ]
    antennas = {radar.source_id: Antenna(radar.source_id, 10.0, 5.0) for radar in radars}
    return Day(requests, windows, antennas)


def first_fit(day: Day) -> set[str]:
    """The requests that a first-fit script serves: in order of arrival, the middle of the first window that is free."""
    days = {name: AntennaTimeline(antenna) for name, antenna in day.antennas.items()}
    served = set()
    for request in sorted(day.requests, key=lambda each: (each.requested_ns, each.request_id)):
        for window in day.windows[request.request_id]:
            between_ns = window.aos_ns, min(window.los_ns, request.deadline_ns)
            booking = days[window.source_id].middle(request.request_id, window, between_ns, request.duration_ns)
            if not days[window.source_id].conflicts(booking):
                days[window.source_id].add(booking)
                served.add(request.request_id)
                break
    return served

"""The simulated world of `sda demo`, `sda collector feed` and `sda simulate`, and how it is landed as files."""

import heapq
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sda_platform.catalog.sources import SOURCE_PRIORITY
from sda_platform.clock import MissionClock
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.registry import known_format
from sda_platform.formats.segments import SegmentMeta, Sender, describe_segment
from sda_platform.landing.lander import seal
from sda_platform.settings import Settings
from sda_platform.simulation.breakup import Breakup
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import geostationary_objects, low_objects, reference_catalogue
from sda_platform.simulation.scenarios import Incidents
from sda_platform.simulation.visibility import ScheduledTime
from sda_platform.simulation.world import SimulatedSegment, simulate, write_truth

_SURVEYED_GEOSTATIONARY, _SURVEYED_LOW = 30, 80
_LINKED_SATELLITES = 30
SHIPPED = Sender("shipped catalogue", rank=SOURCE_PRIORITY["CELESTRAK"])


def land_catalogue(settings: Settings, clock: MissionClock) -> SegmentMeta:
    """Seal the shipped catalogue of 2024-11-01 where element sets land."""
    data = reference_catalogue()
    facts = {"sealed_time_ns": clock.now_ns(), "sealed_wall_time_ns": time.time_ns()}
    meta = describe_segment(data, feed="elements", segment_format="omm-csv", sender=SHIPPED, **facts)
    seal(data, meta, settings.landing_uri, stem="celestrak_2024-11-01")
    return meta


def observed_world(
    scenario: str,
    *,
    start_ns: int,
    duration_s: float,
    seed: int,
    objects: Sequence[int],
    truth_from_ns: int | None = None,
    scheduled: Sequence[ScheduledTime] = (),
    incidents: Incidents = Incidents(),  # noqa: B008 - frozen
) -> Iterator[SimulatedSegment]:
    """Simulate the segments of a scenario around these objects and those that sensors survey every day.

    Calls that share ``truth_from_ns`` and ``seed`` show one world at different times.
    Sensors also observe the ``scheduled`` times, in addition to their survey.

    The surveyed objects ensure that each sensor observes something within minutes: fusion closes no window before each
    source has sent, and a silent radar is a fault.
    The first objects report their own states: which ones does not change when others follow.
    A break-up has 1,800 uncatalogued fragments; the simulated radars can track as many at once. A constellation sees
    the whole catalogue.
    """
    surveyed = (*geostationary_objects(_SURVEYED_GEOSTATIONARY), *low_objects(_SURVEYED_LOW))
    observed = list(dict.fromkeys([*objects, *surveyed]))
    linked = tuple(observed[:_LINKED_SATELLITES])
    return simulate(
        scenario,
        start_time_ns=start_ns,
        duration_s=duration_s,
        seed=seed,
        objects=None if scenario == "constellation" else observed,
        truth_from_ns=truth_from_ns,
        breakup=Breakup(fragments=1_800, published_after_s=None),
        plan=ObservingPlan(radar_capacity=2_000, scheduled=tuple(scheduled), linked=linked),
        incidents=incidents,
    )


def continued_world(
    scenario: str,
    *,
    from_ns: int,
    truth_from_ns: int,
    now_ns: Callable[[], int],
    minutes: float,
    seed: int,
    objects: Callable[[Sequence[int]], Sequence[int]],
    scheduled: Callable[[], Sequence[ScheduledTime]],
    incidents: Incidents = Incidents(),  # noqa: B008 - frozen
) -> Iterator[SimulatedSegment]:
    """Simulate stretch after stretch of ``minutes`` of one world without end, the first from ``from_ns`` on.

    The truth does not change between them; it follows from ``truth_from_ns`` and the seed.

    At the begin of each, ``objects`` returns what is observed, given what was before, and ``scheduled`` the sensors'
    schedule. What arrives after the end of a stretch is among the segments of the next. An outage of the scenario is
    over after the first stretch.
    """
    start_ns, observed = from_ns, objects(())
    late: list[SimulatedSegment] = []
    while True:
        stretch = observed_world(
            scenario,
            start_ns=start_ns,
            duration_s=minutes * 60.0,
            seed=seed,
            objects=observed,
            truth_from_ns=truth_from_ns,
            scheduled=scheduled(),
            incidents=incidents,
        )
        end_ns = start_ns + round(minutes * 60e9)
        waiting, late = late, []
        for segment in heapq.merge(waiting, stretch, key=lambda each: each.available_time_ns):
            if segment.available_time_ns < end_ns:
                yield segment
            else:
                late.append(segment)
        start_ns, observed = max(end_ns, now_ns()), objects(observed)
        scenario = "nominal" if scenario == "outage" else scenario


def made_ahead(segments: Iterator[SimulatedSegment], count: int) -> Iterator[SimulatedSegment]:
    """Yield the same segments; a thread makes ``count`` of them ahead.

    A stretch takes as long to begin as dozens of its segments take to arrive; sensors must not fall silent meanwhile.
    """
    ready: queue.Queue[SimulatedSegment | BaseException | None] = queue.Queue(count)

    def make() -> None:
        try:
            for segment in segments:
                ready.put(segment)
            ready.put(None)
        except BaseException as error:  # the one that asks gets it
            ready.put(error)

    threading.Thread(target=make, daemon=True, name="simulated world").start()
    while (made := ready.get()) is not None:
        if isinstance(made, BaseException):
            raise made
        yield made


def write_simulation(directory: Path, scenario: str, *, start_ns: int, minutes: float, seed: int) -> int:
    """Write a simulated world as files for `sda land`, and its truth; returns the number of segments."""
    fleet = [member.norad_id for member in protected_fleet()]
    segments = list(observed_world(scenario, start_ns=start_ns, duration_s=minutes * 60, seed=seed, objects=fleet))
    directory.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        suffix = known_format(segment.segment_format).suffixes[0]
        (directory / f"{segment.feed}-{segment.available_time_ns}{suffix}").write_bytes(segment.data)
    write_truth(segments, directory / "truth.parquet")
    return len(segments)

"""A simulated world: real objects, real sites, the sensors' records and their arrival.

Pure: the same arguments give the same bytes. Time is simulated a minute at a time, so that memory does not grow with
the duration. The truth accompanies each segment and never lands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.simulation.breakup import Breakup
from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.corruption import FaultRates, delayed, deliveries
from sda_platform.simulation.observers import Observers, ObservingPlan
from sda_platform.simulation.randomness import stream
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.scenarios import (
    SCENARIOS,
    Incidents,
    Outage,
    elements_segment,
    parent_of,
    with_breakup,
    with_manoeuvre,
    with_newcomers,
)
from sda_platform.simulation.segments import SegmentCollector, SimulatedSegment, write_truth
from sda_platform.simulation.simulated_observations import SimulatedObservations
from sda_platform.simulation.sky import Sky
from sda_platform.units import MINUTE_NS

__all__ = ["SimulatedSegment", "simulate", "write_truth"]

_STRETCH_NS: Final = MINUTE_NS
_FEEDS: Final = ("isl", "optical", "radar")


def simulate(
    scenario: str,
    *,
    start_time_ns: int,
    duration_s: float,
    seed: int,
    objects: Sequence[int] | None = None,
    catalogue: bytes | None = None,
    with_catalogue: bool = False,
    truth_from_ns: int | None = None,
    segment_seconds: float = 5.0,
    rates: FaultRates = FaultRates(),  # noqa: B008 - frozen
    plan: ObservingPlan = ObservingPlan(),  # noqa: B008 - frozen
    breakup: Breakup = Breakup(),  # noqa: B008 - frozen
    incidents: Incidents = Incidents(),  # noqa: B008 - frozen
) -> Iterator[SimulatedSegment]:
    """Segments of every feed in order of `available_time_ns`, which starts no earlier than `start_time_ns`.

    Args:
        scenario: nominal; fragmentation (`breakup`: new debris, observed at once and published as element sets a
            little later); outage (a radar is silent in the middle third, then sends its backlog); constellation (only
            the observers in orbit of `plan` observe).
        start_time_ns: ns since the Unix epoch, UTC.
        duration_s: for how long the sensors measure; late observations arrive up to 30 s after.
        seed: the only source of chance.
        objects: NORAD ids that the sensors observe, unknown ones ignored; None for all of the catalogue.
        catalogue: an `omm-csv` segment; the reference catalogue where None.
        with_catalogue: also yield the catalogue itself, first, as a segment of the elements feed.
        truth_from_ns: until then objects follow their element sets, from then on the numerical model; the start where
            None. A break-up is dated from it, too. Calls that share it, the seed and the catalogue show one world at
            different times.
        segment_seconds: how many seconds of arrivals of one feed a segment holds.
        incidents: what happens at times of its own, in any scenario.

    Raises:
        ValueError: an unknown scenario, or a break-up that cannot happen.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario {scenario!r} is none of {', '.join(SCENARIOS)}")
    data = reference_catalogue() if catalogue is None else catalogue
    segment_ns, duration_ns = int(segment_seconds * 1e9), int(duration_s * 1e9)
    followed = list(objects) if objects is not None else None
    table = decode_element_sets(data, segment_format="omm-csv")
    begun_ns = start_time_ns if truth_from_ns is None else truth_from_ns
    parent = parent_of(breakup, table, begun_ns, seed) if scenario == "fragmentation" else None
    if followed is not None and parent is not None:
        followed.append(parent)
    sky = Sky.of_catalogue(
        table,
        objects=followed,
        seed=seed,
        catalogue_error_s=plan.catalogue_error_s,
        start_time_ns=begun_ns,
    )
    for burn in sorted(incidents.manoeuvres, key=lambda each: each.time_ns):
        sky = with_manoeuvre(sky, burn)
    sky = with_newcomers(sky, incidents.newcomers, seed)
    published = [elements_segment(data, start_time_ns)] if with_catalogue else []
    if parent is not None:
        sky, debris = with_breakup(sky, parent, breakup, begun_ns, seed)
        if breakup.published_after_s is not None:
            published_ns = begun_ns + int((breakup.after_s + breakup.published_after_s) * 1e9)
            published += [elements_segment(debris, published_ns)] if published_ns >= start_time_ns else []
    published += _within(incidents, start_time_ns, start_time_ns + duration_ns)
    outages = list(incidents.outages)
    if scenario == "outage":
        outages.append(Outage.of_middle_third(start_time_ns, duration_ns))
    if scenario == "constellation":
        plan = plan if plan.constellation else replace(plan, constellation=Constellation())
    feeds = _feeds(Observers(sky, plan, seed), scenario, rates, outages, start_time_ns, duration_ns, segment_ns)
    yield from _merged(feeds, sorted(published, key=lambda segment: segment.available_time_ns))


def _within(incidents: Incidents, start_time_ns: int, stop_time_ns: int) -> list[SimulatedSegment]:
    """Return the files that arrive in [start, stop): the newcomers' element sets, and what others send."""
    sets = [elements_segment(encode_omm_csv([each.element_set]), each.catalogued_ns) for each in incidents.newcomers]
    return [each for each in (*sets, *incidents.arrivals) if start_time_ns <= each.available_time_ns < stop_time_ns]


def _feeds(
    observers: Observers,
    scenario: str,
    rates: FaultRates,
    outages: Sequence[Outage],
    start_time_ns: int,
    duration_ns: int,
    segment_ns: int,
) -> Iterator[SimulatedSegment]:
    """Segments of the scenario's sensor feeds in order of arrival."""
    reporting = ("optical",) if scenario == "constellation" else _FEEDS
    collectors = {feed: SegmentCollector(feed, start_time_ns, segment_ns) for feed in reporting}
    stop_time_ns = start_time_ns + duration_ns
    for begin in range(start_time_ns, stop_time_ns, _STRETCH_NS):
        end = min(begin + _STRETCH_NS, stop_time_ns)
        for feed in reporting:
            observations: SimulatedObservations = getattr(observers, feed)(begin, end)
            noise = stream(observers.seed, "faults", feed, begin)
            observations = delayed(observations, rates, noise)
            for outage in outages:
                observations = outage.delayed(observations)
            collectors[feed].receive(observations, deliveries(observations, rates, noise))
        # Observations are received after they are measured: segments that end by now are complete.
        yield from _sealed(collectors, end if end < stop_time_ns else None)


def _sealed(collectors: dict[str, SegmentCollector], until_ns: int | None) -> list[SimulatedSegment]:
    sealed = [segment for collector in collectors.values() for segment in collector.seal_until(until_ns)]
    return sorted(sealed, key=lambda segment: (segment.available_time_ns, segment.feed))


def _merged(segments: Iterator[SimulatedSegment], published: list[SimulatedSegment]) -> Iterator[SimulatedSegment]:
    waiting = list(published)
    for segment in segments:
        while waiting and waiting[0].available_time_ns <= segment.available_time_ns:
            yield waiting.pop(0)
        yield segment
    yield from waiting

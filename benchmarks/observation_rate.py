"""How many observations a second the collector and the whole alert job hold, and what limits them.

    python benchmarks/observation_rate.py --rates 500 1000 1500 [--probe 2] [--minutes 10] [--seed 1]
    python benchmarks/observation_rate.py --scenario constellation --rates 347 600
    python benchmarks/observation_rate.py --rates 1250 --minutes 0 --during maintenance screening --every-change

Starts the platform with a collector in a home of its own, lands the catalogue and waits for its alerts. Simulated
radars, telescopes and links then observe ever more objects of the catalogue: their frames go to the collector over
sockets, at the times at which they arrive in the simulation. Each rate is tried for the minutes of ``--probe``, until
one does not hold. The highest that held is then sent for ``--minutes``. Between two spans the backlog drains.

With ``--scenario constellation`` satellites of a constellation observe the whole catalogue. The collector polls what
they report, once a second. ``--sustained`` names the rate that is sent for ``--minutes``, if not the highest.

A rate holds if nothing is lost and the backlog does not grow: the oldest observation of high priority that waits for a
run is, in the last third of the span, not much older than in the second, or younger than the 30 s that the platform
promises. Printed with it: the share of low priority, what waits at the end (low priority waits for up to a minute), the
steps that take most, and the time from the sealing of the oldest segment of high priority to the alerts that rest on
it, in the newest batch. A segment that waits for less than two seconds may be left out of this time. With
``--every-change`` every change of an alert is sent, because with the default policy hardly any is news within minutes.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
from competition import WORK, Competition
from latency import EVERY_CHANGE
from rich.console import Console
from waiting import wait_for

from sda_platform.cli.alert.current import current_alerts
from sda_platform.cli.collector.feeder import Feeder, ObservationArchive
from sda_platform.cli.collector.feeding import collector_config
from sda_platform.cli.collector.report import read_report
from sda_platform.cli.platform.demo import MISSION_START
from sda_platform.cli.platform.simulated_world import land_catalogue
from sda_platform.clock import MissionClock, parse_iso_ns
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.edge.address import Address
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.fleet import protected_fleet
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.lineage import stages
from sda_platform.observability.objectives import sent_entries
from sda_platform.runtime.processes import free_port
from sda_platform.runtime.running import progress_printer, running
from sda_platform.settings import Settings
from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import geostationary_objects, reference_catalogue
from sda_platform.simulation.world import SimulatedSegment, simulate

PROMISE_S = 30.0
_ZONES = ("radar", "isl", "optical")
_SURVEYED, _CALIBRATED, _CALIBRATION_S = 30, 1_000, 10.0
_SAMPLE_S, _GROWN = 2.0, 1.25
_PREPARED_S, _AHEAD, _LATE_NS, _GIVEN_UP_S = 90.0, 600, 10 * 10**9, 120.0
"""A span begins this long after its simulation, which is ahead by so many segments at most. The run ends if a segment
is so late, or none comes for so long."""
_NOMINAL, _CONSTELLATION = "nominal", "constellation"
_POLLED_AGAIN_S = 35.0
"""Observations arrive up to 30 s late. More would exceed the collector's bound of an answer, at high rates."""


@dataclass
class Span:
    """One rate: its segments, and what was seen meanwhile. ``oldest_s``: age of what waits, high priority."""

    rate: float
    start_ns: int
    segments: Iterator[SimulatedSegment]
    sent: int = 0
    oldest_s: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    high: dict[str, int] = field(default_factory=dict)
    """Segments of high priority that were seen waiting, and the wall time of their sealing in ns."""
    alerts_s: list[float] = field(default_factory=list)
    steps_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    low_share: float = 0.0
    lost: int = 0

    @property
    def thirds_s(self) -> list[float]:
        """The largest age in each third of the span."""
        count = len(self.oldest_s) // 3
        return [max(self.oldest_s[at : at + count], default=float("inf")) for at in (0, count, 2 * count)]

    @property
    def holds(self) -> bool:
        """Whether this rate is held."""
        _, second, last = self.thirds_s
        return not self.lost and last < max(_GROWN * second, PROMISE_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", required=True, help="observations per second, ascending")
    parser.add_argument("--probe", type=float, default=2.0, help="minutes for which each rate is tried")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="minutes for which the highest is sent; 0: it is not"
    )
    parser.add_argument(
        "--sustained", type=float, help="the rate that is sent for those minutes; the highest that held"
    )
    parser.add_argument("--scenario", choices=[_NOMINAL, _CONSTELLATION], default=_NOMINAL, help="who observes")
    parser.add_argument("--during", nargs="*", default=[], choices=[*WORK], help="work beside every span")
    parser.add_argument("--every-change", action="store_true", help="send every change of an alert")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    console = Console(highlight=False)
    say = progress_printer(console)
    with tempfile.TemporaryDirectory(prefix="sda-rate-") as directory:
        home, archive, polled = Path(directory), ObservationArchive(), Address("127.0.0.1", free_port(0))
        sources = home / "collect.toml"
        sources.write_text(collector_config(polled) + f"overlap_s = {_POLLED_AGAIN_S}\n")
        policy = EVERY_CHANGE if chosen.every_change else {}
        settings = Settings(home=home, collect=str(sources), screening={"horizon_h": 24.0}, alerting=policy)
        clock = MissionClock.starting_at(parse_iso_ns(MISSION_START))
        clock.save(home)
        world = World(chosen.seed, chosen.scenario)
        with archive.serving(polled), running(settings, say) as (_, addresses):
            land_catalogue(settings, clock)
            wait_for(lambda: bool(current_alerts(settings)), "the first alerts")
            work = {each: Competition(each, addresses.engine, home / each, home) for each in chosen.during}
            with Feeder(home, settings.landing_uri, archive).connected() as feeder:

                def holds(rate: float, minutes: float) -> bool:
                    span = world.span(rate, minutes * 60.0, clock)
                    with ExitStack() as beside:
                        for each in work.values():
                            beside.enter_context(each.beside())
                        _send(span, feeder, settings, clock)
                    say(_line(span, chosen.scenario))
                    for name, each in work.items():
                        say(f"{len(each.seconds)} rounds of {name}, median {statistics.median(each.seconds):.1f} s")
                    wait_for(lambda: _waiting(settings)[1] == 0, "the end of the backlog")
                    return span.holds

                held = list(takewhile(lambda rate: holds(rate, chosen.probe), chosen.rates))
                sustained = chosen.sustained or (held[-1] if held else 0.0)
                is_held = bool(held) and (not chosen.minutes or holds(sustained, chosen.minutes))
            for each in work.values():
                each.end()
    minutes = chosen.minutes or chosen.probe
    verdict = f"{sustained:,.0f} observations/s {'hold' if is_held else 'do not hold'}" if held else "no rate holds"
    highest = f"; the highest rate that held was {held[-1]:,.0f}/s" if held else ""
    console.print(f"{verdict} for {minutes:g} minutes{highest}")
    return 0 if is_held else 1


class World:
    """One world, of which each span shows as many objects as its rate needs, or all of them as a constellation does."""

    def __init__(self, seed: int, scenario: str) -> None:
        self._seed, self._scenario = seed, scenario
        if scenario == _NOMINAL:
            catalogue = (
                decode_element_sets(reference_catalogue(), segment_format="omm-csv").column("norad_id").to_numpy()
            )
            self._objects = np.random.default_rng(seed).permutation(catalogue).tolist()
            found = _surveyed(self._objects[:_CALIBRATED], parse_iso_ns(MISSION_START), _CALIBRATION_S, seed)
            self._per_object = sum(each.meta.records for each in found) / _CALIBRATION_S / _CALIBRATED

    def span(self, rate: float, seconds: float, clock: MissionClock) -> Span:
        """A span of this rate. Another process simulates it meanwhile, and takes a share of the same processors."""
        start_ns = clock.now_ns() + round(_PREPARED_S * 1e9)
        if self._scenario == _NOMINAL:
            segments = _ahead(_surveyed, self._objects[: round(rate / self._per_object)], start_ns, seconds, self._seed)
        else:
            segments = _ahead(_seen_from_orbit, round(rate), start_ns, seconds, self._seed)
        end_ns = start_ns + seconds * 1e9
        return Span(rate, start_ns, takewhile(lambda each: each.available_time_ns < end_ns, segments))


def _ahead(make: Callable[..., Iterator[SimulatedSegment]], *arguments: Any) -> Iterator[SimulatedSegment]:
    """What ``make`` yields, made in another process that starts now. Raises queue.Empty if that process ended."""
    process = multiprocessing.get_context("spawn")
    made = process.Queue(_AHEAD)
    process.Process(target=_make, args=(made, make, arguments), daemon=True).start()
    return iter(partial(made.get, timeout=_GIVEN_UP_S), None)


def _make(made: Any, make: Callable[..., Iterator[SimulatedSegment]], arguments: Sequence[Any]) -> None:
    for segment in make(*arguments):
        made.put(segment)
    made.put(None)


def _surveyed(objects: Sequence[int], start_ns: int, seconds: float, seed: int) -> Iterator[SimulatedSegment]:
    fleet = [member.norad_id for member in protected_fleet()]
    observed = list(dict.fromkeys([*fleet, *objects, *geostationary_objects(_SURVEYED)]))
    return _simulated(_NOMINAL, start_ns, seconds, seed, observed, ObservingPlan(radar_capacity=len(observed)))


def _seen_from_orbit(rate_per_s: int, start_ns: int, seconds: float, seed: int) -> Iterator[SimulatedSegment]:
    plan = ObservingPlan(constellation=Constellation(rate_per_s=rate_per_s))
    return _simulated(_CONSTELLATION, start_ns, seconds, seed, None, plan)


def _simulated(
    scenario: str, start_ns: int, seconds: float, seed: int, objects: list[int] | None, plan: ObservingPlan
) -> Iterator[SimulatedSegment]:
    return simulate(
        scenario,
        start_time_ns=start_ns,
        duration_s=seconds,
        seed=seed,
        objects=objects,
        truth_from_ns=parse_iso_ns(MISSION_START),
        segment_seconds=1.0,
        plan=plan,
    )


def _send(span: Span, feeder: Feeder, settings: Settings, clock: MissionClock) -> None:
    """Send a span at its times; look at what waits meanwhile."""
    time.sleep(max(0.0, (span.start_ns - clock.now_ns()) / 1e9))
    before, began_s, sampled_s = sum(feeder.sent.values()), time.time(), 0.0
    for segment in span.segments:
        if clock.now_ns() - segment.available_time_ns > _LATE_NS:
            raise SystemExit("the simulation took too long: this machine is too busy for a measurement")
        while segment.available_time_ns > clock.now_ns():
            time.sleep(0.01)
        feeder.send(segment)
        if time.monotonic() - sampled_s >= _SAMPLE_S:
            sampled_s = time.monotonic()
            high, waiting = _waiting(settings)
            span.oldest_s.append(max((time.time() - sealed_ns / 1e9 for sealed_ns in high.values()), default=0.0))
            span.waiting.append(waiting)
            span.high |= high
    span.sent = sum(feeder.sent.values()) - before
    report = read_report(settings.home)["sources"]
    span.lost = sum(each["dropped"] + (each["kernel_drops"] or 0) for each in report)
    span.low_share = next(each["low_share"] for each in report if each["kind"] == "radar")
    for step, seconds in _steps(settings, began_s):
        span.steps_s[step].append(seconds)
    span.alerts_s = list(_alerts(Lake(settings.lake_uri, clock, without_session), span.high, began_s))


def _waiting(settings: Settings) -> tuple[dict[str, int], int]:
    """The pending segments of high priority, with the wall time of sealing in ns, and how many records wait."""
    high, records = {}, 0
    for name in _ZONES:
        zone = LandingZone(settings.landing_uri, name)
        for segment in zone.pending():
            meta = segment.meta
            if meta is not None:
                records += meta.records
                if meta.priority in (None, "high", "emergency"):
                    high[segment.name] = meta.sealed_wall_time_ns
    return high, records


def _alerts(lake: Lake, high: Mapping[str, int], began_s: float) -> Iterator[float]:
    """Seconds from the sealing of the oldest segment of ``high`` in its newest batch to the alerts of each delivery."""
    log = lake.log(ALERT_DELIVERIES)
    for commit in takewhile(lambda each: each.timestamp_ms / 1e3 >= began_s, log.commits_from(log.version())):
        if not sent_entries(commit):
            continue
        taken = [each.commit.sequence for each in stages(lake, ALERT_DELIVERIES, commit) if each.table is RAW_RECORDS]
        if not taken:
            continue
        # Estimates of minutes, as time-tag biases, rest on all observations of that time: only the newest count.
        rows = lake.log(RAW_RECORDS).rows_of((max(taken) - 1, max(taken)), ["segment_name"])
        names = set(rows.column("segment_name").to_pylist())
        sealed = [high[name] for name in names & high.keys() if high[name] >= began_s * 1e9]
        if sealed:
            yield commit.timestamp_ms / 1e3 - min(sealed) / 1e9


def _steps(settings: Settings, began_s: float) -> Iterator[tuple[str, float]]:
    """How long each step of the alert job took, of the runs since ``began_s``; and the runs as ``run``."""
    with dg.DagsterInstance.from_config(str(settings.home / "dagster")) as instance:
        wanted = dg.RunsFilter(job_name="observations_to_alerts", statuses=[dg.DagsterRunStatus.SUCCESS])
        for record in instance.get_run_records(wanted, ascending=True):
            if record.start_time and record.end_time and record.start_time >= began_s:
                yield "run", record.end_time - record.start_time
                for step in instance.get_run_step_stats(record.dagster_run.run_id):
                    if step.start_time and step.end_time:
                        yield step.step_key, step.end_time - step.start_time


def _line(span: Span, scenario: str) -> str:
    longest = sorted(((statistics.mean(s), name) for name, s in span.steps_s.items() if name != "run"), reverse=True)
    steps = ", ".join(f"{name} {seconds:.1f} s" for seconds, name in longest[:4])
    runs, thirds = span.steps_s.get("run", []), ", ".join(f"{age:.0f}" for age in span.thirds_s)
    lengths = ", ".join(f"{statistics.mean(part):.1f}" for part in np.array_split(runs, 3) if len(part))
    alerts = (
        f"; {len(span.alerts_s)} alert deliveries, median {statistics.median(span.alerts_s):.1f} s after the oldest "
        f"of high priority was sealed, at most {max(span.alerts_s):.1f} s"
        if span.alerts_s
        else "; no alert changed"
    )
    low = f", {span.low_share:.0%} of radar low" if scenario == _NOMINAL else ""
    return (
        f"{span.rate:,.0f}/s ({span.sent:,} sent{low}): "
        f"{'holds' if span.holds else 'does not hold'}; lost {span.lost:,}; the oldest high waits "
        f"{thirds} s by thirds; {span.waiting[-1]:,} records wait at the end; "
        f"{len(runs)} runs of {lengths} s by thirds: {steps}{alerts}"
    )


if __name__ == "__main__":
    sys.exit(main())

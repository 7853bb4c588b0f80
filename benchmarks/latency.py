"""How long from sealing a segment to the alert in the subscriber, with the daemon running; and where the time goes.

    python benchmarks/latency.py [--landings 24] [--warm-up 3] [--seed 1]
    python benchmarks/latency.py --during maintenance screening     every second landing beside that work
    python benchmarks/latency.py --store-delay-ms 20                in an object store that answers so late

Starts the platform in a home of its own, lands the catalogue, and waits for the first alerts. Then, one after the
other, it lands link beacons of an alerted satellite over three windows, which confirm its track (noise makes its
orbit, and so its alert, change), at random moments of the sensor's interval. The clock runs from the segment's sealing
to the subscriber's own time of receipt. A landing whose run changes no alert (until TCA, the element set is better than
the track) is left out and replaced.
The first few landings are not counted: the figure is that of a warm engine, whose JVM has compiled what a run needs.
With ``--store-delay-ms`` lake and landing zones are in an object store of this machine, behind a proxy that holds each
piece of an answer (64 KiB) for so long. The jars for a store must be there (`python -m sda_platform.spark.jars --s3`).
With ``--during`` the landings alternate: one alone, one while other pools work for another lake on the same engine
(`competition.py`).
Before a figure is printed, the subscriber's alerts are compared with the journal's. A ratio puts the
figure next to the 30 s that the platform promises.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dagster as dg
import numpy as np
import pyarrow as pa
from competition import WORK, Competition
from rich.console import Console
from rich.table import Table as Grid
from waiting import wait_for

from sda_platform.catalog.orbits import Catalogue, catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.alert.current import CurrentAlert, current_alerts
from sda_platform.cli.platform.demo import MISSION_START
from sda_platform.cli.platform.simulated_world import land_catalogue
from sda_platform.clock import MissionClock, parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.isl import encode_isl_frames
from sda_platform.formats.segments import describe_segment
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.lander import seal
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.recovery.verification import current_keys, missing_or_surplus
from sda_platform.runtime.running import progress_printer, running
from sda_platform.settings import Settings
from sda_platform.simulation.motion import Motion
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.object_store_server import BUCKET, object_store

PROMISE_S = 30.0
EVERY_CHANGE = {"yellow_pc": 1e-7, "revise_decades": 1e-3, "revise_tca_s": 1e-3, "revise_miss_km": 1e-3}
"""An alert policy that sends every change, so that each landing that reaches an alert can be timed."""
_BEACONS, _BEACON_INTERVAL_NS = 10, 7 * 10**9
_POSITION_SIGMA_M, _VELOCITY_SIGMA_M_S = 20.0, 0.02


@dataclass(frozen=True)
class Landing:
    """One measured landing, wall seconds since sealing; ``stages`` in the order in which they happened."""

    total_s: float
    stages: dict[str, float]
    is_beside_work: bool = False


class Requests:
    """Counts the requests of the platform to an object store."""

    def __init__(self) -> None:
        self.count = 0

    def see(self, data: bytes) -> None:
        """Take a piece of what a client sent."""
        self.count += data.split(b" ", 1)[0] in (b"GET", b"PUT", b"HEAD", b"POST", b"DELETE")


def main() -> int:
    """Run the benchmark; 0 when the 95th percentile keeps the promise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--landings", type=int, default=24)
    parser.add_argument("--warm-up", type=int, default=3, help="landings that are not counted")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store-delay-ms", type=float, help="lake in an object store that answers so late")
    parser.add_argument("--during", nargs="*", default=[], choices=[*WORK], help="work beside every second landing")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    say = progress_printer(console)
    requests = Requests()
    with (
        tempfile.TemporaryDirectory(prefix="sda-latency-") as directory,
        _places(Path(directory) / "store", arguments.store_delay_ms, requests) as places,
    ):
        settings = Settings(home=Path(directory), screening={"horizon_h": 24.0}, alerting=EVERY_CHANGE, **places)
        clock = MissionClock.starting_at(parse_iso_ns(MISSION_START))
        clock.save(settings.home)
        with running(settings, say) as (_, addresses):
            land_catalogue(settings, clock)
            wait_for(lambda: bool(current_alerts(settings)), "the first alerts")
            wait_for(lambda: not unfinished(settings), "the catalogue's run to end")
            work = [
                Competition(each, addresses.engine, Path(directory) / each, settings.home) for each in arguments.during
            ]
            say(f"{len(current_alerts(settings))} alerts hold; now the landings")
            count, measured = arguments.warm_up + arguments.landings, []
            before = requests.count
            for number, landing in enumerate(_measure(settings, clock, count, random.Random(arguments.seed), work)):
                counted = number >= arguments.warm_up
                measured += [landing] if counted else []
                beside = f" beside {' and '.join(arguments.during)}" if landing.is_beside_work else ""
                sent, before = requests.count - before, requests.count
                beside += f", {sent} requests since the last one" if sent else ""
                say(f"landing {number + 1}: {landing.total_s:.1f} s{beside}" + ("" if counted else " (warm-up)"))
            for name, each in zip(arguments.during, work, strict=True):
                each.end()
                say(f"{len(each.seconds)} rounds of {name}, median {statistics.median(each.seconds):.1f} s")
            problems = _disagreements(settings, clock)
    if problems:
        console.print(f"[bold red]the subscriber and the journal differ:[/] {'; '.join(problems)}")
        return 1
    if arguments.during:
        _report_ratio(console, measured, " and ".join(arguments.during))
    return _report(console, [each for each in measured if not each.is_beside_work])


@contextmanager
def _places(directory: Path, delay_ms: float | None, requests: Requests) -> Iterator[Mapping[str, Any]]:
    """The settings of lake and landing zones: none, or a store behind a proxy that delays by ``delay_ms``."""
    if delay_ms is None:
        yield {}
        return
    with object_store(directory) as store, CuttingProxy(urlsplit(store.address).port or 0) as proxy:
        proxy.delay(delay_ms / 1000)
        proxy.on_request = requests.see
        os.environ.update({**store.environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"})
        yield {"lake": f"s3://{BUCKET}/lake", "landing": f"s3://{BUCKET}/landing"}


def _measure(
    settings: Settings, clock: MissionClock, count: int, chance: random.Random, work: Sequence[Competition]
) -> Iterator[Landing]:
    lake = Lake(settings.lake_uri, clock, without_session)
    catalogue = catalogue_at(lake, lake.head(ORBITAL_CATALOG).version)
    beacons = Beacons(settings, clock, catalogue, chance.getrandbits(32))
    passed_over: set[str] = set()
    while count:
        time.sleep(chance.uniform(0.0, settings.sensor_interval_s))
        alert = chance.choice([each for each in alerts_ahead(settings, clock) if each.event_id not in passed_over])
        entries = lake.log(CONJUNCTION_ALERTS).row_count()
        is_beside_work = bool(work) and count % 2 == 0
        with ExitStack() as beside:
            for each in work if is_beside_work else ():
                beside.enter_context(each.beside())
            assert alert.norad_id_1 is not None, "the demo's alerts are of its own screening"
            sealed_ns, _ = beacons.land(alert.norad_id_1)
            wait_for(lambda since_ns=sealed_ns: _has_ended(settings, since_ns), "the run to end")  # type: ignore[misc]
            if lake.log(CONJUNCTION_ALERTS).row_count() == entries:
                passed_over.add(alert.event_id)
                continue
            received_ns = _await_receipt(settings, sealed_ns)
        count -= 1
        stages = _stages(settings, sealed_ns, received_ns)
        yield Landing((received_ns - sealed_ns) / 1e9, stages, is_beside_work)


def alerts_ahead(settings: Settings, clock: MissionClock) -> list[CurrentAlert]:
    """Alerts that the benchmark's run time does not let pass, and that are so near that tracks count."""
    hour_ns = 3600 * 10**9
    return [a for a in current_alerts(settings) if hour_ns < parse_iso_ns(a.tca_utc) - clock.now_ns() < 4 * hour_ns]


class Beacons:
    """Lands what satellites of a catalogue report, which move by the numerical model from now on.

    By their element sets they would seem to manoeuvre after some minutes.
    """

    def __init__(self, settings: Settings, clock: MissionClock, catalogue: Catalogue, seed: int) -> None:
        self._settings, self._clock, self._catalogue = settings, clock, catalogue
        self._generator, self._motion = np.random.default_rng(seed), Motion()
        self._from_ns = np.full(len(catalogue.norad_id), clock.now_ns() - _BEACONS * _BEACON_INTERVAL_NS)

    def land(self, norad_id: int) -> tuple[int, str]:
        """Seal a segment of beacons of the last minute; returns the wall time of sealing in ns, and its SHA-256."""
        now_ns = self._clock.now_ns()
        times = now_ns - np.arange(_BEACONS - 1, -1, -1) * _BEACON_INTERVAL_NS
        rows = np.full(_BEACONS, self._catalogue.positions([norad_id])[0])
        _, states = self._motion.states(
            self._catalogue.propagator, np.zeros_like(self._from_ns), self._from_ns, rows, times
        )
        sigma = np.repeat([_POSITION_SIGMA_M, _VELOCITY_SIGMA_M_S], 3)
        reported = 1e3 * states + self._generator.normal(0.0, sigma, (_BEACONS, 6))
        frames = encode_isl_frames(
            norad_id=np.full(_BEACONS, norad_id),
            timestamp_ns=times,
            position_m=reported[:, :3],
            velocity_m_s=reported[:, 3:],
            position_sigma_m=np.full(_BEACONS, _POSITION_SIGMA_M),
            velocity_sigma_m_s=np.full(_BEACONS, _VELOCITY_SIGMA_M_S),
            clock_quality=["gps_locked"] * _BEACONS,
            clock_age_s=np.zeros(_BEACONS),
        )
        data = pack_records(frames, [int(t) for t in times])
        sealed_ns = time.time_ns()
        meta = describe_segment(
            data, feed="isl", segment_format="isl-frames", sealed_time_ns=now_ns, sealed_wall_time_ns=sealed_ns
        )
        seal(data, meta, self._settings.landing_uri, stem=f"isl-{now_ns}")
        return sealed_ns, meta.sha256


def _await_receipt(settings: Settings, sealed_ns: int) -> int:
    """Wall time at which the subscriber first received an entry after sealing."""

    def first() -> int | None:
        later = [r[4] for r in SqliteSubscriber(settings.home / "subscriber.sqlite").receipts() if r[4] > sealed_ns]
        return min(later, default=None)

    wait_for(lambda: first() is not None, "the alert")
    return first() or 0


def _stages(settings: Settings, sealed_ns: int, received_ns: int) -> dict[str, float]:
    """Where the time between sealing and receipt went, from the run's events."""
    with instance_of(settings) as instance:
        record = instance.get_run_records(dg.RunsFilter(job_name=OBSERVATIONS_TO_ALERTS.name), limit=1)[0]
        events = instance.all_logs(record.dagster_run.run_id)
    marks = [("sensor tick", record.create_timestamp.timestamp())]
    for entry in events:
        event = entry.dagster_event
        if event is None:
            continue
        if event.event_type_value == "PIPELINE_STARTING":
            marks.append(("run queue", entry.timestamp))
        elif event.event_type_value == "PIPELINE_START":
            marks.append(("process start", entry.timestamp))
        elif event.event_type_value == "STEP_START" and marks[-1][0] == "process start":
            marks.append(("resources", entry.timestamp))
        elif event.event_type_value == "STEP_SUCCESS":
            marks.append((str(event.step_key), entry.timestamp))
    stages, before = {}, sealed_ns / 1e9
    for name, moment in marks:
        if before >= received_ns / 1e9:
            break
        stages[name] = min(moment, received_ns / 1e9) - before
        before = moment
    return stages


def _disagreements(settings: Settings, clock: MissionClock) -> list[str]:
    lake = Lake(settings.lake_uri, clock, without_session)
    expected = current_keys(lake.log(CONJUNCTION_ALERTS)).column("event_id")
    held = [a.event_id for a in current_alerts(settings)]
    return missing_or_surplus(expected, pa.chunked_array([pa.array(held, pa.string())]), "alerts")


def _report_ratio(console: Console, measured: list[Landing], work: str) -> None:
    beside = [each.total_s for each in measured if each.is_beside_work]
    alone = [each.total_s for each in measured if not each.is_beside_work]
    ratio = statistics.median(beside) / statistics.median(alone)
    console.print(
        f"beside {work}: median {statistics.median(beside):.1f} s over {len(beside)} landings, max "
        f"{max(beside):.1f} s; {ratio:.2f} times the median without"
    )


def _report(console: Console, measured: list[Landing]) -> int:
    totals = sorted(landing.total_s for landing in measured)
    p95 = totals[max(0, -(-95 * len(totals) // 100) - 1)]
    by_stage: dict[str, list[float]] = defaultdict(list)
    for landing in measured:
        for name, seconds in landing.stages.items():
            by_stage[name].append(seconds)
    grid = Grid("stage", "median s", "max s", box=None)
    for name, of_stage in by_stage.items():
        grid.add_row(name, f"{statistics.median(of_stage):.2f}", f"{max(of_stage):.2f}")
    console.print(grid)
    console.print(
        f"sealed → subscriber over {len(totals)} landings: median {statistics.median(totals):.1f} s, "
        f"p95 {p95:.1f} s, max {totals[-1]:.1f} s; p95 / promise = {p95 / PROMISE_S:.2f}"
    )
    return 0 if p95 < PROMISE_S else 1


def _has_ended(settings: Settings, since_ns: int) -> bool:
    """Whether a run of the alert job ended since then, and no run is active; one under way may take the landing too."""
    with instance_of(settings) as instance:
        newest = instance.get_run_records(dg.RunsFilter(job_name=OBSERVATIONS_TO_ALERTS.name), limit=1)
    has_run = bool(newest) and (newest[0].end_time or 0.0) * 1e9 > since_ns
    return has_run and not unfinished(settings)


def unfinished(settings: Settings) -> bool:
    active = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    with instance_of(settings) as instance:
        return bool(instance.get_runs(dg.RunsFilter(statuses=active), limit=1))


def instance_of(settings: Settings) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_config(str(settings.home / "dagster"))


if __name__ == "__main__":
    sys.exit(main())

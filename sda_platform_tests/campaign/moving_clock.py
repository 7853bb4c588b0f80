"""T2 with a mission clock that moves: windows close, data comes late, and a repeated run has another `as_of`.

In the other cases mission time is stopped and no window closes, so that the victim equals a fault-free twin. Here no
such twin exists: which data is late depends on what was committed before. Each case works on a copy of one lake. A
worker is killed, mission time moves on, late data lands, and the job runs again. Then the rules O1 to O4, O6 and O7
must hold, every late observation must be a dead letter, and a replay of the recorded windows and instants must give the
same rows to the last bit (O5).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.lake.lake import Lake, without_session
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS, Job
from sda_platform.simulation.corruption import FaultRates
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform.spark.engine import python_path
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.cases import Case
from sda_platform_tests.campaign.job_process import RunFailed, run_job
from sda_platform_tests.campaign.report import Report, t2_command
from sda_platform_tests.campaign.strikes import Kill
from sda_platform_tests.campaign.world import Delivery, RecordId
from sda_platform_tests.support.injections import Injection, armed, hits
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, described

_SETTINGS = {
    "SDA_SCREENING_HORIZON_H": "1",
    "SDA_SOURCES": '["radar", "isl"]',
    "SDA_ALERT_YELLOW_PC": "1e-7",
}
_RATES = FaultRates(late=0.1, duplicate=0.05, corrupt=0.02)
# Mission seconds of the runs: before the copies are made, the killed one, its repetition, and one more.
_FILLED_S, _ATTEMPT_S, _REPETITION_S, _AFTERWARDS_S = 100.0, 150.0, 200.0, 260.0
# Segments of this time are held back until the repetition; their windows are closed by then.
_HELD_BACK_S = (30.0, 60.0)
_FOLLOWED = 4
_REPLAY_S = 1800.0


def run(
    repeats: int,
    seed: int,
    selected: Sequence[Case],
    home: Path,
    engine_address: str,
    say: Callable[[str], None],
) -> Report:
    """Kill the worker at each of the ``selected`` points (of `cases.moving_clock`) ``repeats`` times.

    Raises RunFailed where the lake that is copied cannot be filled.
    """
    failures, seconds, struck = [], [], set()
    lakes = _Lakes(home, engine_address)
    if selected:
        lakes.begin(seed)
    for case in [case for _ in range(repeats) for case in selected]:
        problems, took_s, is_struck = lakes.outcome(case)
        struck |= {case.name} if is_struck else set()
        seconds.append(took_s)
        say(f"  {case.name}: repeated in {took_s:.1f} s")
        for problem in problems:
            say(f"  FAILED {case.name}: {problem}")
            failures.append(f"{case.name}: {problem}; again: {t2_command(seed, case.name)}")
    missed = frozenset(case.name for case in selected) - struck
    tries = repeats * len(selected)
    return Report("T2, a moving clock", seed, tries, frozenset(struck), missed, tuple(failures), tuple(seconds))


@dataclass
class _Lakes:
    """Copies of one lake below ``home``, and the record of what landed in each."""

    home: Path
    engine_address: str
    _written: dict[RecordId, bytes | None] = field(default_factory=dict)
    _deliveries: list[tuple[float, Delivery]] = field(default_factory=list)

    def begin(self, seed: int) -> None:
        """Fill the lake that is copied. Raises RunFailed."""
        followed = catalogue_ids()[:_FOLLOWED]
        catalogue = catalogue_of([*followed, *catalogue_ids()[::60]])
        elements = Delivery("elements", "catalogue.csv", catalogue, described(catalogue, "elements"))
        world = simulate(
            "nominal",
            start_time_ns=START_NS,
            duration_s=_REPETITION_S,
            seed=seed,
            objects=followed,
            rates=_RATES,
            plan=ObservingPlan(isl_interval_s=5.0),
        )
        self._deliveries = [_due(segment) for segment in world if segment.feed in ("radar", "isl")]
        self._land(self._filled, self._written, [elements, *self._between(0.0, _FILLED_S)])
        self._run(CATALOG_TO_ALERTS, self._filled, _FILLED_S)
        self._run(OBSERVATIONS_TO_ALERTS, self._filled, _FILLED_S)

    def outcome(self, case: Case) -> tuple[list[str], float, bool]:
        """What is wrong in the end; the seconds that the repetition took; whether the worker was killed."""
        assert isinstance(case.strike, Kill)
        # A directory of its own, since the engine caches the logs that it read at a path.
        victim = Path(tempfile.mkdtemp(prefix="victim-", dir=self.home))
        shutil.copytree(self._filled, victim, dirs_exist_ok=True)
        written, order = dict(self._written), victim / "order"
        point = case.strike.point
        Injection(point).arm(order)
        self._land(victim, written, self._between(_FILLED_S, _ATTEMPT_S))
        with suppress(RunFailed):
            self._run(OBSERVATIONS_TO_ALERTS, victim, _ATTEMPT_S, armed(order))
        is_struck = point in hits(order)
        self._land(victim, written, self._between(_ATTEMPT_S, _REPETITION_S + 1.0))
        began = time.monotonic()
        try:
            self._run(OBSERVATIONS_TO_ALERTS, victim, _REPETITION_S)
            took_s = time.monotonic() - began
            # The run after the one that left late observations out records them as dead letters.
            self._run(OBSERVATIONS_TO_ALERTS, victim, _AFTERWARDS_S)
            problems = self._problems(victim, written, point.partition(":")[2])
        except RunFailed as failed:
            took_s, problems = time.monotonic() - began, [f"O8 {failed}"]
        except Exception as error:  # a log that cannot be read, a replay without end: the outcome of the case
            took_s, problems = time.monotonic() - began, [f"{type(error).__name__}: {error}"]
        if not problems:
            shutil.rmtree(victim)
        return problems, took_s, is_struck

    def _problems(self, home: Path, written: Mapping[RecordId, bytes | None], struck_table: str) -> list[str]:
        """What is wrong in ``home`` after a worker was killed while it wrote ``struck_table``."""
        lake = Lake(str(home / "lake"), MissionClock.load(home), without_session)
        found = oracle.stored(lake, str(home / "landing"), SqliteSubscriber(home / "subscriber.sqlite"), written)
        found["O1"] += oracle.late(lake)
        found["O5"] = [p for each in sorted({struck_table, FUSED_TRACKS.name}) for p in self._unlike_record(home, each)]
        return oracle.lines({**found, "the case itself": _too_quiet(lake)})

    def _unlike_record(self, home: Path, table: str) -> list[str]:
        """How ``table`` differs from the rows that `sda lake replay` makes of its commits at another instant."""
        MissionClock(after(400 * 86_400.0), 0, 0.0).save(home)
        done = subprocess.run(
            [sys.executable, "-m", "sda_platform.cli.main", "lake", "replay", table],
            env={**os.environ, **self._environment(home)},
            capture_output=True,
            text=True,
            timeout=_REPLAY_S,
            check=False,
        )
        return [] if done.returncode == 0 else [(done.stderr or done.stdout)[-1000:]]

    def _between(self, after_s: float, upto_s: float) -> list[Delivery]:
        return [delivery for due_s, delivery in self._deliveries if after_s <= due_s < upto_s]

    def _land(self, home: Path, written: dict[RecordId, bytes | None], deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            written.update(delivery.records())
            delivery.land(str(home / "landing"))

    def _run(self, job: Job, home: Path, now_s: float, more: Mapping[str, str] | None = None) -> None:
        MissionClock(after(now_s), 0, 0.0).save(home)
        run_job(job.name, home, self.engine_address, {**_SETTINGS, **(more or {})})

    def _environment(self, home: Path) -> dict[str, str]:
        return {
            **_SETTINGS,
            "PYTHONPATH": python_path(),
            "SDA_HOME": str(home),
            "SDA_SPARK_REMOTE": self.engine_address,
        }

    @property
    def _filled(self) -> Path:
        return self.home / "filled"


def _due(segment: SimulatedSegment) -> tuple[float, Delivery]:
    """Mission time at which a segment lands, seconds, and the segment."""
    due_s = (segment.available_time_ns - START_NS) / 1e9
    name = f"{segment.feed}-{segment.available_time_ns}.seg"
    is_held_back = segment.feed == "radar" and _HELD_BACK_S[0] <= due_s < _HELD_BACK_S[1]
    return (_REPETITION_S if is_held_back else due_s), Delivery(segment.feed, name, segment.data, segment.meta)


def _too_quiet(lake: Lake) -> list[str]:
    """What the case lacks: windows that closed, late observations, or commits of different instants."""
    commits = lake.log(FUSED_TRACKS).commits(None)
    closed = len({commit.manifest.watermarks[FIRST_OPEN_WINDOW] for commit in commits})
    instants = len({commit.manifest.as_of_ns for commit in commits})
    late = sum(commit.manifest.counts["late"] for commit in commits)
    lacking = {"no window closed": closed < 2, "nothing came late": not late, "as_of never changed": instants < 2}
    return [problem for problem, is_so in lacking.items() if is_so]

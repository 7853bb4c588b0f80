"""T2, the jobs that a schedule starts: their workers, killed at every stage they pass.

What such a run finds depends on when it starts, so a victim and a twin that got the same input may rightly differ.
Each case therefore has a copy of one lake: its worker is killed and repeated, as by the schedule's next tick.
The tables must then hold, to the last bit, what a run without a fault writes there.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.clock import MissionClock
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.declarations import tables_of
from sda_platform.orchestration.jobs import SCHEDULED_JOBS, Job
from sda_platform.simulation.breakup import Breakup
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.world import simulate
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.cases import Case
from sda_platform_tests.campaign.job_process import RunFailed, run_job
from sda_platform_tests.campaign.report import Report, t2_command
from sda_platform_tests.support.injections import Injection, armed, hits
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, land

# Telescopes may see nothing in a scene as short as this.
_SETTINGS = {
    "SDA_SCREENING_HORIZON_H": "1",
    "SDA_ALERT_YELLOW_PC": "1e-7",
    "SDA_SOURCES": '["radar", "isl"]',
    "SDA_BATCH_MAX_SEGMENTS": "1000000",
    # A request may have no object of the catalogue; passes are searched for all of it.
    "SDA_TASKING_SCOPE": "all",
}
# A term of windows closes, from which clock biases are estimated; satellites are seen in more windows than refining
# them takes.
_SECONDS = 420
_FRAGMENTS = 6
_FOLLOWED = 4


def run(
    repeats: int, seed: int, selected: Sequence[Case], home: Path, engine_address: str, say: Callable[[str], None]
) -> Report:
    """Kill the worker at each of the ``selected`` points (of `cases.by_the_clock`) ``repeats`` times.

    Raises RunFailed where not even a run without a fault comes to its end.
    """
    failures, seconds, struck = [], [], set()
    lakes = _Lakes(home, engine_address)
    if selected:
        lakes.begin(seed)
    for case in [case for _ in range(repeats) for case in selected]:
        problems, took_s, is_struck = lakes.outcome(case.name)
        struck |= {case.name} if is_struck else set()
        seconds.append(took_s)
        say(f"  {case.name}: repeated in {took_s:.1f} s")
        for problem in problems:
            say(f"  FAILED {case.name}: {problem}")
            failures.append(f"{case.name}: {problem}; again: {t2_command(seed, case.name)}")
    missed = frozenset(case.name for case in selected) - struck
    tries = repeats * len(selected)
    return Report("T2, by the clock", seed, tries, frozenset(struck), missed, tuple(failures), tuple(seconds))


@dataclass(frozen=True)
class _Lakes:
    """Copies of one lake below ``home``; for each job one in which nothing goes wrong."""

    home: Path
    engine_address: str

    def begin(self, seed: int) -> None:
        """Fill the lake that is copied, and finish the copies that the others must equal. Raises RunFailed."""
        landing = str(self._filled / "landing")
        MissionClock(after(_SECONDS + 60.0), 0, 0.0).save(self._filled)
        followed = catalogue_ids()[:_FOLLOWED]
        catalogue = catalogue_of([*followed, *catalogue_ids()[::60]])
        land(LandingZone(landing, "elements"), "catalogue.csv", catalogue)
        self._run("catalog_to_alerts", self._filled)
        world = simulate(
            "fragmentation",
            start_time_ns=START_NS,
            duration_s=_SECONDS,
            seed=seed,
            objects=followed,
            segment_seconds=20.0,
            plan=ObservingPlan(isl_interval_s=5.0),
            breakup=Breakup(fragments=_FRAGMENTS, after_s=5.0, published_after_s=None),
        )
        segments = [segment for segment in world if segment.feed in ("radar", "isl")]
        # A run judges what is late by what the runs before it saw: the second closes the windows of the first.
        for _, together in groupby(segments, lambda segment: segment.available_time_ns > after(_SECONDS - 30.0)):
            for segment in together:
                name = f"{segment.feed}-{segment.available_time_ns}.seg"
                LandingZone(landing, segment.feed).seal(name, segment.data, segment.meta)
            self._run("observations_to_alerts", self._filled)
        for job in SCHEDULED_JOBS:
            sound = self._sound(job)
            shutil.copytree(self._before(job), sound)
            self._run(job.name, sound)
            # A commit may have no rows: seven minutes refine no element set so far that it is clearly better.
            if idle := [table.name for table in tables_of(job) if not self._lake(sound).head(table).sequence]:
                raise RunFailed(f"{job.name} in {sound} committed nothing to {', '.join(idle)}")

    def outcome(self, point: str) -> tuple[list[str], float, bool]:
        """The problems after a kill at ``point`` and a repeated run, the time, and whether it was killed."""
        # A place of its own: the engine remembers the logs that it read at a path.
        job = next(job for job in SCHEDULED_JOBS if point.partition(":")[2] in {t.name for t in tables_of(job)})
        victim = Path(tempfile.mkdtemp(prefix="victim-", dir=self.home))
        shutil.copytree(self._before(job), victim, dirs_exist_ok=True)
        order = victim / "order"
        Injection(point).arm(order)
        with suppress(RunFailed):
            self._run(job.name, victim, armed(order))
        began = time.monotonic()
        try:
            self._run(job.name, victim)
            problems = self._problems(job, victim)
        except RunFailed as failed:
            problems = [f"O8 {failed}"]
        took_s, is_struck = time.monotonic() - began, point in hits(order)
        if not problems:
            shutil.rmtree(victim)
        return problems, took_s, is_struck

    def _problems(self, job: Job, victim: Path) -> list[str]:
        sound, lake, tables = self._lake(self._sound(job)), self._lake(victim), tables_of(job)
        unlike = [
            f"O5 {table.name}: {problem}"
            for table in tables
            for problem in oracle.differences(sound.log(table).rows(), lake.log(table).rows())
        ]
        return unlike + [f"O3, O4 {found}" for found in (*oracle.log(lake, tables), *oracle.files(lake, tables))]

    @property
    def _filled(self) -> Path:
        return self.home / "filled"

    def _before(self, job: Job) -> Path:
        """What the job finds: what the one before it left, since new objects are what sensors are tasked with."""
        number = SCHEDULED_JOBS.index(job)
        return self._sound(SCHEDULED_JOBS[number - 1]) if number else self._filled

    def _sound(self, job: Job) -> Path:
        return self.home / job.name

    def _lake(self, home: Path) -> Lake:
        return Lake(str(home / "lake"), MissionClock.load(home), without_session)

    def _run(self, job: str, home: Path, more: Mapping[str, str] | None = None) -> None:
        run_job(job, home, self.engine_address, {**_SETTINGS, **(more or {})})

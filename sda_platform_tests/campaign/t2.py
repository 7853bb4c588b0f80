"""Tier T2: a real platform, hit at one point after another while input comes in, and judged after every recovery."""

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform_tests.campaign import by_the_clock, damage, moving_clock, oracle
from sda_platform_tests.campaign.cases import Case
from sda_platform_tests.campaign.job_process import RunFailed, run_job
from sda_platform_tests.campaign.platform import SETTINGS, NotReached, Victim
from sda_platform_tests.campaign.report import Report, joined, t2_command
from sda_platform_tests.campaign.twin import LAST_JOB, lake_of, run_twin
from sda_platform_tests.campaign.world import Input, World

# A kill costs a run, its detection and another run: half a minute on two idle cores, and these may be busy.
DRAIN_S = 600.0
_NAME = "T2, a real engine, daemon and lake"
_REPLAY_S = 3600.0


class Campaign:
    """One platform, one world, one account of what went wrong; ``command`` tells how a case is tried again."""

    def __init__(
        self,
        home: Path,
        world: World,
        victim: Victim,
        say: Callable[[str], None],
        command: Callable[[int, str], str] = t2_command,
    ) -> None:
        self._home, self._world, self._victim = home, world, victim
        self._say, self._command = say, command
        self._subscriber = SqliteSubscriber(self._victim.home / "subscriber.sqlite")
        self._acknowledged: set[str] = set()
        self._failures: list[str] = []
        self._reached: set[str] = set()
        self._missed: set[str] = set()
        self._seconds: list[float] = []

    def begin(self) -> None:
        """Have every table filled before the first fault."""
        first = [self._world.first_catalogue()]
        others: tuple[Input, ...] = ("ephemerides", "messages", "edits", "acknowledgements", "satellites")
        for what in others:
            first += self._world.next_input(what)
        self._world.deliver(first, self._victim.landing_root)
        self._victim.drain(DRAIN_S)
        self._land("readings")
        self._victim.drain(DRAIN_S)
        self._note("before the first fault", self._judge())
        self._say("  the platform is up, has its catalogue, tracks and first alerts; the faults begin")

    def attempt(self, case: Case) -> None:
        """Hit the platform, let it recover, and judge; each problem is noted, and the next case follows."""
        try:
            struck_at = self._hit(case)
            self._reached.add(case.name)
            self._victim.drain(DRAIN_S)
            self._seconds.append(time.monotonic() - struck_at)
            self._say(f"  {case.name}: recovered in {self._seconds[-1]:.1f} s")
            self._note(case.name, self._judge(), point=case.name)
        except NotReached as missed:
            self._missed.add(case.name)
            self._say(f"  MISSED {case.name}: {missed}")
        except TimeoutError as stuck:
            self._note(case.name, [f"O8 {stuck}"], point=case.name)
        except Exception as error:  # a platform that does not come back, a log that cannot be read: the case's outcome
            self._note(case.name, [f"{type(error).__name__}: {error}"], point=case.name)
        finally:
            self._victim.disarm()

    def _hit(self, case: Case) -> float:
        """When the strike hit (monotonic s). A state that lasts for a millisecond may pass unseen: tried twice."""
        try:
            return case.strike.hit(self._victim, self._land)
        except NotReached as missed:
            self._say(f"  {case.name}: {missed}; tried again")
            self._victim.disarm()
            self._victim.drain(DRAIN_S)
            return case.strike.hit(self._victim, self._land)

    def end(self, replayed: str) -> None:
        """Compare with a fault-free twin, a second reader, and the table ``replayed`` (or all) from its own history."""
        looks: dict[str, Callable[[], list[str]]] = {
            "the fault-free twin": self._unlike_its_twin,
            "two readers": lambda: oracle.readers(self._victim.platform.lake, self._victim.session("oracle")),
            "a live file deleted": self._unseen_loss,
            "its own history replayed": lambda: self._not_repeatable(replayed),
        }
        if self._victim.network is not None:  # a lake in an object store is not copied
            del looks["a live file deleted"]
        for name, look in looks.items():
            try:
                self._note(name, look())
            except Exception as error:  # the comparison could not be made: that is no success
                self._note(name, [f"{type(error).__name__}: {error}"])
            self._say(f"  compared with: {name}")

    def _unlike_its_twin(self) -> list[str]:
        engine = self._victim.engine_address
        twin = run_twin(self._home / "twin", self._world.delivered, engine)
        run_job(LAST_JOB, self._victim.home, engine, self._victim.settings)
        self._victim.drain(DRAIN_S)
        return [f"O5 {problem}" for problem in oracle.derived(self._victim.platform.lake, twin)]

    def _unseen_loss(self) -> list[str]:
        """F-live: on a copy of the lake, a data file that the log names is deleted; oracle and platform must see it."""
        home = self._home / "copy"
        shutil.copytree(self._victim.home / "lake", home / "lake")
        lake = lake_of(home)
        rows = lake.log(OBSERVATIONS).row_count()
        damage.live_file_deleted(lake.log(OBSERVATIONS))
        problems = [] if oracle.files(lake, [OBSERVATIONS]) else ["O4 the oracle does not see it"]
        if lake.log(OBSERVATIONS).row_count() != rows:
            problems.append("counting sees it: then O4 need not open files")
        World(self._world.seed).deliver(self._world.next_stretch(), str(home / "landing"))
        with contextlib.suppress(RunFailed):
            run_job("observations_to_alerts", home, self._victim.engine_address, SETTINGS)
            problems.append("a run went on with what is left")
        return problems

    def _not_repeatable(self, table: str) -> list[str]:
        """O5: the very batches that a battered platform took give the very bytes again."""
        try:
            self._victim.platform.sda("lake", "replay", table, within_s=_REPLAY_S)
        except AssertionError as differs:
            return [f"O5 {differs}"]
        return []

    @property
    def engine_address(self) -> str:
        """Where its engine answers."""
        return self._victim.engine_address

    def report(self, attempted: int) -> Report:
        """What was found in the cases ``attempted``."""
        return Report(
            _NAME,
            self._world.seed,
            cases=attempted,
            points_reached=frozenset(self._reached),
            points_missed=frozenset(self._missed - self._reached),
            failures=tuple(self._failures),
            recovery_seconds=tuple(self._seconds),
        )

    def close(self) -> None:
        """End the platform."""
        self._victim.close()

    def _land(self, what: Input) -> None:
        self._world.deliver(self._world.next_input(what), self._victim.landing_root)

    def _judge(self) -> list[str]:
        lake, landing = self._victim.platform.lake, self._victim.landing_root
        found = oracle.stored(lake, landing, self._subscriber, self._world.written, self._acknowledged)
        with self._victim.platform.instance as instance:
            found["O8"] = oracle.come_to_rest(instance, landing, DRAIN_S)
        self._acknowledged |= oracle.archived(landing)
        return oracle.lines(found)

    def _note(self, name: str, problems: Sequence[str], point: str = ".") -> None:
        """Enter ``problems``, with the command that tries again."""
        for problem in problems:
            self._say(f"  FAILED {name}: {problem}")
            self._failures.append(f"{name}: {problem}; again: {self._command(self._world.seed, point)}")


def run(
    repeats: int,
    seed: int,
    selected: Sequence[Case],
    home: Path,
    say: Callable[[str], None],
    *,
    clocked: Sequence[Case] = (),
    moving: Sequence[Case] = (),
    replayed: str = FUSED_TRACKS.name,
) -> Report:
    """Hit a platform below ``home`` in each of the ``selected`` ways ``repeats`` times; ``say`` hears the progress.

    In the end the table ``replayed`` (``all``: every one, for long) is made again from its history, and what the clock
    requests is hit in the ``clocked`` ways, and a platform whose clock moves in the ``moving`` ways.
    """
    with closing(Campaign(home, World(seed), Victim(home / "victim"), say)) as campaign:
        campaign.begin()
        for case in [case for _ in range(repeats) for case in selected]:
            campaign.attempt(case)
        campaign.end(replayed)
        asked = by_the_clock.run(repeats, seed, clocked, home / "by-the-clock", campaign.engine_address, say)
        moved = moving_clock.run(repeats, seed, moving, home / "moving-clock", campaign.engine_address, say)
        return joined(_NAME, seed, [campaign.report(repeats * len(selected)), asked, moved])

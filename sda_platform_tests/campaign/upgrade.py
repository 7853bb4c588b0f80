"""An upgrade over a live lake: an earlier release works, this one takes over, the earlier one comes back, and again.

    make soak UPGRADE=REVISION

Any revision of this repository is a release; it runs with the packages of this environment. Each takes over while input
lands and a run is under way: after a stop, and after a kill of all processes. In the end of each turn every record is
stored once, every alert is delivered once, and all files and manifests are sound. Before the first change, this release
computes beside the earlier one, from the same inputs, and what differs is printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.jobs import JOBS
from sda_platform.spark.engine import python_path
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.platform import FED_TABLES, SETTINGS, standing_clock
from sda_platform_tests.campaign.world import Delivery, Input, World
from sda_platform_tests.support.running_platform import RunningPlatform, eventually

_ROOT: Final = Path(__file__).parents[2]
_DRAIN_S: Final = 600.0
_STOP_S: Final = 60.0
console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the turns, and print what each left wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the earlier release: a tag or another revision of this repository")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with ExitStack() as ending:
        earlier = ending.enter_context(release(options.revision))
        home = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="sda-upgrade-"))) / "home"
        home.mkdir()
        standing_clock(home)
        problems = Upgrade(home, earlier, World(seed=options.seed)).run(options.revision)
    console.print(f"upgrade from {options.revision} and back: {len(problems)} problems")
    return 1 if problems else 0


@contextmanager
def release(revision: str) -> Iterator[Mapping[str, str]]:
    """Check out a revision, and yield the environment in which its programs run. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="sda-release-") as directory:
        checkout = Path(directory) / "checkout"
        git = ["git", "-C", str(_ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(checkout), revision], check=True)
        try:
            # Without the safe path, Python would find the package of the working directory first.
            of_release = {"PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1"}
            jars = [sys.executable, "-m", "sda_platform.spark.jars"]
            subprocess.run(jars, env={**os.environ, **of_release}, stdout=subprocess.DEVNULL, check=True)
            yield of_release
        finally:
            subprocess.run([*git, "remove", "--force", str(checkout)], check=True)


class Upgrade:
    """One home that several releases work on, one after the other, and what was landed there."""

    def __init__(self, home: Path, earlier: Mapping[str, str], world: World) -> None:
        self._home, self._earlier, self._world = home, earlier, world
        self._landing = str(home / "landing")

    def run(self, revision: str) -> list[str]:
        """Let the releases take turns; return what is wrong after each."""
        problems: list[str] = []
        turns = ((revision, False), ("this release", True), (revision, False), ("this release", True))
        for number, (name, is_this) in enumerate(turns):
            platform = RunningPlatform(self._home, environment={**SETTINGS, **({} if is_this else self._earlier)})
            try:
                self._land(self._first() if number == 0 else self._world.next_stretch())
                self._drain(platform)
                found = self._wrong(platform)
                console.print(f"turn {number + 1}, {name}: {found or 'nothing lost, nothing doubled'}")
                problems += [f"turn {number + 1}, {name}: {each}" for each in found]
                if number == 0:
                    problems += self._compared(platform)
                self._land([*self._world.next_stretch(), self._world.new_element_sets()])
                eventually(partial(_is_at_work, platform), _DRAIN_S, 0.02)
                if number % 2:
                    platform.kill()
                elif platform.interrupt(_STOP_S) != 0:
                    problems.append(f"turn {number + 1}, {name}: it did not stop")
            finally:
                platform.kill()
                eventually(partial(_has_ended, platform), _STOP_S)
            # What lands while none is up waits for the next.
            self._land(self._world.next_stretch())
        return problems

    def _compared(self, platform: RunningPlatform) -> list[str]:
        """Have this release compute beside the earlier one what that has committed; what differs is no problem."""
        beside = {name: value for name, value in platform.environment.items() if name not in self._earlier}
        done = subprocess.run(
            [sys.executable, "-m", "sda_platform.cli.main", "lake", "replay", "all"],
            env={**beside, "PYTHONPATH": python_path()},
            capture_output=True,
            text=True,
            check=False,
        )
        console.print(done.stdout)
        return [] if done.returncode in (0, 1) and done.stdout else [f"a replay beside it: {done.stderr[-500:]}"]

    def _first(self) -> list[Delivery]:
        # Facts about satellites are left out: a release that does not know their zone leaves them to the next.
        kinds: tuple[Input, ...] = ("ephemerides", "messages", "edits", "acknowledgements", "readings")
        return [self._world.first_catalogue(), *(each for kind in kinds for each in self._world.next_input(kind))]

    def _land(self, deliveries: Sequence[Delivery]) -> None:
        self._world.deliver(deliveries, self._landing)

    def _drain(self, platform: RunningPlatform) -> None:
        left: list[str] = []

        def is_done() -> bool:
            left[:] = _left(platform)
            return not left

        assert eventually(is_done, _DRAIN_S, 1.0), left

    def _wrong(self, platform: RunningPlatform) -> list[str]:
        subscriber = SqliteSubscriber(self._home / "subscriber.sqlite")
        with platform.instance as instance:
            rest = oracle.come_to_rest(instance, self._landing, _DRAIN_S)
        return oracle.lines(
            {**oracle.stored(platform.lake, self._landing, subscriber, self._world.written), "O8": rest}
        )


def _left(platform: RunningPlatform) -> list[str]:
    """What waits, by the account of the release that runs: an earlier one does not know all tables of this one."""
    found = platform.status()
    zones = [name for name, zone in found["zones"].items() if zone["backlog"]["segments"]]
    tables = [each.name for each in FED_TABLES if found["tables"].get(each.name, {}).get("backlog")]
    return [*zones, *tables, *(run.run_id for run in platform.runs(scheduled=True) if not run.is_finished)]


def _has_ended(platform: RunningPlatform) -> bool:
    return not platform.processes()


def _is_at_work(platform: RunningPlatform) -> bool:
    with platform.instance as instance:
        return bool(unfinished_run_of(instance, *JOBS))


if __name__ == "__main__":
    sys.exit(main())

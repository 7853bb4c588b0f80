"""F-tick of T1: a hundred ticks of the landing sensor at once, cursors from anywhere, and a history that is wiped.

Dagster promises little here: two daemons may evaluate one tick, submit one key twice, take up an old cursor, or have
lost every run. So whatever it forgets, a batch must be requested under one key, and a key that is run twice, at once,
must land every record once.
"""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Barrier
from uuid import uuid4

import dagster as dg

from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.attempts import ATTEMPT_TAG, BATCH_TAG, ZONE_TAG
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.sensors import request_landing
from sda_platform.spark.session import POOL_TAG
from sda_platform_tests.campaign.process_home import Home, contradictions, new_home, started, to_its_end, work
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_platform import ORPHAN_GRACE_S
from sda_platform_tests.support import injections

AT_ONCE = 100
_CURSORS = (None, "", "{torn", "0", "9999-12-31T23:59:59", "f" * 40)
_POINTS = ("lake.planned:raw_records", "commit.synced:raw_records")
# By then the pause before the next attempt is over.
_LATER_S = 60.0


@dataclass(frozen=True)
class Case:
    """The first worker of the batch is killed at ``point``, where there is one; then the history is wiped, or not."""

    point: str = ""
    is_wiped: bool = False

    def __str__(self) -> str:
        killed = f", a worker killed at {self.point}" if self.point else ""
        return f"{AT_ONCE} ticks{killed}{', the history wiped' if self.is_wiped else ''}"


CASES = tuple(Case(point, is_wiped) for point in ("", *_POINTS) for is_wiped in (False, True))


def run(repeats: int = 25, seed: int = 1, cases: Sequence[Case] = CASES) -> Report:
    """Each of ``cases``, ``repeats`` times."""
    failures: list[str] = []
    recoveries: list[float] = []
    reached: set[str] = set()
    chance = random.Random(seed)
    for case in tuple(cases) * repeats:
        with new_home() as home, dg.DagsterInstance.local_temp(str(home.root)) as instance:
            problems, seconds = _Sensed(home, instance, chance).outcome(case)
        recoveries.append(seconds)
        reached.update({case.point} - {""} if not problems else ())
        failures += [f"{case}, seed {seed}: {problem}" for problem in problems]
    missed = frozenset(_POINTS) - reached
    return Report("T1 ticks", seed, len(recoveries), frozenset(reached), missed, tuple(failures), tuple(recoveries))


class _Sensed:
    """A platform below ``home`` whose runs are recorded in ``instance``; this plays the daemon."""

    def __init__(self, home: Home, instance: dg.DagsterInstance, chance: random.Random) -> None:
        self._home, self._instance, self._chance = home, instance, chance
        self._problems: list[str] = []

    def outcome(self, case: Case) -> tuple[list[str], float]:
        """What went wrong, and the seconds from the last key to the end."""
        self._home.land()
        batch, attempt = self._key_asked_for().split(":")
        if case.point:
            self._be_killed(case.point, f"{batch}:{attempt}")
        if case.is_wiped:
            self._instance.wipe()
        expected = f"{batch}:{2 if case.point and not case.is_wiped else 1}"
        if (key := self._key_asked_for()) != expected:
            self._problems.append(f"{key} was asked for, and not {expected}")
        began = time.perf_counter()
        self._run_twice_at_once(key)
        if ended := to_its_end(started(partial(work, self._home.root, 2 * ORPHAN_GRACE_S))):
            self._problems.append(f"O8: the next run ended with {ended}")
        self._must_ask_for_nothing("after all was done")
        return self._problems + contradictions(self._home), time.perf_counter() - began

    def _key_asked_for(self) -> str:
        """The one key of a hundred ticks at once."""
        keys = self._keys()
        if len(keys) != AT_ONCE or len(set(keys)) != 1:
            self._problems.append(f"{AT_ONCE} ticks asked {len(keys)} times, under {sorted(set(keys))}")
        return keys[0] if keys else "none:0"

    def _must_ask_for_nothing(self, when: str) -> None:
        if keys := self._keys():
            self._problems.append(f"{len(keys)} ticks asked for {sorted(set(keys))} {when}")

    def _keys(self) -> list[str]:
        zone, together = LandingZone(self._home.landing, "radar"), Barrier(AT_ONCE)

        def tick(cursor: str | None) -> list[str]:
            context = dg.build_sensor_context(self._instance, cursor=cursor)
            together.wait()
            now_s = time.time() + _LATER_S
            answer = request_landing(context, [zone], OBSERVATIONS_TO_ALERTS, orphan_grace_s=2 * _LATER_S, wall_s=now_s)
            requests = answer.run_requests if isinstance(answer, dg.SensorResult) else None
            return [str(request.run_key) for request in requests or ()]

        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = pool.map(tick, self._chance.choices(_CURSORS, k=AT_ONCE))
            return [key for keys in answers for key in keys]

    def _be_killed(self, point: str, key: str) -> None:
        """A worker is killed at ``point``, and Dagster learns of it."""
        injections.Injection(point).arm(self._home.order)
        to_its_end(started(partial(work, self._home.root)))
        if not injections.hits(self._home.order):
            self._problems.append(f"{point} was not reached")
        self._record(key, dg.DagsterRunStatus.FAILURE)

    def _run_twice_at_once(self, key: str) -> None:
        """As Dagster does where two of its daemons submit one key; one of the two may be refused."""
        run_id = self._record(key, dg.DagsterRunStatus.STARTED)
        self._must_ask_for_nothing("that a run was at work on")
        workers = [started(partial(work, self._home.root)) for _ in range(2)]
        ended = [to_its_end(worker) for worker in workers]
        if all(ended):
            self._problems.append(f"O8: of two runs at once neither came to its end: {ended}")
        self._instance.delete_run(run_id)
        self._record(key, dg.DagsterRunStatus.SUCCESS)

    def _record(self, key: str, status: dg.DagsterRunStatus) -> str:
        """Have Dagster know of a run for ``key``; returns its id."""
        batch, attempt = key.split(":")
        tags = {POOL_TAG: "alerts", ZONE_TAG: "radar", BATCH_TAG: batch, ATTEMPT_TAG: attempt}
        run_id = str(uuid4())
        self._instance.add_run(
            dg.DagsterRun(job_name="observations_to_alerts", run_id=run_id, status=status, tags=tags)
        )
        return run_id

"""Random histories of the station state on real Postgres servers, judged by what each read mode promises.

    make soak STATION=1 ARGS='--histories 1000 --seed 0'

One leader and two followers serve all histories; each has keys of its own, seven clients, and a fault that its seed
chooses. A stopped run goes on with the seed after the last that it printed. The seed orders the faults and what clients
ask, not what they see.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from sda_platform.ground.read_routing import ReadMode
from sda_platform.ground.station_state import StationState
from sda_platform.lake.errors import Unavailable
from sda_platform_tests.models.linearizability import Undecided
from sda_platform_tests.models.read_promises import Call, broken_promises
from sda_platform_tests.support.postgres_server import postgres_binaries
from sda_platform_tests.support.station_clients import BOUND_S, CLIENTS, History, StationClients
from sda_platform_tests.support.struck_replicas import SERVERS, StruckReplicas

LIGHT = (
    "nothing", "replay paused", "replay flickers", "receiver frozen", "follower apart", "clients apart",
    "server frozen", "two pauses",
)  # fmt: skip
HEAVY = (
    "follower killed",
    "leader killed",
    *(f"promotion, leader {how}" for how in ("works", "killed", "frozen", "apart", "restarted")),
    "promotion, late follower asked",
)
MODES = tuple(mode for mode in ReadMode if mode is not ReadMode.ANY_FOLLOWER)
_HEAVY_SHARE = 0.12
_REPORT_EVERY = 50
_CALLS = 25
"""How many calls are answered before a fault, during it and after it, unless that takes a second."""
console = Console(highlight=False, soft_wrap=True)


@dataclass
class Tally:
    """What the histories of a run had and showed."""

    faults: Counter[str] = field(default_factory=Counter)
    promotions: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    anomalies: int = 0
    broken: dict[ReadMode, list[str]] = field(default_factory=lambda: {mode: [] for mode in MODES})

    @property
    def histories(self) -> int:
        """How many there were."""
        return sum(self.faults.values())

    @property
    def failures(self) -> list[str]:
        """What was broken, with its seed."""
        return [each for found in self.broken.values() for each in found]

    def add(self, seed: int, fault: str, calls: Sequence[Call]) -> None:
        """Judge a history."""
        self.faults[fault] += 1
        for call in calls:
            self.calls["no answer" if call.end_s is None else f"{call.kind} {call.mode}"] += 1
        for mode in MODES:
            try:
                found = broken_promises(calls, mode, BOUND_S)
            except Undecided as error:
                found = [f"undecided: {error}"]
            self.broken[mode] += [f"seed {seed} ({fault}), {mode}: {each}" for each in found[:1]]
        # What promises nothing has to show what the judge finds: otherwise the faults are too weak.
        self.anomalies += bool(broken_promises(calls, ReadMode.ANY_FOLLOWER, BOUND_S))

    def lines(self) -> Iterator[str]:
        """What a reader wants to see."""
        yield f"{self.histories} histories: {', '.join(f'{n} {fault}' for fault, n in sorted(self.faults.items()))}"
        yield f"promotions: {', '.join(f'{n} {what}' for what, n in sorted(self.promotions.items())) or 'none'}"
        yield f"calls: {', '.join(f'{n:,} {what}' for what, n in sorted(self.calls.items()))}"
        yield f"any_follower showed an anomaly in {self.anomalies} histories"
        yield "; ".join(f"{mode}: {len(found)} of {self.histories} broken" for mode, found in self.broken.items())


class _Ended(BaseException):
    """The process that promotes has ended; a KeyboardInterrupt ends the campaign itself."""


class Interrupted(StationState):
    """A process that promotes and ends at one of its statements."""

    left = 0

    def _lead(self, name: str, synchronous: str, before: Sequence[object]) -> int:
        type(self).left = random.Random(f"{name} {before}").randint(1, 9)
        return super()._lead(name, synchronous, before)  # type: ignore[arg-type]

    def _run(self, name: str, statement: str, **values: object) -> list[object]:
        if type(self).left and not statement.startswith(("SELECT has", "SELECT pg_is")):
            type(self).left -= 1
            if not type(self).left:
                raise _Ended
        return super()._run(name, statement, **values)


class Campaign:
    """Histories on one cluster, in the order of their seeds."""

    def __init__(self, cluster: StruckReplicas, state_of: Callable[..., StationState] = StationState) -> None:
        self.cluster, self.tally = cluster, Tally()
        urls = {name: [cluster.url(number, name) for number in range(len(SERVERS))] for name in CLIENTS}
        self.clients = StationClients(urls, state_of)
        self._leader = cluster.mend()

    def history(self, seed: int, fault: str = "") -> None:
        """Let one happen with ``fault``, or one of its seed's choice; judge it; and mend the servers."""
        chance = random.Random(seed)
        chosen = chance.choice(HEAVY if chance.random() < _HEAVY_SHARE else LIGHT)
        fault = fault or chosen

        def happens(history: History) -> None:
            history.more(_CALLS, 1.0)
            self._strike(fault, chance, history)
            time.sleep(chance.uniform(0.2, 0.4))
            history.more(_CALLS, 1.0)
            self.cluster.heal()
            history.more(_CALLS, 1.0)

        calls = self.clients.during(seed, happens)
        self._leader = self.cluster.mend()
        self.tally.add(seed, fault, [*calls, *self.clients.final_reads(calls)])

    def _strike(self, fault: str, chance: random.Random, history: History) -> None:
        followers = [number for number in range(len(SERVERS)) if number != self._leader]
        at_once = self.cluster.synchronous(self._leader)
        victim = chance.choice([at_once, *([sum(followers) - at_once] * 2)])
        if fault.startswith("promotion"):
            self._promote(fault.split()[-1], chance, history)
        elif fault in ("follower killed", "leader killed"):
            self._kill(self._leader if fault == "leader killed" else victim, followers, chance)
        else:
            self._disturb(fault, victim, followers, chance)

    def _disturb(self, fault: str, victim: int, followers: Sequence[int], chance: random.Random) -> None:
        """A fault that ends no process, until all is healed."""
        if fault == "replay flickers":
            late = sum(followers) - self.cluster.synchronous(self._leader)
            self.cluster.flicker_replay(late, [chance.uniform(0.03, 0.1) for _ in range(16)])
        if fault in ("replay paused", "two pauses"):
            self.cluster.pause_replay(victim)
        if fault == "two pauses":
            time.sleep(chance.uniform(0.0, 0.2))
            self.cluster.freeze_receiver(sum(followers) - victim)
        if fault == "receiver frozen":
            self.cluster.freeze_receiver(victim)
        if fault == "follower apart":
            self.cluster.separate(self._leader, [SERVERS[victim]])
        for number in chance.sample(range(len(SERVERS)), 2) if fault == "clients apart" else ():
            self.cluster.separate(number, chance.sample(sorted(CLIENTS), 3))
        if fault == "server frozen":
            self.cluster.freeze(chance.choice([self._leader, victim]))

    def _kill(self, victim: int, followers: Sequence[int], chance: random.Random) -> None:
        """Kill a server; a leader at once starts again, with writes that no follower may have."""
        if victim == self._leader:
            self.cluster.separate(victim, [SERVERS[each] for each in chance.choice([followers, []])])
            time.sleep(0.1)
        self.cluster.kill(victim)
        if victim == self._leader:
            self.cluster.revive(victim)

    def _promote(self, how: str, chance: random.Random, history: History) -> None:
        """Promote the synchronous follower while its leader works, is killed, frozen, or apart with some clients."""
        former, name = self._leader, self.cluster.synchronous(self._leader)
        other = ({0, 1, 2} - {former, name}).pop()
        if how == "asked":
            self.cluster.separate(former, [SERVERS[other]])
            history.more(_CALLS, 1.0)
            self.cluster.kill(former)
            name, other = other, name
        else:
            if chance.random() < 0.3:
                self.cluster.separate(former, [SERVERS[chance.choice([name, other])]])
                time.sleep(0.1)
            self._strike_leader(how, chance, history)
        if chance.random() < 0.3:
            self._lead(Interrupted, name, other)
            time.sleep(chance.uniform(0.0, 0.2))
        for _ in range(4):
            if self._lead(StationState, name, other):
                break
            name, other = other, name  # the other one may be ahead
        history.more(2 * _CALLS, 2.0)
        if chance.random() < 0.5:
            self.cluster.thaw(former)
            self.cluster.revive(former)

    def _strike_leader(self, how: str, chance: random.Random, history: History) -> None:
        former = self._leader
        if how == "killed":
            self.cluster.kill(former)
        elif how == "frozen":
            self.cluster.freeze(former)
        elif how == "apart":
            self._keep_clients_with(former, chance, {*SERVERS, "sda"})
        elif how == "restarted":
            # What no follower acknowledged is visible at the former leader after its start.
            self._keep_clients_with(former, chance, SERVERS)
            time.sleep(0.15)
            self.cluster.kill(former)
            self.cluster.revive(former)
            history.more(_CALLS, 1.5)

    def _keep_clients_with(self, former: int, chance: random.Random, others: Collection[str]) -> None:
        """Let some clients reach the former leader only, and the rest and ``others`` all servers but it."""
        stay = {chance.choice(["c0", "c1"]), *chance.sample(["c2", "c3", "c4", "c5", "c6"], 3)}
        self.cluster.separate(former, {*others, *(each for each in CLIENTS if each not in stay)})
        for number in {0, 1, 2} - {former}:
            self.cluster.separate(number, stay)

    def _lead(self, kind: type[StationState], name: int, other: int) -> bool:
        promoter = kind([self.cluster.url(number, "sda") for number in range(len(SERVERS))], timeout_s=0.5)
        try:
            promoter.promote(SERVERS[name], synchronous=SERVERS[other])
        except Unavailable:
            self.tally.promotions["refused"] += 1
            return False
        except _Ended:
            self.tally.promotions["interrupted"] += 1
            return False
        finally:
            promoter.close()
        self.tally.promotions["done"] += 1
        return True


@contextmanager
def struck_replicas(binaries: Path) -> Iterator[StruckReplicas]:
    """Servers that run meanwhile."""
    with tempfile.TemporaryDirectory(prefix="sda-histories-", ignore_cleanup_errors=True) as directory:
        cluster = StruckReplicas(binaries, Path(directory), CLIENTS)
        try:
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def campaign_on(cluster: StruckReplicas, state_of: Callable[..., StationState] = StationState) -> Iterator[Campaign]:
    """Clients that wait for histories meanwhile."""
    campaign = Campaign(cluster, state_of)
    try:
        yield campaign
    finally:
        campaign.clients.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run histories, print what they had, and fail where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--fault", choices=(*LIGHT, *HEAVY), default="", help="always this one")
    options = parser.parse_args(arguments)
    binaries = postgres_binaries()
    if binaries is None:
        console.print("no Postgres server here: apt install postgresql")
        return 2
    # A campaign that is ended ends its servers too, and states what it has seen.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with struck_replicas(binaries) as cluster, campaign_on(cluster) as campaign:
        is_whole = _played(campaign, range(options.seed, options.seed + options.histories), options.fault)
        for line in campaign.tally.lines():
            console.print(line)
        # The servers are ended in peace, whatever more signals come.
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
    return 1 if campaign.tally.failures else 0 if is_whole else 130


def _played(campaign: Campaign, seeds: range, fault: str) -> bool:
    """Play the histories of all seeds; False where it was interrupted."""
    try:
        for seed in seeds:
            known = len(campaign.tally.failures)
            campaign.history(seed, fault)
            for failure in campaign.tally.failures[known:]:
                console.print(failure)
            if (seed + 1) % _REPORT_EVERY == 0:
                console.print(f"until seed {seed}: {len(campaign.tally.failures)} failures")
    except KeyboardInterrupt:
        console.print(f"interrupted in seed {seed}; go on with --seed {seed}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

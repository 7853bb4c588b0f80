"""T3 of the fault campaign: a real cluster of five etcd members under random faults, until the time is over.

    make soak T3=1 ARGS='--minutes 30 --seed 7'

In each round up to two members are cut off, stopped or killed, have a full disk or a damaged log, or wall clocks that
are set an hour forward or back, while clients call all of them. The history of a round must be linearizable, and the
cluster must answer again after it. The seed orders the faults, not what clients see.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from sda_platform_tests.models.linearizability import Operation, Undecided, unlinearizable_keys
from sda_platform_tests.support import stepped_clock
from sda_platform_tests.support.etcd_cluster import EtcdCluster, etcd_cluster
from sda_platform_tests.support.etcd_histories import Recorder
from sda_platform_tests.support.etcd_server import etcd_binary

MEMBERS, CLIENTS = 5, 4
FAULTS = ("partition", "pause", "kill", "partition and kill", "full disk", "damaged log", "clock step")
console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run rounds, print each, and fail where a history is not linearizable."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if etcd_binary() is None:
        console.print("no etcd here: apt install etcd-server")
        return 2
    chance, end_s = random.Random(options.seed), time.monotonic() + 60 * options.minutes
    rounds, failures = 0, list[str]()
    with tempfile.TemporaryDirectory(prefix="sda-t3-") as directory, etcd_cluster(Path(directory), MEMBERS) as cluster:
        while time.monotonic() < end_s:
            rounds += 1
            fault, seconds, history = one_round(cluster, chance, rounds)
            found = judged(history)
            unknown = sum(each.end is None for each in history)
            console.print(
                f"round {rounds}: {fault}; {len(history)} operations, {unknown} without an answer; a leader after "
                f"{seconds:.1f} s; {found or 'linearizable'}"
            )
            failures += [f"round {rounds}: {found}"] if found else []
    console.print(f"{rounds} rounds with seed {options.seed}: {len(failures)} failures")
    return 1 if failures else 0


def one_round(cluster: EtcdCluster, chance: random.Random, number: int) -> tuple[str, float, list[Operation]]:
    """The fault of a round in words, seconds until a leader answers meanwhile, and what the clients saw."""
    recorder = Recorder(cluster.endpoints, clients=CLIENTS, seed=number)
    recorder.renew(f"round{number}-")
    fault, leader = chance.choice(FAULTS), cluster.leader()
    victims = [leader] if chance.random() < 0.5 else []
    victims += chance.sample([name for name in cluster.names if name != leader], 2 - len(victims))
    for each in victims if has_clocks(fault) else ():
        _restart(cluster, each, own_clock=True)
    time.sleep(1.0)
    stays = fault in ("partition", "pause", "clock step")
    ended = victims[1:] if fault == "partition and kill" else [] if stays else victims
    killed = [] if fault == "full disk" else ended
    _strike(cluster, fault, victims, killed, chance)
    struck_s = time.monotonic()
    # A member whose clock was set remains in service, and may go on to lead.
    cluster.leader([name for name in cluster.names if name not in victims or fault == "clock step"])
    seconds = time.monotonic() - struck_s
    time.sleep(2.0)
    cluster.heal()
    for each in killed if fault == "damaged log" else ():
        copy = cluster.damage_log(each)
        if not cluster.refuses_to_start(each):
            raise RuntimeError(f"{each} started with a damaged log")
        cluster.repair_log(each, copy)
    for each in ended:
        cluster.start(each)
    for each in victims if has_clocks(fault) else ():
        _restart(cluster, each, own_clock=False)
    cluster.leader()
    time.sleep(2.0)
    return f"{fault} of {' and '.join(victims)} (leader {leader})", seconds, recorder.finished()


def has_clocks(fault: str) -> bool:
    """Whether the victims of ``fault`` have wall clocks of their own, which can be set."""
    return fault == "clock step" and stepped_clock.is_possible()


def _strike(
    cluster: EtcdCluster, fault: str, victims: Sequence[str], killed: Sequence[str], chance: random.Random
) -> None:
    if fault.startswith("partition"):
        cluster.partition(*([each] for each in victims))
    for each in killed:
        cluster.kill(each)
    for each in victims if fault == "pause" else ():
        cluster.pause(each)
    for each in victims if fault == "full disk" else ():
        cluster.fill_disk(each)
    for each in victims if has_clocks(fault) else ():
        cluster.clocks[each].step(chance.choice([-3600.0, 3600.0]))


def _restart(cluster: EtcdCluster, name: str, *, own_clock: bool) -> None:
    cluster.kill(name)
    cluster.start(name, own_clock=own_clock)
    cluster.leader()


def judged(history: Sequence[Operation]) -> str:
    """What is wrong with the history; empty: nothing."""
    try:
        broken = unlinearizable_keys(history)
    except Undecided as error:
        return f"undecided: {error}"
    return f"not linearizable: {', '.join(broken)}" if broken else ""


if __name__ == "__main__":
    sys.exit(main())

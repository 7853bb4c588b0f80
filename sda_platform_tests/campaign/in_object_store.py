"""T2 of the fault campaign with lake and landing zones in an object store (SeaweedFS), behind a network with faults.

    make soak S3=1 ARGS='--sample --seed 7 --point NAME'

Workers, engine and services are killed as in T2, and the store is cut off, fails, is overloaded or slow while a worker
is at one of the steps of a run. The same oracle judges, and reads the store past that network.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.spark.jars import JarsMissing, jar_paths
from sda_platform_tests.campaign import strikes
from sda_platform_tests.campaign.cases import Case, cases
from sda_platform_tests.campaign.platform import Victim
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.strikes import Kill, KillAgain, KillEngine, LoseStore, Zombie
from sda_platform_tests.campaign.t2 import Campaign
from sda_platform_tests.campaign.world import World
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.object_store_server import BUCKET, object_store
from sda_platform_tests.support.store_faults import STORE_FAULTS

_STEPS = {
    "intake.listed": "CP-02",
    f"commit.planned:{RAW_RECORDS.name}": "CP-08",
    f"commit.sent:{OBSERVATIONS.name}": "CP-12",
    "landing.metadata_moved": "CP-19",
    f"lake.planned:{FUSED_TRACKS.name}": "CP-28",
}
"""Where a worker is when the store fails, and the crash point that this is."""
SAMPLED_KILLS = {
    "commit.landed:element_sets",
    "landing.metadata_moved",
    f"asset.reported:{OBSERVATIONS.name}",
}


def in_object_store() -> Iterator[Case]:
    """The cases of T2's sample that kill processes, the engine at two states of the store, and faults of the store."""
    for case in cases():
        if case.in_sample and isinstance(case.strike, Kill | KillAgain | Zombie):
            yield Case(case.name, case.stands_for, case.strike, case.name in SAMPLED_KILLS)
    for ids, state in (("CP-10", strikes.data_files_written_but_no_commit), ("CP-12", strikes.commit_in_place)):
        name = f"engine killed, {state.__name__.replace('_', ' ')}: {OBSERVATIONS.name}"
        yield Case(name, ids, KillEngine(OBSERVATIONS, state), in_sample=ids == "CP-10")
    for number, (point, ids) in enumerate(_STEPS.items()):
        for turn, (words, fault) in enumerate(STORE_FAULTS.items()):
            is_sampled = number % len(STORE_FAULTS) == turn
            yield Case(f"store {words} at {point}", ids, LoseStore(point, fault), in_sample=is_sampled)


def command(seed: int, point: str) -> str:
    """The command that repeats the cases whose name matches the regular expression ``point``."""
    return f"python -m sda_platform_tests.campaign.in_object_store --seed {seed} --point {point!r}"


def run(seed: int, selected: Sequence[Case], work: Path) -> Report:
    """Hit a platform below ``work`` in each of the ``selected`` ways."""
    with object_store(work / "store") as store, CuttingProxy(int(store.address.rpartition(":")[2])) as network:
        os.environ.update(store.environment)
        place = f"s3://{BUCKET}/campaign"
        settings = {
            "SDA_LAKE": f"{place}/lake",
            "SDA_LANDING": f"{place}/landing",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{network.port}",
        }
        victim = Victim(work / "victim", settings, network)
        with closing(Campaign(work, World(seed, is_for_store=True), victim, _say, command)) as campaign:
            campaign.begin()
            for case in selected:
                campaign.attempt(case)
            campaign.end(FUSED_TRACKS.name)
            return campaign.report(len(selected))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases; the exit code is 1 when one failed or was not reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true", help="a case of each kind")
    parser.add_argument("--seed", type=int, default=1, help="decides the world and the order of what lands")
    parser.add_argument("--point", default="", help="only the cases whose name has this regular expression")
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        jar_paths(with_s3=True)
    except JarsMissing as missing:
        _say(str(missing))
        return 2
    selected = [
        case
        for case in in_object_store()
        if re.search(chosen.point, case.name) and (case.in_sample or not chosen.sample)
    ]
    with tempfile.TemporaryDirectory(prefix="sda-campaign-s3-") as work:
        report = run(chosen.seed, selected, Path(work))
    _say(str(report))
    return 0 if report.is_green else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

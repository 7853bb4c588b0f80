"""The campaign's teeth at the level of whole runs (O10): each planted bug meets its fault, and the oracle shows it.

Each bug is a few lines that a hand could have written. The control runs the same faults against the platform as it is.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sda_platform import failpoints
from sda_platform.failpoints import InjectedFault
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import commit
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.landing import intake
from sda_platform_tests.campaign import oracle
from sda_platform_tests.campaign.world import NOW_S, World
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import after

Planted = tuple[Callable[[pytest.MonkeyPatch], None], set[str]]
"""What is done to the code, and the rules of the oracle that show it."""
INGEST = ("raw_records", "dead_letters")
POINTS = ("lake.transformed:raw_records", "lake.committed:raw_records")


def nothing(_patch: pytest.MonkeyPatch) -> None:
    """The control."""


def acknowledging_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    take = intake.take

    def take_and_clear(zones: Any, *arguments: Any, **bounds: Any) -> Any:
        taken = take(zones, *arguments, **bounds)
        for zone in zones:
            zone.acknowledge([segment.ref(1) for segment in taken if segment.zone == zone.feed])
        return taken

    patch.setattr(intake, "take", take_and_clear)


def skipping_checksums(patch: pytest.MonkeyPatch) -> None:
    for module in ("pending", "zone"):
        patch.setattr(f"sda_platform.landing.{module}.defect_of", lambda _segment, _data: None)


def starting_the_sequence_anew_and_believing_success(patch: pytest.MonkeyPatch) -> None:
    def settle(log: TableLog, plan: Any, _checkpoint: Any, write: Callable[[], None]) -> CommitReceipt:
        write()
        return CommitReceipt(plan, log.commits()[0])

    head = TableLog.head
    patch.setattr(commit, "settle", settle)
    patch.setattr(
        TableLog, "head", lambda log: Head(version=log.version()) if log.table.name == RAW_RECORDS.name else head(log)
    )


CONTROL: Planted = (nothing, set())
EARLY: Planted = (acknowledging_before_the_commit, {"O1", "O7"})
PLANTED: list[Planted] = [
    CONTROL,
    EARLY,
    (skipping_checksums, {"O1"}),
    (starting_the_sequence_anew_and_believing_success, {"O1"}),
]


@pytest.mark.parametrize(("bug", "rules"), sampled(PLANTED, EARLY))
def test_a_planted_bug_is_reported_by_the_oracle__O10(
    platform: Platform,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    bug: Callable[[pytest.MonkeyPatch], None],
    rules: set[str],
) -> None:
    world, root = World(3), str(platform.home / "landing")
    platform.at(after(NOW_S))
    # The table exists: a zone that consumed segments of a table without a log is refused by name.
    world.deliver(world.next_stretch(), root)
    platform.run("observations_to_alerts", only=INGEST)
    bug(monkeypatch)
    for point in POINTS:
        world.deliver(world.next_stretch(), root)
        struck = strike_once(monkeypatch, point)
        platform.run("observations_to_alerts", only=INGEST, must_succeed=False)
        assert struck == [point], "a bug must meet its fault"
        platform.run("observations_to_alerts", only=INGEST, must_succeed=False)
    told = {
        "O1": oracle.identity(platform.lake, world.written),
        "O2": oracle.content(platform.lake, world.written),
        "O3": oracle.log(platform.lake, [RAW_RECORDS]),
        "O4": oracle.files(platform.lake, [RAW_RECORDS]),
        "O7": oracle.acknowledged(platform.lake, root),
        "O9": oracle.readers(platform.lake, spark),
    }
    assert {rule for rule, problems in told.items() if problems} >= rules
    assert rules or not any(told.values()), told


def strike_once(patch: pytest.MonkeyPatch, point: str) -> list[str]:
    """Have the next visit of ``point`` end the run; the list that is returned then holds it."""
    struck: list[str] = []

    def strike(reached: str) -> None:
        if reached == point and not struck:
            struck.append(reached)
            raise InjectedFault(f"injected at {point}")

    patch.setattr(failpoints, "_on_hit", strike)
    return struck

"""O10: the eleven bugs that a campaign must catch, planted one at a time into the code under test.

Each is what a well-meant change would do: it replaces one function of the kernel (or of the stand-in for the engine's
client, where the real one needs a JVM) for as long as it is planted. `caught` looks for evidence where the bug shows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery import outbox
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import durable
from sda_platform.lake.commit import Receipt
from sda_platform.lake.errors import CommitConflict
from sda_platform.lake.landing import intake
from sda_platform.lake.landing.segments import LoadedSegment
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.log import Commit, Head, TableLog
from sda_platform.lake.planning import Plan
from sda_platform_tests.campaign import simulated_oracle, simulated_platform
from sda_platform_tests.campaign.histories import Case, Fault, outcome
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_delta import SimulatedEngine, Transaction
from sda_platform_tests.campaign.simulated_platform import LANDING, SimulatedLake, alerts_of
from sda_platform_tests.campaign.simulator import exhaustive

Planting = Callable[[], AbstractContextManager[Any]]

_append, _engine_write, _take, _read = SimulatedLake.append, SimulatedEngine.write, intake.take, LandingZone.read
_recorded_window = simulated_oracle.recorded_window


@dataclass(frozen=True)
class PlantedBug:
    """``plant`` puts it in for the length of a block; ``cases`` are where it shows."""

    name: str
    plant: Planting
    cases: Callable[[], Iterable[Case]]

    def caught(self) -> list[str]:
        """What the first case says that fails with the bug in place; nothing: it survived."""
        with self.plant():
            return next(filter(None, map(outcome, self.cases())), [])


def run(seed: int = 1) -> Report:
    """Plant each bug; one that survives is a failure."""
    survivors = tuple(f"the planted bug {bug.name!r} survived" for bug in PLANTED_BUGS if not bug.caught())
    return Report("T0 teeth", seed, cases=len(PLANTED_BUGS), failures=survivors)


def _undisturbed() -> Iterator[Case]:
    yield from (Case(batches) for batches in (1, 2, 3))


def _cut(*faults: Fault, batches: Sequence[int] = (1, 2)) -> Iterator[Case]:
    yield from (case for case in exhaustive(batches) if case.rival is None and case.fault in faults)


def _drawn() -> Iterator[Case]:
    yield from (Case(seed=seed) for seed in range(1, 200))


def _without_transaction(engine: SimulatedEngine, path: str, transaction: Transaction, rows: Any, mode: Any) -> None:
    """Nothing tells Delta which write this is."""
    _engine_write(engine, path, replace(transaction, app_id="none", version=engine.jobs + 1), rows, mode)


def _with_fresh_ids(engine: SimulatedEngine, path: str, transaction: Transaction, rows: Any, mode: Any) -> None:
    """Each write under an application id of its own."""
    _engine_write(engine, path, replace(transaction, app_id=f"{transaction.app_id}.{engine.jobs}"), rows, mode)


def _take_above_the_mark(zones: Sequence[LandingZone], head: Head, **bounds: Any) -> list[LoadedSegment]:
    """Every name up to the highest that was committed counts as done."""
    consumed = head.commit.checkpoint.segments if head.commit else ()
    mark = max((segment.name for segment in consumed), default="")
    return [segment for segment in _take(zones, head, **bounds) if segment.name > mark]


def _append_or_pretend(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> Receipt:
    """A failed commit advances the mark all the same."""
    try:
        return _append(lake, plan, rows, **facts)
    except CommitConflict:
        raise
    except Exception:
        _acknowledge(plan)
        return Receipt(plan, Commit(plan.base_version + 1, 0, rows.num_rows, plan.checkpoint("pretended")))


def _acknowledge_then_append(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> Receipt:
    """The zones are cleared before the rows are safe."""
    _acknowledge(plan)
    return _append(lake, plan, rows, **facts)


def _acknowledge(plan: Plan) -> None:
    for segment in plan.segments:
        LandingZone(LANDING, segment.zone).acknowledge([segment])


def _publish_then_commit(lake: SimulatedLake) -> None:
    """The subscriber hears of alerts before the journal holds them."""
    plan = lake.plan(CONJUNCTION_ALERTS, consume=[RAW_RECORDS])
    if plan.is_empty:
        return
    rows = alerts_of(lake.new_rows(plan, RAW_RECORDS))
    lake.world.subscriber.apply(f"early {plan.sequence}", outbox.entries(rows))
    lake.append(plan, rows)


def _read_on_trust(zone: LandingZone, segment: Any) -> LoadedSegment:
    """Bytes are what the metadata says, unseen."""
    loaded = _read(zone, segment)
    return replace(loaded, defect=None, sha256=segment.meta.sha256) if segment.meta else loaded


def _append_miscounted(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> Receipt:
    """One record is lost and another doubled, which no count tells."""
    if plan.table is RAW_RECORDS and rows.num_rows > 1:
        rows = rows.take([0, 0, *range(2, rows.num_rows)])
    return _append(lake, plan, rows, **facts)


def _all_up_to(commit: Commit) -> tuple[int, int]:
    """A replay that takes what is there, in one batch."""
    return (0, _recorded_window(commit)[1])


PLANTED_BUGS = (
    PlantedBug("no txn", partial(patch.object, SimulatedEngine, "write", _without_transaction), _undisturbed),
    PlantedBug("txn but fresh ids", partial(patch.object, SimulatedEngine, "write", _with_fresh_ids), _undisturbed),
    PlantedBug("max-name mark", partial(patch.object, intake, "take", _take_above_the_mark), _undisturbed),
    PlantedBug(
        "mark advanced on failed commit",
        partial(patch.object, SimulatedLake, "append", _append_or_pretend),
        partial(_cut, "kill-engine"),
    ),
    PlantedBug(
        "publish before outbox commit",
        partial(patch.object, simulated_platform, "alert", _publish_then_commit),
        partial(_cut, "kill-all"),
    ),
    PlantedBug(
        "ack before commit",
        partial(patch.object, SimulatedLake, "append", _acknowledge_then_append),
        partial(_cut, "kill-all"),
    ),
    PlantedBug("no fsync", partial(patch.object, durable, "sync", lambda _paths: None), partial(_cut, "drop")),
    PlantedBug("skip checksum", partial(patch.object, LandingZone, "read", _read_on_trust), _drawn),
    PlantedBug(
        "re-batch on replay", partial(patch.object, simulated_oracle, "recorded_window", _all_up_to), _undisturbed
    ),
    PlantedBug("count-only check", partial(patch.object, SimulatedLake, "append", _append_miscounted), _undisturbed),
    PlantedBug("seq reset", partial(patch.object, TableLog, "head", lambda _log: Head()), _undisturbed),
)

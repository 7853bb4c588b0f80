"""O10: bugs that the campaign must catch, planted one at a time into the code under test.

The first eleven are those of the requirements; the others are such as earlier versions of T0 did not see.

Each is what a well-meant change would do: it replaces one function of the kernel (or of the stand-in for the engine's
client, where the real one needs a JVM) for as long as it is planted. `caught` looks for evidence where the bug shows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, cast
from unittest.mock import patch

from sda_platform.delivery import dispatch, outbox
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake import commit, durable
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.errors import CommitConflict, InvariantError
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.landing import intake
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.campaign import simulated_oracle, simulated_platform
from sda_platform_tests.campaign.histories import Case, Fault, outcome, steps_of
from sda_platform_tests.campaign.report import Report
from sda_platform_tests.campaign.simulated_engine import SimulatedEngine, Transaction
from sda_platform_tests.campaign.simulated_platform import ALERTED, LANDING, SimulatedLake, alerts_of
from sda_platform_tests.campaign.simulated_reading import StoredCommit
from sda_platform_tests.campaign.simulator import AT_THE_END, exhaustive, foreign_commits, twice_struck

Planting = Callable[[], AbstractContextManager[Any]]

_append, _engine_write, _take, _read = SimulatedLake.append, SimulatedEngine.write, intake.take, LandingZone.read
_recorded_window, _settle, _seal, _head = (
    simulated_oracle.recorded_window,
    commit.settle,
    LandingZone.seal,
    TableLog.head,
)
_planned_batches = outbox.planned_batches


@dataclass(frozen=True)
class PlantedBug:
    """``plant`` puts it in for the length of a block; ``cases`` are where it shows."""

    name: str
    plant: Planting
    cases: Callable[[], Iterable[Case]]

    def caught(self) -> list[str]:
        """What the first case states that fails with the bug in place; nothing: it survived."""
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


def _with_rival() -> Iterator[Case]:
    yield from (case for case in exhaustive((1,)) if case.rival is not None and case.fault == "none")


def _after_idle_nights() -> Iterator[Case]:
    yield Case(2, story="nights")


def _drawn() -> Iterator[Case]:
    yield from (Case(seed=seed) for seed in range(1, 200))


def _without_transaction(engine: SimulatedEngine, path: str, transaction: Transaction, rows: Any, mode: Any) -> None:
    """The write has no transaction id."""
    _engine_write(engine, path, replace(transaction, app_id="none", version=engine.jobs + 1), rows, mode)


def _with_fresh_ids(engine: SimulatedEngine, path: str, transaction: Transaction, rows: Any, mode: Any) -> None:
    """Each write under an application id of its own."""
    _engine_write(engine, path, replace(transaction, app_id=f"{transaction.app_id}.{engine.jobs}"), rows, mode)


def _take_above_the_mark(zones: Sequence[LandingZone], head: Head, **bounds: Any) -> list[LoadedSegment]:
    """Every name up to the highest that was committed counts as done."""
    consumed = head.commit.manifest.segments if head.commit else ()
    mark = max((segment.name for segment in consumed), default="")
    return [segment for segment in _take(zones, head, **bounds) if segment.name > mark]


def _append_or_pretend(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> CommitReceipt:
    """A failed commit advances the mark all the same."""
    try:
        return _append(lake, plan, rows, **facts)
    except CommitConflict:
        raise
    except Exception:
        _acknowledge(plan)
        return CommitReceipt(plan, Commit(plan.base_version + 1, 0, rows.num_rows, plan.manifest("pretended")))


def _acknowledge_then_append(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> CommitReceipt:
    """The zones are cleared before the rows are safe."""
    _acknowledge(plan)
    return _append(lake, plan, rows, **facts)


def _acknowledge(plan: Plan) -> None:
    for segment in plan.segments:
        LandingZone(LANDING, segment.zone).acknowledge([segment])


def _publish_then_commit(lake: SimulatedLake) -> None:
    """The subscriber receives alerts before the journal holds them."""
    plan = lake.plan(ALERTED)
    if plan.is_empty:
        return
    rows = alerts_of(lake.new_rows(plan, RAW_RECORDS))
    lake.world.subscriber.apply(f"early {plan.sequence}", outbox.entries(rows))
    lake.append(plan, rows)


def _read_on_trust(zone: LandingZone, segment: Any) -> LoadedSegment:
    """Bytes are what the metadata states, unseen."""
    loaded = _read(zone, segment)
    return replace(loaded, defect=None, sha256=segment.meta.sha256) if segment.meta else loaded


class _ChangedLog:
    """A table's log with its answers to `commit.settle` changed."""

    def __init__(self, log: TableLog, nonce: str | None = None) -> None:
        self._log, self._nonce = log, nonce

    def find(self, sequence: int) -> Commit | None:
        """The commit of this sequence; with a ``nonce``, as if it had that one."""
        found = self._log.find(sequence)
        if found is None or self._nonce is None:
            return found
        return replace(found, manifest=replace(found.manifest, nonce=self._nonce))

    def make_durable(self, first_version: int, last_version: int) -> None:
        """Sync; without a ``nonce``, the newest version only."""
        self._log.make_durable(last_version if self._nonce is None else first_version, last_version)


def _settle_any_nonce(log: TableLog, plan: Plan, manifest: CommitManifest, write: Callable[[], None]) -> CommitReceipt:
    """Whatever is committed at the sequence counts as ours."""
    return _settle(cast("TableLog", _ChangedLog(log, manifest.nonce)), plan, manifest, write)


def _settle_on_success(log: TableLog, plan: Plan, manifest: CommitManifest, write: Callable[[], None]) -> CommitReceipt:
    """An engine that reports no error has committed."""
    try:
        write()
    except Exception:
        return _settle(log, plan, manifest, lambda: None)
    return CommitReceipt(plan, log.commits()[0])


def _settle_newest_only(
    log: TableLog, plan: Plan, manifest: CommitManifest, write: Callable[[], None]
) -> CommitReceipt:
    """What other tools committed beneath ours is not synced."""
    return _settle(cast("TableLog", _ChangedLog(log)), plan, manifest, write)


def _plant_batch_ids() -> AbstractContextManager[Any]:
    """Each attempt draws the id of its batch anew."""
    numbers = count()

    def planned(subscriber: str, alerts: Any, *rest: Any) -> list[outbox.DeliveryBatch]:
        batches = _planned_batches(subscriber, alerts, *rest)
        return [replace(batch, id=f"{batch.id}|{next(numbers)}") for batch in batches]

    return patch.object(dispatch, "planned_batches", planned)


def _discard_data_first(zone: LandingZone, name: str) -> None:
    """A duplicate's data goes before its metadata."""
    data, meta = zone._waiting(name)
    data.unlink(missing_ok=True)
    meta.unlink(missing_ok=True)


def _seal_unsynced(zone: LandingZone, name: str, data: bytes, meta: SegmentMeta) -> bool:
    """What waits already is taken for durable."""
    if zone.describe(name) is not None and zone._waiting(name)[0].exists():
        return False
    return _seal(zone, name, data, meta)


def _head_within(depth: int) -> Callable[[TableLog], Head]:
    """A head is searched among so many versions only."""

    def head(log: TableLog) -> Head:
        found = _head(log)
        if found.version - found.commit_version >= depth:
            raise InvariantError(f"no commit of ours within {depth} versions")
        return found

    return head


def _while_discarding() -> Iterator[Case]:
    """A kill between the two steps of dropping a duplicate, and one in the repetition."""
    twice = Case(story="twice")
    for step in steps_of(twice, "unlink", "/pending/"):
        yield from (replace(twice, fault="kill", step=step, again=n, then="kill-all") for n in range(1, 13))


def _append_miscounted(lake: SimulatedLake, plan: Plan, rows: Any, **facts: Any) -> CommitReceipt:
    """One record is lost and another doubled, which no count shows."""
    if plan.table.name == RAW_RECORDS.name and rows.num_rows > 1:
        rows = rows.take([0, 0, *range(2, rows.num_rows)])
    return _append(lake, plan, rows, **facts)


def _all_up_to(stored: StoredCommit) -> tuple[int, int]:
    """A replay that takes what is there, in one batch."""
    return (0, _recorded_window(stored)[1])


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
    PlantedBug("any nonce is ours", partial(patch.object, commit, "settle", _settle_any_nonce), _with_rival),
    PlantedBug("no error is success", partial(patch.object, commit, "settle", _settle_on_success), _with_rival),
    PlantedBug("batch ids drawn anew", _plant_batch_ids, partial(_cut, "kill-all", batches=(1,))),
    PlantedBug(
        "foreign commits not synced",
        partial(patch.object, commit, "settle", _settle_newest_only),
        lambda: reversed([case for case in foreign_commits() if case.fault == "tear" and case.step == AT_THE_END]),
    ),
    PlantedBug(
        "duplicate's data dropped first",
        partial(patch.object, LandingZone, "discard_duplicate", _discard_data_first),
        _while_discarding,
    ),
    PlantedBug(
        "resealed without sync",
        partial(patch.object, LandingZone, "seal", _seal_unsynced),
        partial(twice_struck, Case(1), "kill", "drop", (8, 16, 24, 32)),
    ),
    PlantedBug(
        "head within 100 versions", partial(patch.object, TableLog, "head", _head_within(100)), _after_idle_nights
    ),
)

"""Deliveries without an engine: a journal of alerts, rounds that deliver it in their own processes, and the oracle.

A round does what the asset does; only the ledger's commit is made by delta-rs. A round can be killed at a fault point.
"""

import multiprocessing
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.checks import disagreements
from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.dispatch import begin_epoch, dispatch
from sda_platform.delivery.epochs import recording
from sda_platform.delivery.outbox import GROUP_SIZE
from sda_platform.delivery.sql_subscriber import SqlSubscriber
from sda_platform.delivery.subscriber import Revision, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform_tests.support.delta_tables import commit, lake_at

# Forked from a server that has imported everything: a process of a round begins within milliseconds.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])
_ROUND_WITHIN_S = 60

# Every step of a delivery, and which visit of it is struck: a batch of two groups visits some of them twice.
IN_THE_DATABASE = ("delivery.written", 1)
DELIVERY_POINTS = (
    ("delivery.planned", 1),  # CP-34
    ("delivery.reconciled", 1),  # CP-R4
    IN_THE_DATABASE,  # CP-34: not committed
    ("delivery.committed", 1),  # CP-35, CP-37
    ("delivery.group_answered", 1),  # CP-37
    ("delivery.committed", 2),  # CP-35
    ("delivery.group_answered", 2),  # CP-36
    ("delivery.answered", 1),  # CP-36
)


# More than one group.
ALERTS = [str(UUID(int=n)) for n in range(GROUP_SIZE + 1)]


def report(lake: Lake, *keys: Revision) -> None:
    """Commit entries to the journal of alerts."""
    rows = [{"event_id": e, "sequence": s, "op": op, "tca_time_ns": 100 + s} for e, s, op in keys]
    commit(lake, CONJUNCTION_ALERTS, rows)


def deliver(lake: Lake, subscriber: Subscriber) -> dict[str, object]:
    """One round in this process; what the asset would tell of it."""
    plan = lake.plan(ALERT_DELIVERIES)
    begun = begin_epoch(lake, plan, subscriber)
    if begun:
        windows = recording(plan).windows
        commit(lake, ALERT_DELIVERIES, begun.rows.to_pylist(), windows=windows, counts=begun.counts)
        failpoints.hit("delivery.adopted")
        plan = lake.plan(ALERT_DELIVERIES)
    done = dispatch(lake, plan, subscriber)
    if not plan.is_empty or done.rows.num_rows:
        commit(lake, ALERT_DELIVERIES, done.rows.to_pylist(), windows=plan.windows, counts=done.counts)
    return dict(done.facts)


def deliver_elsewhere(root: Path, setting: str, killed_at: tuple[str, int] | None = None) -> int:
    """One round of the lake below ``root`` in another process; its exit code, -9 where it was killed."""
    process = _PROCESSES.Process(target=_round, args=(root, setting, killed_at))
    process.start()
    process.join(_ROUND_WITHIN_S)
    if process.exitcode is None:
        process.kill()
    return -1 if process.exitcode is None else process.exitcode


def killed_delivery(root: Path, setting: str, store: SqlSubscriber, step: tuple[str, int]) -> tuple[list[str], float]:
    """A delivery of two groups killed at ``step``, and another round: what is wrong then, and how long it took, s.

    ``store`` is where the subscriber of ``setting`` keeps what it got.
    """
    lake = lake_at(root / "lake")
    report(lake, (ALERTS[0], 0, "insert"))
    exits = [deliver_elsewhere(root, setting)]
    if step[0] == "delivery.reconciled":
        empty(store)
    report(lake, (ALERTS[0], 0, "retract"), *((alert, 0, "insert") for alert in ALERTS[1:]))
    exits.append(deliver_elsewhere(root, setting, killed_at=step))
    began = time.monotonic()
    exits.append(deliver_elsewhere(root, setting))
    took_s = time.monotonic() - began
    if exits != [0, -signal.SIGKILL, 0]:
        return [f"{step} was not reached" if exits[1] == 0 else f"the rounds ended with {exits}"], took_s
    received = [(alert_id, sequence, op) for alert_id, sequence, op, *_ in store.receipts()]
    return undelivered_or_doubled(lake, chosen_subscriber(setting, root), received), took_s


def empty(store: SqlSubscriber) -> None:
    """Let a subscriber lose all it has."""
    with store._transaction(writes=True) as transaction:
        for table in ("alerts", "receipts", "batches"):
            transaction.run(f"DELETE FROM {table}")


def undelivered_or_doubled(lake: Lake, subscriber: Subscriber, received: Iterable[Revision]) -> list[str]:
    """O6: what is wrong between journal, ledger and subscriber; ``received`` is every entry the subscriber took."""
    journal = _entries(lake, CONJUNCTION_ALERTS, "event_id")
    told = {"the ledger": _entries(lake, ALERT_DELIVERIES, "alert_id"), "the receipts": Counter(received)}
    wrong = [
        f"{who}: missing {journal - what}, extra {what - journal}" for who, what in told.items() if what != journal
    ]
    return [*wrong, *disagreements(lake, subscriber)]


def _entries(lake: Lake, table: Table, alert: str) -> Counter[Revision]:
    rows = lake.log(table).rows([alert, "sequence", "op"]).to_pylist()
    return Counter((row[alert], row["sequence"], row["op"]) for row in rows)


def _round(root: Path, setting: str, killed_at: tuple[str, int] | None) -> None:
    visits = Counter[str]()

    def strike(point: str) -> None:
        visits[point] += 1
        if killed_at == (point, visits[point]):
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.watch(strike)
    try:
        deliver(lake_at(root / "lake"), chosen_subscriber(setting, root))
    except Exception:
        traceback.print_exc()
        os._exit(1)

"""What must hold in the simulation (the oracle's O1, O3, O5 to O8): each function returns what does not, in words.

The world's own account (what the partner was told is safe, what the kernel gave receipts for, what the subscriber
applied) is compared with what the tables hold.
"""

from collections import Counter
from typing import Any

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.landing.decoding import WHOLE_SEGMENT
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.log import Commit
from sda_platform.lake.verification import broken_chain
from sda_platform_tests.campaign.simulated_platform import FEEDS, LANDING, TABLES, World, alerts_of

_LONE = ("data without metadata", "metadata without data")
_IDENTITY = ("segment_sha256", "segment_name", "record_number")
_ENTRY = ("event_id", "sequence", "op")

# Hash and name of the segment, and the record's number in it.
Identity = tuple[str, str, int]


def lost_promises(world: World) -> list[str]:
    """O7, right after a fault: what was acknowledged before it is there, and nothing was published that is not."""
    held = {sha256 for sha256, *_ in records(world)}
    left = waiting(world)
    problems = [
        f"O7: {d.feed}/{d.name} was accepted and is neither pending nor committed"
        for d in world.sealed
        if d.meta.sha256 not in held and d.damaged_sha256 not in held and (d.feed, d.name) not in left
    ]
    for receipt in world.receipts:
        found = world.lake().log(receipt.plan.table).find(receipt.plan.sequence)
        if found is None or found.checkpoint.nonce != receipt.commit.checkpoint.nonce:
            problems.append(f"O7: the receipt for {receipt.plan.table.name} {receipt.plan.sequence} is not in the log")
    unfounded = set(world.subscriber.applied) - set(_journal(world))
    return problems + [f"O6: {entry} was published and is not in the journal" for entry in sorted(unfounded)]


def contradictions(world: World) -> list[str]:
    """Everything that does not hold once the backlog is drained."""
    problems = lost_promises(world)
    problems += _differences("O1: record", Counter(_expected(world)), Counter(records(world)))
    for table in TABLES:
        commits = world.lake().log(table).commits()
        sequences = [c.checkpoint.sequence for c in commits]
        if sequences != list(range(len(commits), 0, -1)):
            problems.append(f"O3: {table.name} has the sequences {sequences}")
        problems += [f"O3: {table.name}: {problem}" for problem in broken_chain(commits)]
    problems += replay_differences(world)
    journal = Counter(_journal(world))
    problems += _differences("O6: alert at the subscriber", journal, Counter(world.subscriber.applied))
    ledger = world.lake().log(ALERT_DELIVERIES).rows(["alert_id", "sequence", "op"]).to_pylist()
    problems += _differences("O6: delivery", journal, Counter((r["alert_id"], r["sequence"], r["op"]) for r in ledger))
    problems += [f"O8: {feed}/{name} still waits" for feed, name in sorted(waiting(world))]
    return problems + [f"O8: {path} is left over" for path in world.disk.below("/landing") if path.endswith(".tmp")]


def waiting(world: World) -> set[tuple[str, str]]:
    """Zone and name of every segment that waits."""
    return {(feed, name) for feed in FEEDS for name in LandingZone(LANDING, feed).pending_names()}


def records(world: World) -> list[Identity]:
    """The identity of every record in the bronze table, read from the rows.

    What a dead lander left half written is told too, once it is old, though the file itself is landed again: that is
    no record, unless the file is one that must be told.
    """
    rows = world.lake().log(RAW_RECORDS).rows([*_IDENTITY, "error"]).to_pylist()
    found = [((row["segment_sha256"], row["segment_name"], row["record_number"]), row["error"] or "") for row in rows]
    expected = set(_expected(world))
    return [identity for identity, error in found if identity in expected or not error.endswith(_LONE)]


def replay_differences(world: World) -> list[str]:
    """O5: each commit of the alerts, made again from the window that its checkpoint names, has the same rows."""
    lake, problems = world.lake(), []
    for commit in lake.log(CONJUNCTION_ALERTS).commits():
        again = alerts_of(lake.log(RAW_RECORDS).rows_of(recorded_window(commit)))
        stored = lake.log(CONJUNCTION_ALERTS).rows_of((commit.sequence - 1, commit.sequence))
        if not again.equals(stored.select(again.column_names).sort_by("event_id")):
            problems.append(f"O5: a replay of commit {commit.sequence} of the alerts has other rows")
    return problems


def recorded_window(commit: Commit) -> tuple[int, int]:
    """The records that a commit of the alerts consumed, as its checkpoint tells it."""
    window = commit.checkpoint.window(RAW_RECORDS.name)
    return (window.after_sequence, window.upto_sequence) if window else (0, 0)


def _expected(world: World) -> list[Identity]:
    sound = [(d.meta.sha256, d.name, n) for d in world.sealed if not d.damaged_sha256 for n in range(d.meta.records)]
    return sound + [(sha256, d.name, WHOLE_SEGMENT) for d in world.sealed if (sha256 := d.damaged_sha256)]


def _journal(world: World) -> list[tuple[str, int, str]]:
    rows = world.lake().log(CONJUNCTION_ALERTS).rows(_ENTRY).to_pylist()
    return [(row["event_id"], row["sequence"], row["op"]) for row in rows]


def _differences(what: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    missing, surplus = expected - found, found - expected
    told = [f"{what} {key} is missing" for key in sorted(missing, key=str)]
    return told + [f"{what} {key} is there {found[key]} times, not {expected[key]}" for key in sorted(surplus, key=str)]

"""What must hold in the simulation (the oracle's O1, O3, O5 to O8): each function returns what does not, in words.

The world's own account (what was accepted from the partner, the nonces that runs got receipts for, what the subscriber
answered) is compared with what the tables hold, and the tables are read without the platform's code.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform_tests.campaign.simulated_partner import Delivery
from sda_platform_tests.campaign.simulated_platform import FEEDS, TABLES, World, alerts_of
from sda_platform_tests.campaign.simulated_reading import StoredCommit, stored_commits, stored_rows

_LONE = ("data without metadata", "metadata without data")
_WHOLE_SEGMENT = -1
_GENESIS = "genesis"
_ENTRY = ("event_id", "sequence", "op")
_META_SUFFIX = ".meta.json"

# Hash of the segment, and the record's number in it.
Identity = tuple[str, int]


def lost_promises(world: World) -> list[str]:
    """O7, right after a fault: what was accepted before it is there, and nothing was published that is not."""
    held = {row["segment_sha256"] for row in stored_rows(world.disk, RAW_RECORDS.name, ["segment_sha256"])}
    left = {(feed, world.disk.file(path).data) for feed, _, path in _whole_segments(world)}
    problems = [
        f"O7: {d.feed}/{d.name} was accepted and is neither pending nor committed"
        for d in world.sealed
        if d.known_as not in held and (d.feed, d.arriving) not in left
    ]
    for promise in world.promises:
        in_log = [c for c in stored_commits(world.disk, promise.table.name) if c.sequence == promise.sequence]
        if [commit.manifest["nonce"] for commit in in_log] != [promise.nonce]:
            problems.append(f"O7: the receipt for {promise.table.name} {promise.sequence} is not in the log")
    unfounded = set(world.subscriber.applied) - set(_journal(world))
    return problems + [f"O6: {entry} was published and is not in the journal" for entry in sorted(unfounded)]


def contradictions(world: World) -> list[str]:
    """Everything that does not hold once the backlog is drained."""
    problems = lost_promises(world)
    problems += _differences("O1: record", Counter(set(_expected(world))), Counter(records(world)))
    for table in TABLES:
        problems += [f"O3: {table.name}: {problem}" for problem in broken_chain(world, table.name)]
    problems += replay_differences(world)
    journal = Counter(_journal(world))
    problems += _differences("O6: alert at the subscriber", journal, Counter(world.subscriber.applied))
    problems += _wrong_deliveries(world, journal)
    problems += [f"O8: {feed}/{name} still waits" for feed, name in sorted(waiting(world))]
    return problems + [f"O8: {path} is left over" for path in world.disk.below("/landing") if path.endswith(".tmp")]


def waiting(world: World) -> set[tuple[str, str]]:
    """Zone and name of every segment that waits."""
    return {(feed, name) for feed, name, _ in _whole_segments(world)}


def records(world: World) -> list[Identity]:
    """The identity of every record in the bronze table, read from the rows.

    What a dead lander left half written becomes a dead letter once it is old, though the file itself lands again: that
    is no record, unless the file is one that must become a dead letter.
    """
    rows = stored_rows(world.disk, RAW_RECORDS.name, ["segment_sha256", "record_number", "error"])
    found = [((row["segment_sha256"], row["record_number"]), row["error"] or "") for row in rows]
    expected = set(_expected(world))
    return [identity for identity, error in found if identity in expected or not error.endswith(_LONE)]


def broken_chain(world: World, table: str) -> list[str]:
    """O3: sequences 1 to N, each manifest names the hash of the one before it; windows meet, and name what is there."""
    problems, commits = [], stored_commits(world.disk, table)
    if (sequences := [commit.sequence for commit in commits]) != list(range(1, len(commits) + 1)):
        problems.append(f"sequences {sequences}")
    if commits and commits[0].manifest["previous_sha256"] != _GENESIS:
        problems.append("sequence 1 is not the first of its chain")
    for older, newer in pairwise(commits):
        if newer.manifest["previous_sha256"] != older.sha256:
            problems.append(f"sequence {newer.sequence} names another predecessor than sequence {older.sequence}")
    before: dict[str, int] = {}
    for commit in commits:
        for window in commit.manifest["windows"]:
            upstream = window["table"]
            if window["after_sequence"] != before.get(upstream, 0):
                problems.append(f"sequence {commit.sequence} skips or repeats commits of {upstream}")
            before[upstream] = window["upto_sequence"]
            ends = [c.sha256 for c in stored_commits(world.disk, upstream) if c.sequence == window["upto_sequence"]]
            if window["upto_sequence"] and ends != [window["upto_sha256"]]:
                problems.append(f"sequence {commit.sequence} consumed a commit of {upstream} that is not there")
    return problems


def replay_differences(world: World) -> list[str]:
    """O5: each commit of the alerts, made again from the window that its manifest names, has the same rows."""
    problems = []
    source = stored_rows(world.disk, RAW_RECORDS.name, RAW_RECORDS.arrow_schema.names)
    columns = ["commit_sequence", *_ENTRY, "norad_id_1"]
    alerts = stored_rows(world.disk, CONJUNCTION_ALERTS.name, columns)
    for commit in stored_commits(world.disk, CONJUNCTION_ALERTS.name):
        after, upto = recorded_window(commit)
        consumed = [row for row in source if after < row["commit_sequence"] <= upto]
        again = alerts_of(pa.Table.from_pylist(consumed, RAW_RECORDS.arrow_schema)).select(columns[1:]).to_pylist()
        stored = [row for row in alerts if row["commit_sequence"] == commit.sequence]
        if _sorted(again) != _sorted([{name: row[name] for name in columns[1:]} for row in stored]):
            problems.append(f"O5: a replay of commit {commit.sequence} of the alerts has other rows")
    return problems


def recorded_window(commit: StoredCommit) -> tuple[int, int]:
    """The records that a commit of the alerts consumed, as its manifest states."""
    return commit.window(RAW_RECORDS.name)


def _wrong_deliveries(world: World, journal: Counter[Any]) -> list[str]:
    """O6: the ledger has each entry once with the subscriber's answer, and no batch was sent under two ids."""
    columns = ["alert_id", "sequence", "op", "batch_id", "outcome"]
    ledger = stored_rows(world.disk, ALERT_DELIVERIES.name, columns)
    keys = [(row["alert_id"], row["sequence"], row["op"]) for row in ledger]
    problems = _differences("O6: delivery", journal, Counter(keys))
    for key, row in zip(keys, ledger, strict=True):
        batch = row["batch_id"]
        answers = dict(
            zip(world.subscriber.batches.get(batch, ()), world.subscriber.answers.get(batch, ()), strict=True)
        )
        if answers.get(key) != row["outcome"]:
            problems.append(f"O6: the ledger says {row['outcome']} of {key}, the subscriber {answers.get(key)}")
    sent = Counter(world.subscriber.batches.values())
    return problems + [f"O6: {batch} was sent under {times} batch ids" for batch, times in sent.items() if times > 1]


def _whole_segments(world: World) -> list[tuple[str, str, str]]:
    """Zone, name and data file of every segment that waits with both data and metadata."""
    found = []
    for feed in FEEDS:
        directory = f"/landing/{feed}/pending"
        names = {path[len(directory) + 1 :] for path in world.disk.below(directory)}
        found += [(feed, name, f"{directory}/{name}") for name in names if name + _META_SUFFIX in names]
    return found


def _expected(world: World) -> list[Identity]:
    """Every record of the accepted files; a file that came damaged is one dead letter."""
    return [(d.known_as, number) for d in world.sealed for number in _record_numbers(d)]


def _record_numbers(file: Delivery) -> Sequence[int]:
    return (_WHOLE_SEGMENT,) if file.damaged_data else range(file.meta.records)


def _journal(world: World) -> list[tuple[str, int, str]]:
    rows = stored_rows(world.disk, CONJUNCTION_ALERTS.name, _ENTRY)
    return [(row["event_id"], row["sequence"], row["op"]) for row in rows]


def _sorted(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


def _differences(what: str, expected: Counter[Any], found: Counter[Any]) -> list[str]:
    missing, surplus = expected - found, found - expected
    absent = [f"{what} {key} is missing" for key in sorted(missing, key=str)]
    return absent + [
        f"{what} {key} is there {found[key]} times, not {expected[key]}" for key in sorted(surplus, key=str)
    ]

"""Nothing lost, nothing doubled: the rules O1 to O9 of the campaign, each a function that returns the problems.

They read stored bytes, never the platform's own account of them where another source exists: every live file is
opened, columns are read (``count()`` answers from statistics, even when a file is gone), and the account of what was
written is the campaign's own. Lake and landing zones may be on this machine or in an object store.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession
from upath import UPath

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.dead_letters.tables import BRONZE, DEAD_LETTERS
from sda_platform.delivery.sql_subscriber import SqlSubscriber
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.recovery.verification import current_keys
from sda_platform.registry import TABLES
from sda_platform_tests.campaign.twin import COMPARED, comparable
from sda_platform_tests.campaign.world import RecordId
from sda_platform_tests.support.running_platform import eventually

_Key = TypeVar("_Key")
_SHOWN = 3
_UNFINISHED_SUFFIXES = (".tmp", ".partial")


def identity(lake: Lake, written: Mapping[RecordId, bytes | None]) -> list[str]:
    """O1: the records accepted and those dead-lettered are, together, what was written, each once."""
    accepted: list[RecordId] = []
    for table in BRONZE:
        rows = lake.log(table).rows(["segment_sha256", "record_number", "error_kind"]).to_pylist()
        accepted += [(r["segment_sha256"], r["record_number"]) for r in rows if r["error_kind"] is None]
    letters = lake.log(DEAD_LETTERS).rows(["stage", "segment_sha256", "record_number"]).to_pylist()
    stages = {table.name for table in BRONZE}
    dead = [(r["segment_sha256"], r["record_number"]) for r in letters if r["stage"] in stages]
    return _differences(Counter(written.keys()), Counter([*accepted, *dead]), "record")


def late(lake: Lake) -> list[str]:
    """O1 of late observations: each that a commit of `fused_tracks` counts is one dead letter.

    This holds once a run has followed the last such commit.
    """
    counted = sum(commit.manifest.counts.get("late", 0) for commit in lake.log(FUSED_TRACKS).commits(None))
    stages = lake.log(DEAD_LETTERS).rows(["stage"]).column("stage").to_pylist()
    recorded = stages.count(FUSED_TRACKS.name)
    return [] if counted == recorded else [f"{counted} observations came late, {recorded} of them are dead letters"]


def content(lake: Lake, written: Mapping[RecordId, bytes | None]) -> list[str]:
    """O2: the bytes stored for each record are those that were written."""
    problems = []
    for table in BRONZE:
        for row in lake.log(table).rows(["segment_sha256", "record_number", "payload"]).to_pylist():
            record = row["segment_sha256"], row["record_number"]
            if record[1] >= 0 and row["payload"] != written.get(record):
                problems.append(
                    f"{table.name}: record {record[1]} of {record[0][:12]}… holds other bytes than were sent"
                )
    return _shortened(problems)


def log(lake: Lake, tables: Sequence[Table] = TABLES) -> list[str]:
    """O3: each table's transactions are 1, 2, … N, one commit each, every one naming the hash of the one before."""
    problems = []
    for table in tables:
        directory = location(lake.log(table).uri) / "_delta_log"
        versions = sorted(directory.glob("[0-9]*.json"), key=lambda path: path.name)
        if [int(path.stem) for path in versions] != list(range(len(versions))):
            problems.append(f"{table.name}: the log's versions have a gap")
        commits = [commit for path in versions for commit in _commits_in(path, table.app_id)]
        taken = [sequence for sequence, _ in commits]
        if taken != list(range(1, len(taken) + 1)):
            problems.append(f"{table.name}: its transactions are {_told(taken)}, not 1 to {len(taken)} once each")
        for (_, older), (sequence, newer) in pairwise(commits):
            if _facts(newer).get("previous_sha256") != hashlib.sha256(older.encode()).hexdigest():
                problems.append(f"{table.name}: the manifest of {sequence} does not name the one before it")
        wrong = [sequence for sequence, text in commits if _facts(text).get("sequence") != sequence]
        problems += [f"{table.name}: transaction {sequence} has another's manifest, or none" for sequence in wrong]
    return problems


def files(lake: Lake, tables: Sequence[Table] = TABLES) -> list[str]:
    """O4: every live file exists, once, in its size, opens, and its columns have as many rows as its statistics say."""
    problems = []
    for table in tables:
        uri = lake.log(table).uri
        directory = location(uri)
        if not (directory / "_delta_log").exists():
            continue
        delta = DeltaTable(uri, storage_options=delta_options(uri))
        actions = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
        live = Counter(action["path"] for action in actions)
        problems += [f"{table.name}: {path} is live {times} times" for path, times in live.items() if times > 1]
        for action in actions:
            wrong = _wrong_with(directory / action["path"], action)
            problems += [f"{table.name}: {action['path']}: {wrong}"] if wrong else []
    return problems


def derived(lake: Lake, twin: Lake, tables: Sequence[Table] = COMPARED) -> list[str]:
    """O5 (and O2's sums): what each table states in the end is, value for value, what a fault-free twin's states."""
    problems = []
    for table in tables:
        ours, theirs = (comparable(one.log(table)) for one in (lake, twin))
        problems += [f"{table.name}: {problem}" for problem in differences(theirs, ours)]
    return problems


def differences(expected: pa.Table, found: pa.Table) -> list[str]:
    """O5 of two tables that must be equal to the last bit, in whatever order."""
    return _differences(_multiset(expected), _multiset(found), "row")


def deliveries(lake: Lake, subscriber: SqlSubscriber) -> list[str]:
    """O6: the subscriber got each entry of the journal once, and holds what the journal holds."""
    entries = lake.log(CONJUNCTION_ALERTS).rows(["event_id", "sequence", "op"]).to_pylist()
    sent = Counter((e["event_id"], e["sequence"], e["op"]) for e in entries)
    got = Counter((alert, sequence, op) for alert, sequence, op, *_ in subscriber.receipts())
    standing = current_keys(lake.log(CONJUNCTION_ALERTS)).column("event_id").to_pylist()
    held = Counter(entry.alert_id for entry in subscriber.held() if entry.op == INSERT)
    return _differences(sent, got, "alert entry") + _differences(Counter(standing), held, "standing alert")


def acknowledged(lake: Lake, landing_root: str, before: Iterable[str] = ()) -> list[str]:
    """O7: every segment that was ever acknowledged (``before``, and what archives hold now) is stored."""
    stored = {sha256 for t in BRONZE for sha256 in lake.log(t).rows(["segment_sha256"]).column(0).unique().to_pylist()}
    lost = sorted({*before, *archived(landing_root)} - stored)
    return _shortened([f"segment {sha256[:12]}… was acknowledged and is not stored" for sha256 in lost])


def archived(landing_root: str) -> set[str]:
    """Hashes of the segments that were acknowledged."""
    return {path.name.partition(".")[0] for path in location(landing_root).glob("*/archive/*")}


def stored(
    lake: Lake,
    landing_root: str,
    subscriber: SqlSubscriber,
    written: Mapping[RecordId, bytes | None],
    before: Iterable[str] = (),
) -> dict[str, list[str]]:
    """O1 to O4, O6 and O7, by rule: what a platform made of what was ``written``. ``before`` as in `acknowledged`."""
    return {
        "O1": identity(lake, written),
        "O2": content(lake, written),
        "O3": log(lake),
        "O4": files(lake),
        "O6": deliveries(lake, subscriber),
        "O7": acknowledged(lake, landing_root, before),
    }


def lines(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the problems of all rules, each with its rule."""
    return [f"{rule} {problem}" for rule, problems in found.items() for problem in problems]


def come_to_rest(instance: dg.DagsterInstance, landing_root: str, within_s: float) -> list[str]:
    """O8 as soon as it holds, or after ``within_s``.

    A run that was killed at its very end is repeated, seconds after everything was done: it finds nothing.
    """
    eventually(lambda: not at_rest(instance, landing_root), within_s)
    return at_rest(instance, landing_root)


def at_rest(instance: dg.DagsterInstance, landing_root: str) -> list[str]:
    """O8: no run is under way and holds its pool, nothing waits, and no half-written file is left in a zone."""
    problems = [f"run {r.run_id} is still {r.status.value}" for r in instance.get_runs() if not r.is_finished]
    zones = location(landing_root)
    waiting = [path for path in zones.glob("*/pending/*") if path.name.endswith(".meta.json")]
    unfinished = [path for path in zones.rglob("*") if path.suffix in _UNFINISHED_SUFFIXES]
    return problems + [f"{path} is left" for path in (*waiting, *unfinished)]


def readers(lake: Lake, session: SparkSession | ConnectSession, tables: Sequence[Table] = TABLES) -> list[str]:
    """O9: Spark reads the same rows, column by column, as delta-rs does, of each table that has a commit."""
    problems = []
    for table in [table for table in tables if lake.log(table).version() >= 0]:
        mine = lake.log(table).rows()
        theirs = session.read.format("delta").load(lake.log(table).uri).toArrow().select(mine.column_names)
        problems += [f"{table.name}, as Spark reads it: {problem}" for problem in differences(mine, theirs)]
    return problems


def _commits_in(path: UPath, app_id: str) -> list[tuple[int, str]]:
    """Sequence and manifest text of the transaction of ``app_id`` in one version's file, if it has one."""
    actions = [action for line in path.read_text().split("\n") if line for action in json.loads(line).items()]
    texts = [action.get("userMetadata", "") for kind, action in actions if kind == "commitInfo"]
    found = [action["version"] for kind, action in actions if kind == "txn" and action["appId"] == app_id]
    return [(sequence, "".join(texts)) for sequence in found]


def _facts(text: str) -> dict[str, object]:
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def _wrong_with(path: UPath, action: Mapping[str, object]) -> str:
    if not path.exists():
        return "is gone"
    if path.stat().st_size != action["size_bytes"]:
        return f"has {path.stat().st_size} bytes, the log says {action['size_bytes']}"
    try:
        with path.open("rb") as data:
            rows = pq.read_table(data).num_rows
    except (pa.ArrowInvalid, OSError) as error:
        return f"does not open: {error}"
    return "" if rows == action["num_records"] else f"holds {rows} rows, its statistics say {action['num_records']}"


def _multiset(rows: pa.Table) -> Counter[str]:
    """The rows as text, which shows floats to the last bit."""
    return Counter(map(str, rows.to_pylist()))


def _differences(expected: Counter[_Key], found: Counter[_Key], what: str) -> list[str]:
    """How two multisets differ, in words."""
    problems = []
    for told, surplus in (("missing", expected - found), ("surplus", found - expected)):
        if surplus:
            shown = "; ".join(str(each)[:300] for each in list(surplus)[:_SHOWN])
            problems.append(f"{surplus.total()} {what}s {told}, such as {shown}")
    return problems


def _told(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) if len(numbers) < 12 else f"{numbers[:5]}…{numbers[-5:]}"


def _shortened(problems: Sequence[str]) -> list[str]:
    more = len(problems) - _SHOWN
    return [*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]

"""Whether a table that has no log is new or lost.

It is new only if no other table's manifest names it and its landing zones gave no records to it. A lost table that was
taken for a new one would start again at sequence 1, without the rows that others consumed.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from deltalake.exceptions import DeltaError

from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.errors import InvariantError, SegmentLost, TableLost
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.log import Commit, TableLog
from sda_platform.lake.table import Table


def require_new(log: TableLog, others: Iterable[TableLog] = (), zones: Sequence[LandingZone] = ()) -> None:
    """Raise TableLost if the table of ``log`` does not exist, but the logs of ``others`` or ``zones`` show that it did.

    A table that another run creates meanwhile is not lost.
    """
    reason = why_lost(log.table, others, zones)
    if reason and log.version() < 0:
        raise TableLost(f"{reason}. {remedy(log)}")


def why_lost(table: Table, others: Iterable[TableLog], zones: Sequence[LandingZone]) -> str | None:
    """What shows that ``table``, which has no log, existed before; None if it is new."""
    if named_by := consumers(others, table):
        return f"{table.name} is missing, but {', '.join(named_by)} consumed it: it was lost"
    segments = chain.from_iterable(zone.consumed() for zone in zones)
    by_feed = {zone.feed: zone for zone in zones}
    if segment := next((s for s in segments if has_rows(by_feed[s.zone], s)), None):
        consumed = f"{segment.zone}/{segment.name}"
        return f"{table.name} is missing, but its zones have consumed segments, such as {consumed}: it was lost"
    return None


def remedy(log: TableLog) -> str:
    """What a person does about a table whose rows are gone."""
    return (
        f"Restore {log.uri} from a backup; without one, move all tables away and run `sda verify --deep --repair`: "
        "it puts the archived segments back, and the platform builds the tables from them anew"
    )


def consumers(logs: Iterable[TableLog], source: Table, after_sequence: int = 0) -> list[str]:
    """The tables of ``logs`` that have, or may have, read commits of ``source`` after this sequence.

    Of a table whose newest version is damaged the commit before counts. A commit is only planned on commits that are on
    disk, so the damaged one did not read what a power loss took; by other damage it is lost as well.
    """
    found = []
    for log in logs:
        try:
            commit = _newest_readable(log)
        except (InvariantError, DeltaError):
            found.append(f"perhaps {log.table.name}, which is damaged itself")
            continue
        manifest = commit.checkpoint if commit else None
        read = [w.upto_sequence for w in manifest.windows if w.table == source.name] if manifest else []
        read += [s.sequence for s in manifest.snapshots if s.table == source.name] if manifest else []
        if any(sequence > after_sequence for sequence in read):
            found.append(log.table.name)
    return found


def _newest_readable(log: TableLog) -> Commit | None:
    """The newest commit, or the one before where the newest version is damaged; None before the first.

    Raises InvariantError, DeltaError where more than the newest version is damaged.
    """
    try:
        return log.head().commit
    except (InvariantError, DeltaError):
        return next(log.commits_from(log.version() - 1), None)


def has_rows(zone: LandingZone, segment: SegmentRef) -> bool:
    """Whether the table of a consumed segment must have a row of it: a record, or the defect."""
    if segment.defect is not None:
        return True
    try:
        meta = zone.archived(segment).meta
    except SegmentLost:
        return False  # a mark that a segment was consumed whose bytes are gone
    return meta is not None and meta.records > 0

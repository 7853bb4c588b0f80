"""Repair of the lake at a start: damage that a power loss causes is repaired, if no rows can be lost by the repair.

A power loss can only damage unsynced files: at most the newest commit of a table, which was not yet reported. That
commit is set aside, and the next plan makes it again from the same input. Other damage cannot come from a power loss.
Then rows are lost, and the platform refuses to start.

A repair may be killed at any step and repeated: input is restored before the log is changed, the file that shows the
damage is moved last, and nothing is deleted.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from sda_platform import failpoints
from sda_platform.lake import delta_log, durable, unsynced
from sda_platform.lake.errors import InvariantError, LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit, commit_in
from sda_platform.lake.lost_tables import consumers, remedy, shown_by_consumers
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.consumed import MARK_DIGITS, quarantined_name
from sda_platform.landing.table_zones import has_rows, shown_by_zones
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.examination import Damage, Depth, Examination, examine

# In a table's log: what was set aside. Delta, Spark and VACUUM pass over it.
SET_ASIDE = "_lost"
_VERSION_DIGITS = 20
_NO_VERSION = -1
_MOST_LOOKS = 5
_BETWEEN_LOOKS_S = 0.5

# By name of a bronze table: the zones it takes its segments from.
Sources = Mapping[str, Sequence[LandingZone]]


class LostCommit(InvariantError):
    """A table lost rows that were reported. The platform cannot restore them."""


@dataclass(frozen=True)
class RepairFinding:
    """One table: problems, repairs, and the reasons why other problems were not repaired.

    ``unheld`` are consumed segments whose rows the table lacks: at full depth all of them, else those archived after
    the table's newest commit.
    """

    examination: Examination
    unheld: tuple[SegmentRef, ...] = ()
    repaired: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def problems(self) -> list[str]:
        """What was amiss, in words."""
        names = ", ".join(f"{s.zone}/{s.sha256[:12]}…" for s in self.unheld[:3])
        unheld = [f"rows of {len(self.unheld)} consumed segments are not in the table: {names}"] if self.unheld else []
        return [*self.examination.problems, *unheld]

    @property
    def outcome(self) -> str:
        """``sound``, ``repaired`` or ``damaged``."""
        if not self.problems:
            return "sound"
        return "repaired" if self.repaired and not self.refused else "damaged"


def recover(
    lake: Lake,
    tables: Sequence[Table],
    sources: Sources,
    *,
    depth: Depth = Depth.PRESENCE,
    repair: bool,
    wait: Callable[[float], object] = time.sleep,
) -> list[RepairFinding]:
    """Examine every table and, with ``repair``, repair it; findings in the order of ``tables``.

    ``tables`` are in the order of the data flow and are examined from the end: if a commit and its consumer were lost,
    both are made again. During a repair no other process may write. Without ``repair`` others may write: a problem is
    then reported if a second examination, after ``wait`` (seconds), finds it again.
    """
    if repair:
        for zone in chain.from_iterable(sources.values()):
            zone.complete_moves()
    found = []
    for table in reversed(tables):
        look = partial(_look, lake, tables, table, sources.get(table.name, ()), depth)
        finding = look() if repair else _confirmed(look, wait)
        failpoints.hit("recovery.examined")
        if repair and finding.problems:
            finding = _mend(lake, tables, table, sources.get(table.name, ()), finding, depth)
            failpoints.hit("recovery.repaired")
        found.append(finding)
    return found[::-1]


def _confirmed(look: Callable[[], RepairFinding], wait: Callable[[float], object]) -> RepairFinding:
    """What two looks in succession agree on; the last of `_MOST_LOOKS` where none do.

    A commit, OPTIMIZE or VACUUM between the reading of the log and that of the files looks like damage, but once.
    """
    finding = look()
    for _ in range(_MOST_LOOKS - 1):
        if not finding.problems:
            break
        wait(_BETWEEN_LOOKS_S)
        before, finding = finding, look()
        if finding.problems == before.problems:
            break
    return finding


def _look(
    lake: Lake, tables: Sequence[Table], table: Table, zones: Sequence[LandingZone], depth: Depth
) -> RepairFinding:
    log = lake.log(table)
    examination = examine(log, depth)
    if examination.is_absent:
        # At full depth what the zones consumed is put back.
        lost = shown_by_consumers(table, _downstream(lake, tables, table))
        if lost is None and depth < Depth.COLUMNS:
            lost = shown_by_zones(table, zones)
        damage = (Damage(lost, remedy=remedy(log)),) if lost else ()
        examination = replace(examination, damage=damage)
    if depth is Depth.COLUMNS:
        is_searched = examination.reads_as_written
        return RepairFinding(examination, tuple(_unheld(log, zones, examination.version)) if is_searched else ())
    is_older = bool(zones) and examination.is_sound and not examination.is_absent
    return RepairFinding(examination, tuple(_unheld_since_head(log, zones)) if is_older else ())


def _mend(
    lake: Lake,
    tables: Sequence[Table],
    table: Table,
    zones: Sequence[LandingZone],
    found: RepairFinding,
    depth: Depth,
) -> RepairFinding:
    """Repair what is possible and examine again: only a table that is sound afterwards counts as repaired."""
    log, examination = lake.log(table), found.examination
    try:
        if depth < Depth.COLUMNS:  # what is in memory only looks sound
            unsynced.require_none(delta_log.log_directory(log.uri))
        done = [*_set_aside(log, examination.torn), *_put_back(found.unheld, zones)]
        if examination.damage:
            done += _undo_newest(lake, tables, log, zones, examination)
        done += _cleared(log, examination)
    except (LakeError, DeltaError) as refusal:
        return RepairFinding(examination, found.unheld, refused=str(refusal))
    again = examine(log, Depth.PRESENCE)
    if again.damage and not examination.damage:  # the torn files hid it
        further = _mend(lake, tables, table, zones, RepairFinding(again), depth)
        return RepairFinding(examination, found.unheld, (*done, *further.repaired), further.refused)
    refused = f"{table.name}: after the repair still {'; '.join(again.problems)}" if again.problems else None
    return RepairFinding(examination, found.unheld, tuple(done), refused)


def _cleared(log: TableLog, examination: Examination) -> list[str]:
    """Remove the mark of a failed sync: all that is left of the table was read from the disk."""
    if examination.unsynced is None:
        return []
    unsynced.clear(delta_log.log_directory(log.uri))
    return ["cleared the mark of a failed sync: everything was read from the disk"]


def _undo_newest(
    lake: Lake, tables: Sequence[Table], log: TableLog, zones: Sequence[LandingZone], examination: Examination
) -> list[str]:
    """Undo the newest commit, where the damage is in it. Raises LostCommit where that would lose rows."""
    problems = "; ".join(damage.text for damage in examination.damage)
    if remedies := [damage.remedy for damage in examination.damage if damage.remedy]:
        raise InvariantError(f"{problems}. {'. '.join(remedies)}")
    firsts = [damage.from_version for damage in examination.damage]
    first = min((version for version in firsts if version is not None), default=0)
    if None in firsts:
        raise LostCommit(_refusal(log, problems, "the damage is not confined to the newest commit"))
    undone = _commits_from(log, first)
    if len(undone) > 1:
        raise LostCommit(
            _refusal(log, problems, f"{len(undone)} commits are affected, and all but the last were acknowledged")
        )
    before = next(log.commits_from(first - 1), None)
    if named_by := consumers(_downstream(lake, tables, log.table), log.table, before.sequence if before else 0):
        raise LostCommit(_refusal(log, problems, f"the rows were consumed by {', '.join(named_by)}"))
    legible = undone[0] if undone else None
    segments = _archived(legible.manifest.segments, zones) if legible else _unheld(log, zones, first - 1)
    return [*_put_back(segments, zones), *_set_aside(log, _files_from(log, first))]


def _refusal(log: TableLog, problems: str, why: str) -> str:
    return f"{log.table.name} lost data that cannot be made again: {problems}; {why}. {remedy(log)}"


def _commits_from(log: TableLog, first: int) -> list[Commit | None]:
    """The platform's commits from version ``first`` on; None for one that cannot be read, since it may be one."""
    found: list[Commit | None] = []
    for version in sorted({_version_of(name) for name in _files_from(log, first)} - {_NO_VERSION}):
        try:
            text = delta_log.commit_file(log.uri, version).read_text(errors="replace")
            commit = commit_in(log.table, version, text)
        except (FileNotFoundError, InvariantError):
            found.append(None)
            continue
        if commit is not None or not text.strip():
            found.append(commit)
    return found


def _downstream(lake: Lake, tables: Sequence[Table], source: Table) -> Iterator[TableLog]:
    """The logs of the tables that consume or read ``source``."""
    return (lake.log(table) for table in tables if source.name in {each.name for each in table.inputs})


def _archived(segments: Sequence[SegmentRef], zones: Sequence[LandingZone]) -> list[SegmentRef]:
    """Those of ``segments`` that do not wait any more, wholly or in part."""
    found = []
    for zone in zones:
        sound, defective = zone.archive.names(), zone.archive.defective_names()
        own = [segment for segment in segments if segment.zone == zone.feed]
        found += [s for s in own if s.defect is None and s.sha256 in sound]
        found += [
            s for s in own if s.defect is not None and (quarantined_name(s.name), s.sha256[:MARK_DIGITS]) in defective
        ]
    return found


def _unheld_since_head(log: TableLog, zones: Sequence[LandingZone]) -> list[SegmentRef]:
    """Segments that were consumed after the newest commit of the table, which has no row of them.

    There are some where an older state of the lake was restored, and the zones are of today. The newest commit's own
    segments are put at rest after it, too; only what is left after these costs a look at the table's rows.
    """
    head = log.head()
    if head.commit is None:
        return []
    own = {segment.sha256 for segment in head.commit.manifest.segments}
    since_s = head.commit.timestamp_ms / 1000
    later = [(zone, segment) for zone in zones for segment in zone.consumed(since_s) if segment.sha256 not in own]
    if not later:
        return []
    wanted = ds.field("segment_sha256").isin([segment.sha256 for _, segment in later])
    held = set(log.rows(["segment_sha256"], wanted).column("segment_sha256").to_pylist())
    return [segment for zone, segment in later if segment.sha256 not in held and has_rows(zone, segment)]


def _unheld(log: TableLog, zones: Sequence[LandingZone], version: int) -> list[SegmentRef]:
    """Consumed segments of which the table, as of ``version``, has no row: archived ones with records, and defective
    ones."""
    if not zones:
        return []
    held = set(log.rows(["segment_sha256"], version=version).column("segment_sha256").to_pylist())
    missing = [(zone, segment) for zone in zones for segment in zone.consumed() if segment.sha256 not in held]
    return [segment for zone, segment in missing if has_rows(zone, segment)]


def _put_back(segments: Sequence[SegmentRef], zones: Sequence[LandingZone]) -> list[str]:
    """Have these consumed segments wait again. Raises SegmentLost, SegmentConflict."""
    for zone in zones:
        zone.restore([segment for segment in segments if segment.zone == zone.feed])
        zone.archive.forget_unbacked_names()
    failpoints.hit("recovery.segments_restored")
    return [f"put {len(segments)} segments back to be taken again"] if segments else []


def _files_from(log: TableLog, first: int) -> list[str]:
    """Files of the log that belong to version ``first`` or later, in the order in which they may be moved away.

    Newest version first, and of one version the commit last: as long as anything is left, the damage shows.
    """
    names = [path.name for path in delta_log.log_directory(log.uri).iterdir()]
    versioned = [name for name in names if _version_of(name) >= first]
    ordered = sorted(versioned, key=lambda name: (-_version_of(name), name.endswith(".json"), name))
    return [*(name for name in names if name == delta_log.LAST_CHECKPOINT), *ordered]


def _version_of(name: str) -> int:
    """The version that a file of the log belongs to, Hadoop's hidden checksums included."""
    digits = name.removeprefix(".")[:_VERSION_DIGITS]
    return int(digits) if len(digits) == _VERSION_DIGITS and digits.isdigit() else _NO_VERSION


def _set_aside(log: TableLog, names: Sequence[str]) -> list[str]:
    """Move files of the log, with Hadoop's checksum files, to a directory that Delta does not read."""
    if not names:
        return []
    directory = delta_log.log_directory(log.uri)
    target = directory / SET_ASIDE
    durable.make_directory(target)
    for name in names:
        file = directory / name
        for each in (delta_log.hadoop_checksum(file), file):
            if each.exists():
                taken = sum(1 for path in target.iterdir() if path.name.startswith(each.name))
                each.rename(target / f"{each.name}.{taken}")
                failpoints.hit("recovery.set_aside")
    durable.sync([target, directory])
    return [f"set aside {', '.join(name for name in names if not name.startswith('.'))}"]

"""Repair of the lake at a start: damage that a power loss causes is repaired, if no rows can be lost by the repair.

A power loss can only damage unsynced files: at most the newest commit of a table, which was not yet reported. That
commit is set aside, and the next plan makes it again from the same input. Other damage cannot come from a power loss.
Then rows are lost, and the platform refuses to start.

A repair may be killed at any step and repeated: input is restored before the log is changed, the file that shows the
damage is moved last, and nothing is deleted.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from deltalake.exceptions import DeltaError

from sda_platform import failpoints
from sda_platform.lake import delta_log, unsynced
from sda_platform.lake.errors import InvariantError, LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit, commit_in
from sda_platform.lake.lost_tables import consumers, remedy, shown_by_consumers
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.beyond_archive import BeyondArchive, accept_loss, beyond_archive
from sda_platform.landing.table_zones import shown_by_zones
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.examination import Damage, Depth, Examination, examine
from sda_platform.recovery.fitting import unfitting
from sda_platform.recovery.setting_aside import NO_VERSION, files_below, files_from, set_aside, version_of
from sda_platform.recovery.unheld import archived, unheld, unheld_since_head

_MOST_LOOKS = 5
_BETWEEN_LOOKS_S = 0.5

# By name of a bronze table: the zones it takes its segments from.
Sources = Mapping[str, Sequence[LandingZone]]


class LostCommit(InvariantError):
    """A table lost rows that were reported. The platform cannot restore them."""


@dataclass(frozen=True)
class RepairFinding:
    """One table: problems, repairs, and the reasons why other problems were not repaired.

    ``unheld`` are consumed segments whose rows the table lacks: at full depth and of an absent table all of them, else
    those archived after the table's newest commit. ``beyond`` are those of an absent table that the archive lacks too,
    if their loss was accepted; if not, they are damage.
    """

    examination: Examination
    unheld: tuple[SegmentRef, ...] = ()
    beyond: BeyondArchive = field(default_factory=BeyondArchive)
    repaired: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def problems(self) -> list[str]:
        """What was amiss, in words."""
        names = ", ".join(f"{s.zone}/{s.sha256[:12]}…" for s in self.unheld[:3])
        lacking = [f"rows of {len(self.unheld)} consumed segments are not in the table: {names}"] if self.unheld else []
        return [*self.examination.problems, *lacking, *([str(self.beyond)] if self.beyond.marks else [])]

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
    accepted: frozenset[str] = frozenset(),
    wait: Callable[[float], object] = time.sleep,
) -> list[RepairFinding]:
    """Examine every table and, with ``repair``, repair it; findings in the order of ``tables``.

    ``tables`` are in the order of the data flow and are examined from the end: if a commit and its consumer were lost,
    both are made again. During a repair no other process may write. Without ``repair`` others may write: a problem is
    then reported if a second examination, after ``wait`` (seconds), finds it again. ``accepted`` names the tables of
    which a person accepts the loss of what neither a repair nor the archive can bring back.
    """
    if repair:
        for zone in chain.from_iterable(sources.values()):
            zone.complete_moves()
    found = []
    for table in reversed(tables):
        place = _Place(lake, tables, table, sources.get(table.name, ()), depth, accepted)
        look = partial(_look, place)
        finding = look() if repair else _confirmed(look, wait)
        failpoints.hit("recovery.examined")
        if repair and finding.problems:
            finding = _mend(place, finding)
            failpoints.hit("recovery.repaired")
        found.append(finding)
    return list(_fitting(lake, tables, found[::-1])) if depth > Depth.NEWEST else found[::-1]


@dataclass(frozen=True)
class _Place:
    """What a look at one table needs."""

    lake: Lake
    tables: Sequence[Table]
    table: Table
    zones: Sequence[LandingZone]
    depth: Depth
    accepted: frozenset[str]

    @property
    def log(self) -> TableLog:
        return self.lake.log(self.table)

    @property
    def is_accepted(self) -> bool:
        return self.table.name in self.accepted

    def downstream(self) -> Iterator[TableLog]:
        """Return the logs of the tables that consume or read this one."""
        return (self.lake.log(each) for each in self.tables if self.table.name in {s.name for s in each.inputs})

    def is_alone_absent(self) -> bool:
        """Return whether the lake has other tables: it is where it belongs, and lacks this one."""
        return any(self.lake.log(each).version() >= 0 for each in self.tables if each is not self.table)


def _fitting(lake: Lake, tables: Sequence[Table], found: Sequence[RepairFinding]) -> Iterator[RepairFinding]:
    """Yield the findings, with those tables damaged that do not fit a source of theirs."""
    sound = {f.examination.table: f.examination for f in found if f.outcome != "damaged"}
    apart = unfitting(lake, tables, sound)
    for finding in found:
        examination = apart.get(finding.examination.table)
        yield replace(finding, examination=examination, refused=_all_of(examination.damage)) if examination else finding


def _confirmed(look: Callable[[], RepairFinding], wait: Callable[[float], object]) -> RepairFinding:
    """Return what two looks in succession agree on; the last of `_MOST_LOOKS` where none do.

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


def _look(place: _Place) -> RepairFinding:
    log, zones, depth = place.log, place.zones, place.depth
    examination = examine(log, depth)
    if examination.is_absent:
        return _look_at_absent(place, examination)
    if depth is Depth.COLUMNS:
        is_searched = examination.reads_as_written
        return RepairFinding(examination, tuple(unheld(log, zones, examination.version)) if is_searched else ())
    is_older = bool(zones) and examination.is_sound
    return RepairFinding(examination, tuple(unheld_since_head(log, zones)) if is_older else ())


def _look_at_absent(place: _Place, examination: Examination) -> RepairFinding:
    """Of a table that is new nothing is found; of one that was lost, what may be put back and what may not.

    Where the lake has no other table, it may be another directory than it should be. Then only a full look puts back
    what the zones consumed.
    """
    table, zones = place.table, place.zones
    lost = shown_by_consumers(table, place.downstream())
    if lost is None and not zones:  # what zones filled is put back from the archive
        lost = place.lake.verdicts.shows_lost(place.log)
    may_put_back = place.depth is Depth.COLUMNS or (place.depth > Depth.NEWEST and place.is_alone_absent())
    if lost is None and not may_put_back:
        lost = shown_by_zones(table, zones)
    damage = [Damage(lost, remedy=remedy(place.log))] if lost else []
    beyond = beyond_archive(zones)
    if beyond.marks and not place.is_accepted:
        accepting = f"accept the loss with `sda lake verify --deep --repair --accept-loss {table.name}`"
        damage.append(
            Damage(
                f"{table.name} is missing, and {beyond}",
                remedy=f"Restore {place.log.uri} from a backup. Or {accepting}: what is left is put back, and what is "
                "lost may be delivered again",
            )
        )
    waiting = tuple(unheld(place.log, zones, examination.version)) if may_put_back else ()
    found = replace(examination, damage=tuple(damage))
    return RepairFinding(found, waiting, beyond if place.is_accepted and not lost else BeyondArchive())


def _mend(place: _Place, found: RepairFinding) -> RepairFinding:
    """Repair what is possible and examine again: only a table that is sound afterwards counts as repaired."""
    log, examination = place.log, found.examination
    try:
        if place.depth < Depth.COLUMNS:  # what is in memory only looks sound
            unsynced.require_none(delta_log.log_directory(log.uri))
        done = [*set_aside(log, examination.torn), *_begun_after_holes(place, examination)]
        if damage := [each for each in examination.damage if each.below is None or not place.is_accepted]:
            done += _undo_newest(place, damage)
        done += put_back(found.unheld, place.zones)
        done += accept_loss(found.beyond)
        done += _cleared(log, examination)
    except (LakeError, DeltaError) as refusal:
        return replace(found, refused=str(refusal))
    again = examine(log, Depth.PRESENCE)
    if again.damage and not examination.damage:  # the torn files hid it
        further = _mend(place, RepairFinding(again))
        return replace(found, repaired=(*done, *further.repaired), refused=further.refused)
    refused = f"{place.table.name}: after the repair still {'; '.join(again.problems)}" if again.problems else None
    return replace(found, repaired=tuple(done), refused=refused)


def _begun_after_holes(place: _Place, examination: Examination) -> list[str]:
    """Let the history begin after a hole, if a person accepts that it is cut there."""
    below = [damage.below for damage in examination.damage if damage.below is not None]
    return set_aside(place.log, files_below(place.log, max(below))) if below and place.is_accepted else []


def _cleared(log: TableLog, examination: Examination) -> list[str]:
    """Remove the mark of a failed sync: all that is left of the table was read from the disk."""
    if examination.unsynced is None:
        return []
    unsynced.clear(delta_log.log_directory(log.uri))
    return ["cleared the mark of a failed sync: everything was read from the disk"]


def _undo_newest(place: _Place, damage: Sequence[Damage]) -> list[str]:
    """Undo the newest commit, where the damage is in it. Raises LostCommit where that would lose rows."""
    log, zones = place.log, place.zones
    if any(each.remedy for each in damage):
        raise InvariantError(_all_of(damage))
    firsts = [each.from_version for each in damage]
    first = min((version for version in firsts if version is not None), default=0)
    if None in firsts:
        raise LostCommit(_refusal(log, damage, "the damage is not confined to the newest commit"))
    undone = _commits_from(log, first)
    if len(undone) > 1:
        raise LostCommit(
            _refusal(log, damage, f"{len(undone)} commits are affected, and all but the last were acknowledged")
        )
    before = next(log.commits_from(first - 1), None)
    if named_by := consumers(place.downstream(), log.table, before.sequence if before else 0):
        raise LostCommit(_refusal(log, damage, f"the rows were consumed by {', '.join(named_by)}"))
    legible = undone[0] if undone else None
    segments = archived(legible.manifest.segments, zones) if legible else unheld(log, zones, first - 1)
    return [*put_back(segments, zones), *set_aside(log, files_from(log, first))]


def _all_of(damage: Sequence[Damage]) -> str:
    """Every problem, then every remedy."""
    remedies = [each.remedy for each in damage if each.remedy]
    return f"{'; '.join(each.text for each in damage)}. {'. '.join(remedies)}"


def _refusal(log: TableLog, damage: Sequence[Damage], why: str) -> str:
    problems = "; ".join(each.text for each in damage)
    alone = f"`sda lake reconcile {log.table.name} --apply` makes the rows of these files again. If it is refused: "
    is_alone = all(each.is_of_files for each in damage) and not log.table.replaces_rows
    told = f"{log.table.name} lost data that a start cannot make again: {problems}; {why}"
    return f"{told}. {alone if is_alone else ''}{remedy(log)}"


def _commits_from(log: TableLog, first: int) -> list[Commit | None]:
    """Return the platform's commits from version ``first`` on; None for one that cannot be read, since it may
    be one.
    """
    found: list[Commit | None] = []
    for version in sorted({version_of(name) for name in files_from(log, first)} - {NO_VERSION}):
        try:
            text = delta_log.commit_file(log.uri, version).read_text(errors="replace")
            commit = commit_in(log.table, version, text)
        except (FileNotFoundError, InvariantError):
            found.append(None)
            continue
        if commit is not None or not text.strip():
            found.append(commit)
    return found


def put_back(segments: Sequence[SegmentRef], zones: Sequence[LandingZone]) -> list[str]:
    """Have these consumed segments wait again. Raises SegmentLost, SegmentConflict."""
    for zone in zones:
        zone.restore([segment for segment in segments if segment.zone == zone.feed])
        zone.consumed_segments.forget_unbacked_names()
    failpoints.hit("recovery.segments_restored")
    return [f"put {len(segments)} segments back to be taken again"] if segments else []

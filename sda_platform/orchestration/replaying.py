"""`sda lake replay`: make a table again from its inputs with its asset's own body, and compare it with the live table.

There is one runner: the body that `table_asset` declares. Dagster calls it on the lake, a replay on a `ReplayingLake`.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any

import dagster as dg

from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.recorded_settings import RecordedResource
from sda_platform.orchestration.resources import LandingResource
from sda_platform.replay.comparison import Comparison, compare
from sda_platform.replay.history import EVERY_COMMIT, History, Span, history
from sda_platform.replay.recorded_zones import RecordedZones
from sda_platform.replay.replaying_lake import ReplayingLake, seed

# Called after each replayed commit with the table, the number of commits done and their total.
Progress = Callable[[Table, int, int], None]


def replay_lake(
    live: Lake,
    shadow_uri: str,
    resources: Mapping[str, Any],
    *,
    tables: Sequence[Table],
    span: Span = EVERY_COMMIT,
    report: Progress = lambda *_: None,
) -> list[Comparison]:
    """Make ``tables`` again below ``shadow_uri``, from the live tables and the archive, and compare them with ``live``.

    A table without a commit in ``span`` is skipped. ``resources`` are those of the definitions; nothing is delivered
    to a subscriber. A table of several that cannot be replayed, as an input is gone or another version read others,
    has the reason. Raises NotReplayable where it is the only one, SegmentLost for an archived segment.
    """
    if location(shadow_uri).exists():
        raise NotReplayable(f"{shadow_uri} exists already: a shadow needs a place of its own")
    found = []
    for table in tables:
        replayed = history(live.log(table), span)
        if replayed is None:
            continue
        try:
            with leased(live, table, replayed):
                shadow = make_again(live, table, shadow_uri, replayed, resources, report)
                found.append(compare(live.log(table), shadow, replayed))
        except NotReplayable as error:
            if len(tables) == 1:
                raise
            found.append(Comparison(table.name, replayed.first, replayed.last, 0, "", (), not_replayed=str(error)))
    return found


def leased(live: Lake, table: Table, replayed: History) -> AbstractContextManager[object]:
    """A lease on all that a replay reads and compares: versions, logs and segments stay until its end."""
    return VersionLeases(live.uri).held(read_again(table, replayed), "replay")


def make_again(
    live: Lake,
    table: Table,
    shadow_uri: str,
    replayed: History,
    resources: Mapping[str, Any],
    report: Progress = lambda *_: None,
) -> TableLog:
    """Run the asset of ``table`` once for every commit of its history, outside Dagster; returns the shadow's log."""
    shadow, of = TableLog(table, f"{shadow_uri}/{table.name}"), len(replayed.commits)
    seed(live, shadow, replayed)
    with detached(table, live, replayed, resources) as apart:
        for done, commit in enumerate(replayed.commits):
            report(table, done, of)
            run_again(ReplayingLake(live, table, shadow_uri, replayed, commit), table, commit, apart)
            if shadow.find(commit.sequence) is None:
                break  # the comparison reports it; later commits would depend on the missing one
    report(table, of, of)
    return shadow


def run_again(
    lake: Lake,
    table: Table,
    commit: Commit,
    resources: Mapping[str, Any],
    corrected: Mapping[str, bytes] | None = None,
) -> None:
    """Run the asset of ``table`` on ``lake``, where one commit is planned again; see `RecordedZones.corrected`."""
    body = declared(table).body
    given = {
        **_with_recorded_settings(commit, resources),
        "lake": _Opened(lake),
        "context": _SilentContext(),
    }
    if table.zones:
        given["landing"] = _RecordedZones(resources["landing"], commit, corrected or {})
    body(**{name: given[name] for name in signature(body).parameters})


@contextmanager
def detached(table: Table, live: Lake, replayed: History, resources: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """``resources``, with replacements for those by which the asset of ``table`` reaches other systems."""
    stand_ins = declared(table).stand_ins
    with tempfile.TemporaryDirectory() as scratch:
        yield {**resources, **(stand_ins(resources, live, replayed, Path(scratch)) if stand_ins else {})}


def read_again(table: Table, replayed: History) -> Iterator[TableSnapshot]:
    """Yield the inputs of each commit, each commit itself, and the one before the first.

    Of a table whose rows stay, the oldest version suffices: rows are read from the newest, and the log from there on.
    """
    replacing = {each.name for each in (table, *table.inputs) if each.replaces_rows}
    oldest: dict[str, TableSnapshot] = {}
    for commit in filter(None, (replayed.before, *replayed.commits)):
        own = TableSnapshot(table.name, commit.version, commit.sequence)
        inputs = commit.manifest.inputs() if commit is not replayed.before else ()
        for read in (*inputs, own):
            if read.table in replacing:
                yield read
            elif read.version >= 0:
                oldest[read.table] = min(read, oldest.get(read.table, read), key=attrgetter("version"))
    yield from oldest.values()


def _with_recorded_settings(commit: Commit, resources: Mapping[str, Any]) -> dict[str, Any]:
    """``resources`` with the settings under which ``commit`` was made, as far as it recorded them."""
    recorded = commit.manifest.settings or {}
    earlier = {name: each.as_unrecorded() for name, each in resources.items() if isinstance(each, RecordedResource)}
    return {
        **resources,
        **earlier,
        **{name: resources[name].as_recorded(settings) for name, settings in recorded.items()},
    }


class _Opened:
    """A lake where an asset expects the resource that opens one."""

    home = os.devnull
    """Nothing is published there: what an asset says of a commit that is made again links to no page."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def open(self) -> Lake:
        return self._lake


class _RecordedZones:
    """Landing zones that give the segments of a commit once more."""

    def __init__(self, landing: LandingResource, commit: Commit, corrected: Mapping[str, bytes]) -> None:
        self._landing, self._commit, self._corrected = landing, commit, corrected

    def zones_of(self, table: Table) -> RecordedZones:
        segments = self._commit.manifest.segments
        zones = self._landing.zones(table.zones)
        return RecordedZones(zones, len(segments), 0, segments=segments, corrected=self._corrected)


class _SilentContext:
    """A context for assets that report what they did to their inputs: a replay changes no input."""

    def log_event(self, event: dg.AssetObservation) -> None:
        pass

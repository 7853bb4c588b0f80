"""`sda replay`: make a table again from its inputs, by the code of its own asset, and compare it with the live one."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import dagster as dg
from upath import UPath

from sda_platform.delivery.rehearsal import rehearsal
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.assets import body_of
from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import Commit, TableLog
from sda_platform.lake.replay.comparison import Comparison, compare
from sda_platform.lake.replay.history import EVERY_COMMIT, History, Span, history
from sda_platform.lake.replay.replaying import ReplayingLake, seed
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import ELEMENT_PUBLICATIONS
from sda_platform.registry import TABLES

# Told after each commit made again: the table, how many are done, and of how many.
Progress = Callable[[Table, int, int], None]


def replay_lake(
    live: Lake,
    shadow_uri: str,
    resources: Mapping[str, Any],
    *,
    tables: Sequence[Table] = TABLES,
    span: Span = EVERY_COMMIT,
    tell: Progress = lambda *_: None,
) -> list[Comparison]:
    """Make ``tables`` again below ``shadow_uri``, from the live tables and the archive, and compare them with ``live``.

    A table without a commit in ``span`` is left out. ``resources`` are those of the definitions; nothing is delivered
    to anyone. Raises NotReplayable when an input is gone, SegmentLost when it is an archived segment.
    """
    if UPath(shadow_uri).exists():
        raise NotReplayable(f"{shadow_uri} exists already: a shadow needs a place of its own")
    found = []
    for table in tables:
        replayed = history(live.log(table), span)
        if replayed is None:
            continue
        shadow = make_again(live, table, shadow_uri, replayed, resources, tell)
        found.append(compare(live.log(table), shadow, replayed))
    return found


def make_again(
    live: Lake,
    table: Table,
    shadow_uri: str,
    replayed: History,
    resources: Mapping[str, Any],
    tell: Progress = lambda *_: None,
) -> TableLog:
    """Run the asset of ``table`` once for every commit of its history, outside Dagster; returns the shadow's log."""
    shadow, of = TableLog(table, f"{shadow_uri}/{table.name}"), len(replayed.commits)
    body = body_of(table)
    needs = signature(body).parameters
    seed(live, shadow, replayed)
    with _nobody_told(live, table, replayed, resources) as harmless:
        for done, commit in enumerate(replayed.commits):
            tell(table, done, of)
            lake = _Opened(ReplayingLake(live, table, shadow_uri, replayed, commit))
            given = {**_under_settings_of(commit, harmless), "lake": lake, "context": _Untold()}
            body(**{name: given[name] for name in needs})
            if shadow.find(commit.sequence) is None:
                break  # the comparison tells it; later commits would build on what is not there
    tell(table, of, of)
    return shadow


def _under_settings_of(commit: Commit, resources: Mapping[str, Any]) -> dict[str, Any]:
    """``resources`` with the settings under which ``commit`` was made, as far as it recorded them."""
    recorded = commit.checkpoint.settings or {}
    return {**resources, **{name: resources[name].as_recorded(settings) for name, settings in recorded.items()}}


@contextmanager
def _nobody_told(
    live: Lake, table: Table, replayed: History, resources: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """``resources`` with which a replay reaches nobody outside."""
    if table not in (ALERT_DELIVERIES, ELEMENT_PUBLICATIONS):
        yield resources
        return
    with tempfile.TemporaryDirectory() as scratch:
        if table is ELEMENT_PUBLICATIONS:
            yield {**resources, "landing": resources["landing"].model_copy(update={"root": scratch})}
            return
        first = replayed.commits[0].checkpoint
        stand_in = rehearsal(Path(scratch) / "subscriber.sqlite", resources["subscriber"], live, first)
        yield {**resources, "subscriber": stand_in}


class _Opened:
    """A lake where an asset expects the resource that opens one."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def open(self) -> Lake:
        return self._lake


class _Untold:
    """A context for assets that tell of what they did to their inputs: a replay does nothing to them."""

    def log_event(self, event: dg.AssetObservation) -> None:
        pass

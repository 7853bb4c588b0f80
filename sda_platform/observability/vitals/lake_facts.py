"""The facts of tables and landing zones, read from logs, directories and the newest dead letters, without an engine."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.dead_letters.growth import BASELINE_MIN, SUSTAINED_MIN, GrowthResource, growing
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.registry import ZONES
from sda_platform.fusion.sources import silences
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.checks import landing_orphans
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.red_tables import red_tables
from sda_platform.observability.vitals.facts import WatermarkFacts
from sda_platform.orchestration.backlog import backlog_of
from sda_platform.setting_sections import GrowthSettings

_LETTER_COLUMNS = ["error_kind", "feed", "source_id", "received_time_ns", "retry_count", "schema_version"]
_REVIEWED_NS = (SUSTAINED_MIN + BASELINE_MIN) * 60 * NANOSECONDS_PER_SECOND
# How far back an advance of the watermark is looked for; a longer stall counts from there.
_LOOKED_BACK = 50


def lake_facts(
    lake: Lake, landing_root: str, growth: GrowthSettings, *, orphan_grace_s: float, wall_s: float
) -> dict[str, Any]:
    """The fields of `Facts` that the lake and the landing zones give at ``wall_s`` (Unix seconds).

    A table or a directory that cannot be read is among ``red_tables``, and leaves out what it would have given.
    """
    now_ns = lake.clock.now_ns(round(wall_s * NANOSECONDS_PER_SECOND))
    readers: Mapping[str, Callable[[], Any]] = {
        "backlogs": lambda: {feed: backlog_of(LandingZone(landing_root, feed), wall_s) for feed in ZONES},
        "silences": lambda: silences(_watermarks(lake), now_ns),
        "watermark": lambda: watermark_facts(lake, now_ns),
        "orphans": lambda: [
            each.description(wall_s) for each in landing_orphans(landing_root, wall_s - orphan_grace_s)
        ],
        "growing_letters": lambda: _growing(lake, GrowthResource(**growth.model_dump()), now_ns),
        "red_tables": lambda: [str(each) for each in red_tables(lake) if not each.acknowledged],
    }
    found: dict[str, Any] = {"now_ns": now_ns}
    unreadable = []
    for name, read in readers.items():
        try:
            found[name] = read()
        except (LakeError, DeltaError, OSError) as error:
            unreadable.append(f"{name} cannot be read: {error}")
    return {**found, "red_tables": [*found.get("red_tables", ()), *unreadable]}


def _watermarks(lake: Lake) -> Mapping[str, int]:
    commit = lake.log(FUSED_TRACKS).head().commit
    return commit.manifest.watermarks if commit else {}


def _growing(lake: Lake, rule: GrowthResource, now_ns: int) -> list[str]:
    letters = lake.log(DEAD_LETTERS).rows(_LETTER_COLUMNS, ds.field("received_time_ns") > now_ns - _REVIEWED_NS)
    return [str(each) for each in growing(letters, now_ns, rule)]


def watermark_facts(lake: Lake, now_ns: int) -> WatermarkFacts:
    """Since when the fusion's watermark has not advanced although its commits took observations."""
    commits = lake.log(FUSED_TRACKS).commits(_LOOKED_BACK)
    unread_s = unconsumed_s(lake, OBSERVATIONS, FUSED_TRACKS, now_ns)
    if not commits:
        return WatermarkFacts(unread_s=unread_s)
    newest = commits[0].manifest
    mark, since_ns = newest.watermarks.get(PIPELINE), newest.as_of_ns
    for manifest in (commit.manifest for commit in commits):
        if manifest.watermarks.get(PIPELINE) != mark:
            break
        since_ns = manifest.as_of_ns
    stalled_s = (newest.as_of_ns - since_ns) / NANOSECONDS_PER_SECOND
    return WatermarkFacts(stalled_s, unread_s, _slowest(newest.watermarks))


def unconsumed_s(lake: Lake, source: Table, reader: Table, now_ns: int) -> float:
    """Mission seconds since the oldest commit of ``source`` that ``reader`` has not consumed; 0: there is none."""
    commit = lake.log(reader).head().commit
    window = commit.manifest.window(source.name) if commit else None
    waiting = lake.log(source).commits(None, after=window.upto_sequence if window else 0)
    oldest_ns = min((each.manifest.as_of_ns for each in waiting), default=now_ns)
    return max(now_ns - oldest_ns, 0) / NANOSECONDS_PER_SECOND


def _slowest(marks: Mapping[str, int]) -> str:
    kinds: Sequence[str] = [feed.name for feed in OBSERVATION_FEEDS if feed.name in marks]
    return min(kinds, key=lambda kind: marks[kind], default="")

"""The facts of tables and landing zones, read from logs, directories and the newest rows, without an engine."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from sda_platform.catalog.checks import CATALOGUE_IS_FRESH
from sda_platform.catalog.edit_faults import edit_faults
from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.conjunction.checks import SCREENING_IS_FRESH
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.conjunction.unalerted_cdms import unalerted_cdms
from sda_platform.dead_letters.growth import GrowthResource, growing, recent_letters
from sda_platform.dead_letters.tables import DEAD_LETTERS, REFUSING
from sda_platform.formats.closures import Closure
from sda_platform.formats.listings import ListingError
from sda_platform.formats.registry import ZONES
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.silence import heard_by_now, silent_now
from sda_platform.fusion.sources import heard_sources, unlisted
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.checks import landing_orphans
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.admission import BROKEN_CONTRACT
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.lake.waiting import waiting_commits
from sda_platform.landing.orphans import Orphan
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.red_tables import red_tables
from sda_platform.observability.vitals.facts import Finding, OrphanFacts, WatermarkFacts
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orchestration.backlog import backlog_of
from sda_platform.setting_sections import GrowthSettings, VitalsSettings
from sda_platform.units import DAY_NS, HOUR_NS, SECOND_NS

WAY_TO_ALERTS: Final = (
    (RAW_RECORDS, OBSERVATIONS),
    (OBSERVATIONS, FUSED_TRACKS),
    (FUSED_TRACKS, TRACKS),
    (TRACKS, CONJUNCTION_ASSESSMENTS),
)
"""What every run of `observations_to_alerts` hands on: table and reader. Screenings commit at their own pace."""
_REFUSED_WITHIN_NS: Final = HOUR_NS
# How far back an advance of the watermark is looked for; a longer stall counts from there.
_LOOKED_BACK = 50
# A platform that has element sets and never screened them is at fault from here on.
_FIRST_SCREENING_WITHIN_S = 3600.0


def lake_facts(
    lake: Lake,
    landing_root: str,
    growth: GrowthSettings,
    *,
    orphan_grace_s: float,
    wall_s: float,
    rules: VitalsSettings | None = None,
    sensors: FusionResource | None = None,
    closures: Sequence[Closure] = (),
    way: Sequence[tuple[Table, Table]] = WAY_TO_ALERTS,
) -> dict[str, Any]:
    """Return the fields of `Facts` that the lake and the landing zones give at ``wall_s`` (Unix seconds).

    ``way``: tables and readers on the way to alerts. ``sensors``: where ground sensors are listed. ``closures``: when
    they observe nothing. A table or a directory that cannot be read is among ``red_tables``, and leaves out what it
    would have given.
    """
    now_ns = lake.clock.now_ns(round(wall_s * SECOND_NS))
    heard, listed = cache(partial(heard_by_now, lake, now_ns)), cache(partial(_network, sensors))
    readers: Mapping[str, Callable[[], Any]] = {
        "backlogs": lambda: {feed: backlog_of(LandingZone(landing_root, feed), wall_s) for feed in ZONES},
        "unconsumed_s": lambda: {
            reader.name: unconsumed_s(lake, source, reader, now_ns)
            for source, reader in way
            if lake.log(reader).head().commit  # a table that was never made waits for its first run
        },
        "silences": lambda: silent_now(
            lake,
            heard(),
            found.get("backlogs", {}),
            now_ns,
            sensors=listed(),
            closures=closures,
            all_after_ns=round((rules or VitalsSettings()).silence_of_all_s * SECOND_NS),
        ),
        "unlisted": lambda: list(_unlisted(heard(), sensors, listed(), now_ns)) if sensors else [],
        "watermark": lambda: watermark_facts(lake),
        "stale_catalogue": lambda: _stale_catalogue(lake, now_ns),
        "stale_screening": lambda: _stale_screening(lake, now_ns),
        "unalerted_cdms": lambda: [Finding(each.subject, each.text) for each in unalerted_cdms(lake, now_ns)],
        "edit_faults": lambda: [Finding(each.subject, each.text) for each in edit_faults(lake, now_ns)],
        "orphans": lambda: list(_orphans(landing_orphans(landing_root, wall_s - orphan_grace_s), wall_s)),
        "growing_letters": lambda: _growing(lake, GrowthResource(**growth.model_dump()), now_ns),
        "refused_rows": lambda: list(_refused_rows(lake, now_ns)),
        "red_tables": lambda: [
            Finding(f"{each.table} sequence {each.sequence}", str(each))
            for each in red_tables(lake)
            if not each.acknowledged
        ],
    }
    found: dict[str, Any] = {"now_ns": now_ns}
    unreadable: dict[str, str] = {}  # what needs the same file cannot be read for the same reason: one finding
    for name, read in readers.items():
        try:
            found[name] = read()
        except (LakeError, DeltaError, OSError) as error:
            unreadable.setdefault(str(error), name)
    findings = [Finding(name, f"{name} cannot be read: {error}") for error, name in unreadable.items()]
    return {**found, "red_tables": [*found.get("red_tables", ()), *findings]}


def _network(sensors: FusionResource | None) -> SensorNetwork | None:
    """Return the listed sensors; None where they cannot be read, which is named with the settings."""
    try:
        return sensors.network() if sensors else None
    except ListingError:
        return None


def _unlisted(
    heard: Mapping[str, int], sensors: FusionResource, listed: SensorNetwork | None, now_ns: int
) -> Iterator[Finding]:
    """Find sensors that have reported within a day, and that the list lacks."""
    lately = {name for name, at in heard_sources(heard).items() if now_ns - at < DAY_NS}
    for name in unlisted(lately, listed) if listed is not None else ():
        yield Finding(name, sensors.why_not_used(name))


def _stale_catalogue(lake: Lake, now_ns: int) -> Finding | None:
    log = lake.log(ELEMENT_SETS)
    problem = CATALOGUE_IS_FRESH.problem(lake, log)
    if problem is None:
        return None
    return Finding("element sets", problem, CATALOGUE_IS_FRESH.age_s(CATALOGUE_IS_FRESH.newest_ns(lake, log), now_ns))


def _stale_screening(lake: Lake, now_ns: int) -> Finding | None:
    log = lake.log(CONJUNCTION_CANDIDATES)
    screened_ns = SCREENING_IS_FRESH.newest_ns(lake, log)
    if screened_ns is None:
        sets = lake.log(ELEMENT_SETS).commits(_LOOKED_BACK)
        waiting_s = SCREENING_IS_FRESH.age_s(sets[-1].manifest.as_of_ns if sets else None, now_ns)
        never = f"Element sets have waited {waiting_s:,.0f} s for the first screening."
        return Finding("full screening", never, waiting_s) if waiting_s > _FIRST_SCREENING_WITHIN_S else None
    problem = SCREENING_IS_FRESH.problem(lake, log)
    return Finding("full screening", problem, SCREENING_IS_FRESH.age_s(screened_ns, now_ns)) if problem else None


def _orphans(found: Iterable[Orphan], wall_s: float) -> Iterator[OrphanFacts]:
    """Orphans by zone and by who left them."""
    groups: dict[tuple[str, bool], list[Orphan]] = {}
    for orphan in found:
        groups.setdefault((orphan.zone, orphan.is_ours), []).append(orphan)
    for (zone, is_ours), group in groups.items():
        oldest = min(group, key=lambda each: each.changed_s)
        more = f", and {len(group) - 1:,} more in this zone" if len(group) > 1 else ""
        yield OrphanFacts(zone, f"{oldest.description(wall_s)}{more}", is_ours, wall_s - oldest.changed_s)


def _growing(lake: Lake, rule: GrowthResource, now_ns: int) -> list[Finding]:
    return [Finding(each.kind, str(each)) for each in growing(lake, recent_letters(lake, now_ns), now_ns, rule)]


def _refused_rows(lake: Lake, now_ns: int) -> Iterator[Finding]:
    """Of each table, the rows that its commits left out of late."""
    recent = ds.field("rejected_time_ns") > now_ns - _REFUSED_WITHIN_NS
    is_computed = ds.field("stage").isin([table.name for table in REFUSING])
    where = recent & is_computed & (ds.field("error_kind") == BROKEN_CONTRACT)
    letters = lake.log(DEAD_LETTERS).rows(["stage", "error", "rejected_time_ns"], where)
    ordered = letters.sort_by([("stage", "ascending"), ("rejected_time_ns", "ascending")]).to_pylist()
    for table, found in groupby(ordered, key=itemgetter("stage")):
        rows = list(found)
        lasted_s = (now_ns - rows[0]["rejected_time_ns"]) / SECOND_NS
        yield Finding(table, f"{len(rows):,} computed rows broke a contract, the last: {rows[-1]['error']}", lasted_s)


def watermark_facts(lake: Lake) -> WatermarkFacts:
    """Since when the fusion's watermark has not advanced although its commits took observations."""
    commits = lake.log(FUSED_TRACKS).commits(_LOOKED_BACK)
    if not commits:
        return WatermarkFacts()
    newest = commits[0].manifest
    mark, since_ns = newest.watermarks.get(PIPELINE), newest.as_of_ns
    if mark is None:  # a kind was never heard of, which is a fault of its own
        return WatermarkFacts()
    for manifest in (commit.manifest for commit in commits):
        if manifest.watermarks.get(PIPELINE) != mark:
            break
        since_ns = manifest.as_of_ns
    stalled_s = (newest.as_of_ns - since_ns) / SECOND_NS
    return WatermarkFacts(stalled_s, _slowest(newest.watermarks))


def unconsumed_s(lake: Lake, source: Table, reader: Table, now_ns: int) -> float:
    """Mission seconds since the oldest commit of ``source`` that ``reader`` has not consumed; 0: there is none."""
    oldest_ns = min((each.manifest.as_of_ns for each in waiting_commits(lake, source, reader)), default=now_ns)
    return max(now_ns - oldest_ns, 0) / SECOND_NS


def _slowest(marks: Mapping[str, int]) -> str:
    kinds: Sequence[str] = [feed.name for feed in OBSERVATION_FEEDS if feed.name in marks]
    return min(kinds, key=lambda kind: marks[kind], default="")

"""The balance of landing zones: every segment that was discovered is in one place, and is counted as what it is.

discovered = acknowledged + duplicate + conflict + quarantined, in each commit's counts; what is pending is in no
commit. The counts are a promise of the table: a commit that breaks it is red, and consumers stop before it. The
manifest names every segment, so the zones are compared with it: what was acknowledged is in the archive, and what was
quarantined is in quarantine. A file that is missing there changes no row, so that check stops nothing.
"""

from collections.abc import Iterable, Iterator, Sequence

import dagster as dg

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import CommitManifest, SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.decoding import fate_of, segment_counts
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.step_order import AFTER_ALERTS

REVIEWED_COMMITS = 5
_SHOWN = 20


def miscounted_segments(_store: Lake, _log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Commits of a table with landing zones whose counts differ from the segments that they list."""
    problems = []
    for manifest in (commit.manifest for commit in commits):
        counted = segment_counts(manifest.segments)
        counts = {name: manifest.counts.get(name, 0) for name in counted}
        if counts != counted and any(counts.values()):  # versions before this one did not count segments
            problems.append(f"sequence {manifest.sequence} counts {counts}, and lists {counted}")
    return problems


def misplaced_segments(zones: Sequence[LandingZone], manifests: Sequence[CommitManifest]) -> list[str]:
    """Segments of these manifests of one table, newest first, that are not where its zones keep them.

    Of the newest one the zones may not be cleared yet.
    """
    problems: list[str] = []
    by_feed = {zone.feed: zone for zone in zones}
    for manifest in manifests[1:]:
        problems += [f"sequence {manifest.sequence}: {p}" for p in _out_of_place(by_feed, manifest.segments)]
    return problems


def _out_of_place(by_feed: dict[str, LandingZone], segments: Iterable[SegmentRef]) -> Iterator[str]:
    for segment in segments:
        if segment.is_duplicate:
            continue
        resting = by_feed[segment.zone].consumed_segments.place(segment)[0]
        if not resting.exists():
            yield f"{segment.zone}/{segment.name} was counted as {fate_of(segment)}, and {resting} is missing"


def landing_balance_check(table: Table) -> dg.AssetChecksDefinition:
    """Return the check of ``table`` that the segments of its zones add up."""

    @dg.asset_check(
        asset=table.name,
        name="landing_balances",
        description="Segments discovered = acknowledged + pending + duplicate + conflict + quarantined.",
        op_tags=AFTER_ALERTS,
    )
    def landing_balances(lake: LakeResource, landing: LandingResource) -> dg.AssetCheckResult:
        commits = lake.open().log(table).commits()[:REVIEWED_COMMITS]
        manifests = [commit.manifest for commit in commits]
        zones = landing.zones(table.zones)
        problems = misplaced_segments(zones, manifests)
        counts = segment_counts(segment for manifest in manifests for segment in manifest.segments)
        pending = sum(len(zone.pending_names()) for zone in zones)
        counts["discovered_segments"] += pending
        return dg.AssetCheckResult(
            passed=not problems,
            severity=dg.AssetCheckSeverity.ERROR,
            description=outcome_text("; ".join(problems)),
            metadata={
                "commits_reviewed": len(manifests),
                **counts,
                "pending_segments": pending,
                **({"problems": problems[:_SHOWN]} if problems else {}),
            },
        )

    return landing_balances

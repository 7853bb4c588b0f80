"""What must hold for the conjunction room's tables."""

from collections.abc import Sequence

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.conjunction.planning import SCREENED_FROM
from sda_platform.conjunction.second_opinions import open_opinions
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_MESSAGES,
    MESSAGES_FEED,
)
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.checks import DataFreshness, table_checks
from sda_platform.lake.freshness import newest_if_any, nothing_waits, watermark
from sda_platform.lake.lake import Lake
from sda_platform.lake.landing.backlog import backlog_check
from sda_platform.lake.log import Commit, TableLog
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.verification import broken_journals, missing_or_surplus, standing_keys, unbalanced_segments
from sda_platform.orbits.risk.probability import RISK_LEVELS, risk_level

MAX_SCREENING_AGE_S = 12 * 3600.0
MAX_WAIT_S = 120.0
MAX_MESSAGES_AGE_S = 3 * 86_400.0


def assessments_follow_candidates(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every standing candidate that was consumed has one standing assessment, and no other event has one."""
    window = commits[0].checkpoint.window(CONJUNCTION_CANDIDATES.name) if commits else None
    if window is None:
        return []
    expected = standing_keys(store.log(CONJUNCTION_CANDIDATES), version=window.upto_version)
    return missing_or_surplus(expected.column("event_id"), standing_keys(log).column("event_id"), "assessed events")


def risks_follow_probabilities(_store: Lake, log: TableLog, _commits: Sequence[Commit]) -> list[str]:
    """Every standing assessment has the risk level of its Pc (a higher one only where the validity of 2D is unknown),
    and a Pc that is the 2D one wherever that one is valid."""
    columns = ["collision_probability", "risk", "probability_2d", "is_2d_valid"]
    rows = standing_keys(log, columns)
    levels = pa.array(list(RISK_LEVELS))
    of_pc = pc.index_in(pa.array(risk_level(rows.column("collision_probability").to_numpy()).tolist()), levels)
    stored = pc.index_in(rows.column("risk"), levels)
    may_be_higher = pc.and_(pc.is_null(rows.column("is_2d_valid")), pc.greater(stored, of_pc))
    miscoloured = rows.filter(
        pc.and_not(pc.fill_null(pc.not_equal(stored, of_pc), True), pc.fill_null(may_be_higher, False))
    )
    differs = pc.not_equal(rows.column("collision_probability"), rows.column("probability_2d"))
    misjudged = rows.filter(pc.and_(pc.fill_null(rows.column("is_2d_valid"), False), pc.fill_null(differs, True)))
    told = [(miscoloured, "do not have the risk level of their Pc"), (misjudged, "have a valid 2D Pc and another one")]
    return [f"{len(bad)} assessments {what}, such as {bad.column(0)[0].as_py()}" for bad, what in told if len(bad)]


def alerts_follow_assessments(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every standing assessment at risk that was consumed has one standing alert, and no other event has one."""
    window = commits[0].checkpoint.window(CONJUNCTION_ASSESSMENTS.name) if commits else None
    if window is None:
        return []
    assessed = standing_keys(store.log(CONJUNCTION_ASSESSMENTS), ["risk"], version=window.upto_version)
    expected = assessed.filter(pc.not_equal(assessed.column("risk"), "green"))
    return missing_or_surplus(expected.column("event_id"), standing_keys(log).column("event_id"), "alerts")


@dg.asset_check(
    asset=CONJUNCTION_ASSESSMENTS.name,
    additional_deps=[CONJUNCTION_MESSAGES.name],
    description="No message of others tells of a danger ahead that we do not see, or see ten times otherwise.",
)
def others_agree(lake: LakeResource) -> dg.AssetCheckResult:
    """The encounters ahead on which our standing assessments and the newest messages of others differ, by name."""
    store = lake.open()
    opinions = open_opinions(store, store.clock.now_ns())
    lines = [told for told in (opinion.disagreement for opinion in opinions) if told]
    return dg.AssetCheckResult(
        passed=not lines,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(lines)[:1000] or None,
        metadata={
            "told_by_others": len(opinions),
            "told_by_others_only": sum(opinion.event is None for opinion in opinions),
            **({"disagreements": lines[:50]} if lines else {}),
        },
    )


checks = [
    table_checks(
        CONJUNCTION_CANDIDATES,
        balance=[broken_journals],
        freshness=DataFreshness("the last full screening is recent", MAX_SCREENING_AGE_S, watermark(SCREENED_FROM)),
    ),
    table_checks(
        CONJUNCTION_ASSESSMENTS,
        balance=[broken_journals, assessments_follow_candidates, risks_follow_probabilities],
        freshness=DataFreshness(
            "no candidate or track waits to be assessed",
            MAX_WAIT_S,
            nothing_waits([CONJUNCTION_CANDIDATES, TRACKS]),
        ),
    ),
    table_checks(
        CONJUNCTION_ALERTS,
        balance=[broken_journals, alerts_follow_assessments],
        freshness=DataFreshness("no assessment waits", MAX_WAIT_S, nothing_waits([CONJUNCTION_ASSESSMENTS])),
    ),
    table_checks(
        CONJUNCTION_MESSAGES,
        balance=[unbalanced_segments],
        freshness=DataFreshness(
            "messages of others still arrive, once any came", MAX_MESSAGES_AGE_S, newest_if_any("received_time_ns")
        ),
    ),
    backlog_check(CONJUNCTION_MESSAGES, [MESSAGES_FEED]),
    others_agree,
]

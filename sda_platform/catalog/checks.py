"""Checks of the tables of package catalog."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    CONCURRENT,
    EDITS_FEED,
    ELEMENT_SETS,
    ELEMENTS,
    ELEMENTS_FEED,
    EPHEMERIDES,
    EPHEMERIDES_FEED,
    IN_FORCE,
    ORBITAL_CATALOG,
)
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.orchestration.backlog import backlog_check
from sda_platform.orchestration.freshness import newest, newest_if_any, nothing_waits
from sda_platform.orchestration.landing_balance import landing_balance_check, miscounted_segments
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.recovery.verification import consumed_rows, unbalanced_segments

MAX_ELEMENTS_AGE_S = 3 * 86_400.0
MAX_EPHEMERIDES_AGE_S = 3 * 86_400.0


def catalog_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every object with a usable element set in the consumed windows is in the catalogue, with no epoch older than the
    latest of them that had come at the last commit.
    """
    landed = consumed_rows(store, commits, ELEMENT_SETS, ["norad_id", "epoch_time_ns", "error_kind"])
    if not landed.num_rows:
        return []
    usable = landed.filter(pc.is_null(landed.column("error_kind")))
    limit_ns, epoch = commits[0].manifest.as_of_ns + EPOCH_TOLERANCE_NS, usable.column("epoch_time_ns")
    has_come = pc.if_else(pc.less_equal(epoch, limit_ns), epoch, pa.scalar(None, pa.int64()))
    in_force = pa.table({"norad_id": usable.column("norad_id"), "epoch_time_ns": has_come})
    newest_landed = in_force.group_by("norad_id").aggregate([("epoch_time_ns", "max")])
    entries = log.rows(["norad_id", "epoch_time_ns"])
    both = newest_landed.join(entries, "norad_id", join_type="left outer")
    absent = pc.sum(pc.is_null(both.column("epoch_time_ns"))).as_py() or 0
    older = pc.sum(pc.less(both.column("epoch_time_ns"), both.column("epoch_time_ns_max"))).as_py() or 0
    problems = ((absent, "objects landed but are not in the catalogue"), (older, "entries are older than what landed"))
    return [f"{count} {what}" for count, what in problems if count]


def never_stale(store: Lake, _log: TableLog) -> int:
    """The current time: edits have no schedule, so the table is always complete."""
    return store.clock.now_ns()


def no_silent_winner(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every object and every edit of the consumed windows has its claim; of elements exactly one is in force, and an
    attribute whose edits are concurrent has none in force."""
    sets = consumed_rows(store, commits, ELEMENT_SETS, ["norad_id", "error_kind"])
    edits = consumed_rows(store, commits, CATALOG_EDITS, ["edit_id", "error_kind"])
    claims = log.rows(["norad_id", "attribute", "claimant", "outcome"])
    of_elements = claims.filter(pc.equal(claims.column("attribute"), ELEMENTS))
    usable = sets.filter(pc.is_null(sets.column("error_kind"))).column("norad_id")
    lost_objects = set(usable.to_pylist()) - set(of_elements.column("norad_id").to_pylist())
    landed = edits.filter(pc.is_null(edits.column("error_kind"))).column("edit_id")
    lost_edits = set(landed.to_pylist()) - set(claims.column("claimant").to_pylist())
    outcomes: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for row in claims.to_pylist():
        outcomes[row["norad_id"], row["attribute"]][row["outcome"]] += 1
    unsettled = [
        key
        for key, found in outcomes.items()
        if (key[1] == ELEMENTS and found[IN_FORCE] != 1) or (found[IN_FORCE] and found[CONCURRENT])
    ]
    counted = (
        (len(lost_objects), "objects have no claim on their elements"),
        (len(lost_edits), "edits have no claim"),
        (len(unsettled), "attributes have no single winner and no open conflict"),
    )
    return [f"{count} {what}" for count, what in counted if count]


checks = [
    table_checks(
        ELEMENT_SETS,
        balance=[unbalanced_segments, miscounted_segments],
        freshness=DataFreshness("element sets arrived recently", MAX_ELEMENTS_AGE_S, newest("received_time_ns")),
    ),
    table_checks(
        ORBITAL_CATALOG,
        balance=[catalog_balance],
        freshness=DataFreshness("the newest epoch is recent", MAX_ELEMENTS_AGE_S, newest("epoch_time_ns")),
    ),
    table_checks(
        EPHEMERIDES,
        balance=[unbalanced_segments],
        freshness=DataFreshness(
            "ephemerides still arrive, once any came", MAX_EPHEMERIDES_AGE_S, newest_if_any("received_time_ns")
        ),
    ),
    table_checks(
        CATALOG_EDITS,
        balance=[unbalanced_segments],
        freshness=DataFreshness("edits are consumed", MAX_ELEMENTS_AGE_S, never_stale),
    ),
    table_checks(
        CATALOG_CONFLICTS,
        balance=[no_silent_winner],
        freshness=DataFreshness(
            "every landed set and edit is judged", MAX_ELEMENTS_AGE_S, nothing_waits([ELEMENT_SETS, CATALOG_EDITS])
        ),
    ),
    backlog_check(ELEMENT_SETS, [ELEMENTS_FEED]),
    landing_balance_check(ELEMENT_SETS, [ELEMENTS_FEED]),
    backlog_check(EPHEMERIDES, [EPHEMERIDES_FEED]),
    landing_balance_check(EPHEMERIDES, [EPHEMERIDES_FEED]),
    backlog_check(CATALOG_EDITS, [EDITS_FEED]),
    landing_balance_check(CATALOG_EDITS, [EDITS_FEED]),
]

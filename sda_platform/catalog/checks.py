"""Checks of the tables of package catalog."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.gate import accepted, are_held, held_upto
from sda_platform.catalog.identity import SET_KEY, identified, identities_at
from sda_platform.catalog.merge import MERGE_COLUMNS, best_sets
from sda_platform.catalog.tables import (
    CATALOG_EDITS,
    CONCURRENT,
    ELEMENT_SETS,
    ELEMENTS,
    IN_FORCE,
)
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.refused_rows import excused
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.freshness import newest
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.recovery.verification import consumed_rows

MAX_ELEMENTS_AGE_S = 3 * 86_400.0
CATALOGUE_IS_FRESH = DataFreshness("element sets arrived recently", MAX_ELEMENTS_AGE_S, newest("received_time_ns"))
EPOCHS_ARE_RECENT = DataFreshness("the newest epoch is recent", MAX_ELEMENTS_AGE_S, newest("epoch_time_ns"))


def catalog_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every object with a usable element set in the consumed windows is in the catalogue.

    It has the best of its sets as of the last commit, by the holds and edits that this commit had consumed. The sets
    are merged here again, by columns and without the engine.
    """
    landed = consumed_rows(store, commits, ELEMENT_SETS, [*MERGE_COLUMNS, "error_kind"])
    if not landed.num_rows:
        return []
    identities, held = identities_at(store, commits[0].manifest), held_upto(store, commits[0].manifest)
    usable = accepted(landed.filter(pc.is_null(landed.column("error_kind"))).select(MERGE_COLUMNS), held)
    usable = identified(usable, identities)
    entries = log.rows(MERGE_COLUMNS)
    still_held = pc.sum(are_held(entries, held)).as_py() or 0
    merged = pc.sum(pc.is_in(entries["norad_id"], pa.array(sorted(identities.merges), pa.int64()))).as_py() or 0
    # Of equal sets the first counts, so that an entry is compared with the set that it copies.
    both = pa.concat_tables([entries, usable.cast(entries.schema)])
    best = best_sets(both, commits[0].manifest.as_of_ns)
    others = excused(log, commits, "norad_id", both["norad_id"].take(pa.array(best[best >= entries.num_rows])))
    absent = pc.sum(pc.invert(pc.is_in(others, entries["norad_id"].combine_chunks()))).as_py() or 0
    problems = (
        (absent, "objects landed but are not in the catalogue"),
        (len(others) - absent, "entries are not the best set that landed"),
        (merged, "entries are of satellites that edits merged into others"),
        (still_held, "entries are held sets"),
    )
    return [f"{count} {what}" for count, what in problems if count]


def held_sets_have_landed(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every row of the reviewed commits names a usable set of `element_sets`: a held set is not lost."""
    written = ds.field(COMMIT_SEQUENCE) >= min((commit.sequence for commit in commits), default=1)
    rows = log.rows(["segment_sha256", "record_number"], written)
    of_segments = ds.field("segment_sha256").isin(pc.unique(rows["segment_sha256"]))
    if not rows.num_rows:
        return []
    usable = store.log(ELEMENT_SETS).rows(
        ["segment_sha256", "record_number"], of_segments & ds.field("error_kind").is_null()
    )
    absent = accepted(rows, usable).num_rows
    return [f"{absent} held sets are not in {ELEMENT_SETS.name}"] if absent else []


def no_silent_winner(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every object and every edit of the consumed windows has its claim; of elements exactly one is in force, and an
    attribute whose edits are concurrent has none in force."""
    sets = consumed_rows(store, commits, ELEMENT_SETS, [*SET_KEY, "error_kind"])
    newest = commits[0].manifest if commits else None
    sets = identified(accepted(sets, held_upto(store, newest)), identities_at(store, newest))
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

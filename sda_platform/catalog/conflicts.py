"""What becomes of claims on a catalogue object: sources by the total order of sets, edits by version vectors."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from sda_platform.catalog.edit_decoding import edit_of, facts_of
from sda_platform.catalog.edits import EditVerdict, reconcile
from sda_platform.catalog.tables import CATALOG_CONFLICTS, CONCURRENT, ELEMENTS, HELD, IN_FORCE, LOST, SUPERSEDED
from sda_platform.formats.edits import Edit
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_order import REASONS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

_COLUMNS = [c.name for c in CATALOG_CONFLICTS.columns if c.name != COMMIT_SEQUENCE]
_SCHEMA = CATALOG_CONFLICTS.content_schema
# A claimant is the originator of the set that it claims.
_ORDER = f"struct({', '.join(REASONS)})".replace("originator", "claimant")
_FROM_SETS = (
    "norad_id", "segment_sha256", "segment_name", "record_number", "received_time_ns", "epoch_time_ns",
    "element_set_number", "source_priority",
)  # fmt: skip


def element_claims(element_sets: DataFrame, current: DataFrame, *, as_of_ns: int) -> DataFrame:
    """The rows of `catalog_conflicts` about elements that change.

    ``element_sets``: rows of `element_sets` that are new or came into force. ``current``: all rows of
    `catalog_conflicts`. Of each source of an affected object the best set is a claim; the best of these is in force,
    and the others have lost, each with the first part of the order in which it is below.
    """
    usable = element_sets.where(F.col("error_kind").isNull())
    fresh = usable.select(*_FROM_SETS, F.coalesce("originator", F.lit("")).alias("claimant"))
    known = current.where(F.col("attribute") == ELEMENTS)
    affected = known.join(fresh.select("norad_id").distinct(), "norad_id", "left_semi")
    claims = fresh.unionByName(affected.select(*_FROM_SETS, "claimant"))
    claims = claims.withColumn("in_force", F.col("epoch_time_ns") <= F.lit(as_of_ns + EPOCH_TOLERANCE_NS))
    best = F.max_by(F.struct(*_FROM_SETS, "claimant", "in_force"), F.expr(_ORDER)).alias("row")
    sources = claims.groupBy("norad_id", "claimant").agg(best).select("row.*").withColumn("place", F.expr(_ORDER))
    winner = F.max("place").over(Window.partitionBy("norad_id"))
    judged = sources.withColumn("winner", winner).withColumn("holds", F.col("place") == F.col("winner"))
    names = [f"place.{name}" for name in sources.schema["place"].dataType.fieldNames()]  # type: ignore[attr-defined]
    reason = F.lit(None).cast("string")
    for name, text in reversed(list(zip(names, REASONS.values(), strict=True))):
        reason = F.when(F.col(name) != F.col(name.replace("place", "winner", 1)), F.lit(text)).otherwise(reason)
    added = {
        "attribute": F.lit(ELEMENTS),
        "outcome": F.when(F.col("holds"), F.lit(IN_FORCE)).otherwise(F.lit(LOST)),
        "reason": reason,
        **{name: F.lit(None).cast("string") for name in ("origin", "value", "vector", "editor")},
        **{name: F.lit(None).cast("long") for name in ("lamport", "edited_time_ns")},
    }
    result = judged.withColumns(added).select(*_COLUMNS)
    return result.exceptAll(known.select(*_COLUMNS))


def edit_claims(new: pa.Table, current: pa.Table) -> pa.Table:
    """Rows of `catalog_conflicts` that change because of ``new`` rows of `catalog_edits`, given the ``current`` ones.

    Different edits are concurrent if neither site had received the other's. All remain current until a later edit that
    follows all of them decides.
    """
    usable = [row for row in new.to_pylist() if row["error_kind"] is None]
    known = [row for row in current.to_pylist() if row["attribute"] != ELEMENTS]
    keys = {(row["norad_id"], row["attribute"]) for row in usable}
    touched = [*known, *usable]
    touched = sorted((row for row in touched if _key(row) in keys), key=_key)
    rows = [row for _, group in groupby(touched, key=_key) for row in _judged(list(group))]
    before = {row["claimant"]: {name: row[name] for name in _COLUMNS} for row in known}
    return pa.Table.from_pylist([row for row in rows if before.get(row["claimant"]) != row], _SCHEMA)


def _key(row: dict[str, Any]) -> tuple[int, str]:
    return row["norad_id"], row["attribute"]


def _judged(rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The claims of one attribute of one object."""
    arrived: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda r: (r["received_time_ns"], r["segment_sha256"], r["record_number"])):
        arrived.setdefault(edit_of(row).edit_id, row)  # of a second delivery the first counts
    verdict = reconcile(map(edit_of, arrived.values()))
    for edit in (*verdict.current, *verdict.superseded, *verdict.held):
        yield _claim(edit, arrived[edit.edit_id], *_outcome(edit, verdict))


def _outcome(edit: Edit, verdict: EditVerdict) -> tuple[str, str | None]:
    if edit in verdict.held:
        claims = ", ".join(f"{count} of {site}" for site, count in sorted(edit.vector.items()))
        have = ", ".join(f"{count} of {site}" for site, count in sorted(verdict.arrived.items())) or "none"
        return HELD, f"it counts edits that have not arrived: {claims}; arrived have {have}"[:1000]
    if edit in verdict.superseded:
        return SUPERSEDED, "a later edit had seen it"
    if not verdict.is_conflict:
        return IN_FORCE, None
    others = sorted({f"{each.value!r} at {each.origin}" for each in verdict.current if each != edit})
    return CONCURRENT, f"made apart from {', '.join(others)}"[:1000]


def _claim(edit: Edit, row: dict[str, Any], outcome: str, reason: str | None) -> dict[str, Any]:
    provenance = ("segment_sha256", "segment_name", "record_number", "received_time_ns")
    facts = facts_of(edit) | {name: row[name] for name in provenance}
    facts |= {"claimant": edit.edit_id, "outcome": outcome, "reason": reason}
    return {name: facts.get(name) for name in _COLUMNS}

"""What a person is shown of the catalogue's conflicts and held sets."""

from collections import Counter
from typing import Any

from sda_platform.catalog.held_model import BORNE_OUT, RELEASED
from sda_platform.catalog.tables import CONCURRENT, ELEMENTS, HELD, LOST
from sda_platform.lake.log import TableLog
from sda_platform.orchestration.materialization import shown_table


def conflict_facts(log: TableLog) -> dict[str, Any]:
    """Objects that more than one source claims, lost claims by source, and edits that wait for a decision."""
    claims = log.rows(["norad_id", "attribute", "claimant", "outcome"]).to_pylist()
    sources = [row for row in claims if row["attribute"] == ELEMENTS]
    contested = Counter(row["norad_id"] for row in sources)
    by_source: dict[str, Counter[str]] = {}
    for row in sources:
        if contested[row["norad_id"]] > 1:
            by_source.setdefault(row["claimant"] or "not recorded", Counter())[row["outcome"]] += 1
    waiting = [row for row in claims if row["outcome"] in (CONCURRENT, HELD)]
    lines = [
        {"source": name, "in force": found.total() - found[LOST], "lost": found[LOST]}
        for name, found in sorted(by_source.items())
    ]
    facts: dict[str, Any] = {
        "contested_objects": sum(count > 1 for count in contested.values()),
        "lost_claims": sum(found[LOST] for found in by_source.values()),
        "edits_to_decide": len({(row["norad_id"], row["attribute"]) for row in waiting}),
    }
    if lines:
        facts["conflicts_by_source"] = shown_table(lines)
    return facts


def held_facts(log: TableLog) -> dict[str, Any]:
    """Sets that are held, how many by each reason, and how many were held once."""
    rows = log.rows(["reason", "outcome"]).to_pylist()
    reasons = Counter(row["reason"] for row in rows if row["outcome"] == HELD)
    outcomes = Counter(row["outcome"] for row in rows)
    facts: dict[str, Any] = {
        "held_sets": outcomes[HELD],
        "borne_out_sets": outcomes[BORNE_OUT],
        "released_sets": outcomes[RELEASED],
    }
    if reasons:
        lines = [{"reason": name, "held sets": count} for name, count in sorted(reasons.items())]
        facts["held_by_reason"] = shown_table(lines)
    return facts

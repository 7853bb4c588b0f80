"""The merge of several sources into the catalogue, and what each source claims: equal to the oracle in plain Python."""

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from sda_platform.catalog import conflicts, transforms
from sda_platform.catalog.tables import CATALOG_CONFLICTS, ELEMENT_SETS, IN_FORCE, LOST, ORBITAL_CATALOG
from sda_platform.lake.table import Table
from sda_platform.orbits.element_order import rank
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.element_merge import merge_sorted_sources, reason_against
from sda_platform_tests.support.segments import START_NS

SOURCES = ("spacetrack", "esa", "exoanalytic", "leolabs", None)
ORIGINATORS = ("18 SDS", "ESA SST", None)


def five_sources(seed: int) -> list[dict[str, Any]]:
    """Sets of 40 objects by five sources: ties, sets ahead, objects that some sources lack, a repeated one."""
    chance = random.Random(seed)
    return [
        {
            "norad_id": chance.randint(1, 40),
            "epoch_time_ns": START_NS + chance.choice([-3, -2, -2, -1, 5]) * 3600 * 10**9,
            "source_priority": chance.choice([0, 20]),
            "element_set_number": chance.choice([None, 1, 999]),
            "source_name": chance.choice(SOURCES),
            "originator": chance.choice(ORIGINATORS),
            "segment_sha256": f"{chance.randrange(4):064x}",
            "record_number": number,
            "error_kind": None,
            "error": None,
        }
        for number in range(300)
    ]


def oracle(sets: Iterable[dict[str, Any]]) -> tuple[dict[int, dict[str, Any]], dict[tuple[int, str], dict[str, Any]]]:
    """The set in force of each object, and the best set of each source, by the merge in plain Python."""
    by_source: dict[tuple[int, str], dict[str, Any]] = {}
    for each in sorted(sets, key=lambda r: rank(r, START_NS)):
        by_source[each["norad_id"], each["source_name"] or ""] = each
    streams = [
        sorted((r for r in sets if r["source_name"] == source), key=lambda r: r["norad_id"]) for source in SOURCES
    ]
    return {best["norad_id"]: dict(best) for best, _ in merge_sorted_sources(streams, START_NS)}, by_source


def identity(row: Any) -> tuple[str, int]:
    return row["segment_sha256"], row["record_number"]


def test_the_merge_equals_the_oracle_in_any_order_and_division__CM4_CM6_CM14() -> None:
    for seed in range(20):
        sets = five_sources(seed)
        best, by_source = oracle(sets)
        random.Random(seed).shuffle(sets)
        catalogue, claims = rows_of(ORBITAL_CATALOG, []), rows_of(CATALOG_CONFLICTS, [])
        for part in (sets[:120], sets[120:]):
            landed = rows_of(ELEMENT_SETS, part)
            improved = transforms.improvements(landed, catalogue, as_of_ns=START_NS)
            changed = conflicts.element_claims(landed, claims, as_of_ns=START_NS)
            catalogue = replaced(ORBITAL_CATALOG, catalogue, improved)
            claims = replaced(CATALOG_CONFLICTS, claims, changed)
        in_force = {row["norad_id"]: identity(row) for row in catalogue.to_pylist()}
        assert in_force == {number: identity(row) for number, row in best.items()}, seed
        found = {(row["norad_id"], row["claimant"]): row for row in claims.to_pylist()}
        assert {key: identity(row) for key, row in found.items()} == {k: identity(r) for k, r in by_source.items()}
        for (number, claimant), row in found.items():
            winner, loser = best[number], by_source[number, claimant]
            if identity(loser) == identity(winner):
                assert (row["outcome"], row["reason"]) == (IN_FORCE, None)
            else:
                assert (row["outcome"], row["reason"]) == (LOST, reason_against(loser, winner, START_NS)), row


def replaced(table: Table, rows: pa.Table, changed: pa.Table) -> pa.Table:
    """``rows`` with the ``changed`` ones in the place of those with their keys."""
    by_key = {tuple(row[name] for name in table.key): row for row in (*rows.to_pylist(), *changed.to_pylist())}
    return rows_of(table, by_key.values())


def test_sets_that_are_in_force_already_change_nothing() -> None:
    landed = rows_of(ELEMENT_SETS, five_sources(7))
    catalogue = replaced(
        ORBITAL_CATALOG,
        rows_of(ORBITAL_CATALOG, []),
        transforms.improvements(landed, rows_of(ORBITAL_CATALOG, []), as_of_ns=START_NS),
    )
    claims = conflicts.element_claims(landed, rows_of(CATALOG_CONFLICTS, []), as_of_ns=START_NS)
    assert transforms.improvements(landed, catalogue, as_of_ns=START_NS).num_rows == 0
    assert (
        conflicts.element_claims(landed, rows_of(CATALOG_CONFLICTS, claims.to_pylist()), as_of_ns=START_NS).num_rows
        == 0
    )


def test_the_name_of_another_takes_no_claim_of_its_source__44() -> None:
    """A partner names the originator of another source's sets: first with an equal epoch, then with a later one."""
    common = {"norad_id": 5, "originator": "18 SDS", "record_number": 0, "epoch_time_ns": START_NS}
    true = common | {"source_name": "spacetrack", "segment_sha256": "a" * 64, "source_priority": 20}
    copied = common | {"source_name": "partner", "segment_sha256": "b" * 64, "source_priority": 0}

    def claims(*sets: dict[str, Any]) -> set[tuple[Any, ...]]:
        landed = rows_of(ELEMENT_SETS, sets)
        found = conflicts.element_claims(landed, rows_of(CATALOG_CONFLICTS, []), as_of_ns=START_NS)
        names = ("claimant", "originator", "outcome", "reason")
        return {tuple(row[name] for name in names) for row in found.to_pylist()}

    assert claims(true, copied) == {
        ("spacetrack", "18 SDS", IN_FORCE, None), ("partner", "18 SDS", LOST, "lower source priority"),
    }  # fmt: skip
    assert claims(true, copied | {"epoch_time_ns": START_NS + 1}) == {
        ("spacetrack", "18 SDS", LOST, "older epoch"), ("partner", "18 SDS", IN_FORCE, None),
    }  # fmt: skip
    assert claims(true, copied | {"source_priority": 20, "originator": None}) == {
        ("spacetrack", "18 SDS", IN_FORCE, None),
        ("partner", "", LOST, "originator later in the alphabet wins"),
    }

"""A catalogue that is merged from real element sets and edits, delivery by delivery, without an engine."""

import gzip
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.catalog.checks import catalog_balance, held_sets_have_landed, no_silent_winner
from sda_platform.catalog.edit_decoding import facts_of
from sda_platform.catalog.edits import next_edit
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    ELEMENT_SETS,
    HELD,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
)
from sda_platform.formats.edits import Edit
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.leases import LeaseResource
from sda_platform.recovery.review import review
from sda_platform_tests.support.delta_tables import commit, lake_at

HISTORY = Path(__file__).parents[1] / "data/history/sets_of_40_objects_2013-10.3le.gz"
HOUR_NS = 3600 * 10**9
Row = dict[str, Any]
CHECKS = (
    (HELD_ELEMENT_SETS, held_sets_have_landed),
    (ORBITAL_CATALOG, catalog_balance),
    (CATALOG_CONFLICTS, no_silent_winner),
)


@cache
def histories() -> tuple[tuple[Row, ...], ...]:
    """Real sets of four objects, each 14 of them, by epoch; each came six hours after its epoch."""
    table = decode_element_sets(gzip.decompress(HISTORY.read_bytes()), segment_format="tle")
    rows = table.sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")]).to_pylist()
    by_object: dict[int, list[Row]] = {}
    for place, row in enumerate(rows):
        of_object = by_object.setdefault(row["norad_id"], [])
        if not of_object or row["epoch_time_ns"] > of_object[-1]["epoch_time_ns"]:
            of_object.append({**row, **landed(place), "received_time_ns": row["epoch_time_ns"] + 6 * HOUR_NS})
    quiet = [each for each in by_object.values() if len(each) >= 14 and "DEB" in each[0]["object_name"]]
    return tuple(tuple(each[-14:]) for each in quiet[:4])


def landed(place: int) -> Row:
    return {
        "segment_sha256": f"{place:064x}",
        "segment_name": f"{place}.tle",
        "record_number": 0,
        "source_priority": 0,
        "error_kind": None,
        "error": None,
    }


def tagged(row: Row, other: Row, place: int = 10_000) -> Row:
    """The elements of ``other``, published under the number of ``row``, after it."""
    epoch_ns = max(row["epoch_time_ns"] + HOUR_NS, other["epoch_time_ns"])
    named = {"norad_id": row["norad_id"], "object_name": row["object_name"], "epoch_time_ns": epoch_ns}
    return {**other, **landed(place), **named, "received_time_ns": epoch_ns + HOUR_NS}


def lifted(row: Row, revolutions_per_day: float) -> Row:
    """The set with another mean motion."""
    return {**row, "mean_motion_rev_per_day": row["mean_motion_rev_per_day"] + revolutions_per_day}


def key(row: Row) -> tuple[str, int]:
    return row["segment_sha256"], row["record_number"]


class Merging:
    """A lake into which sets and edits come, and whose catalogue is merged after each delivery."""

    def __init__(self, home: Path, now_ns: int) -> None:
        self.home, self.now_ns, self._edits = home, now_ns, list[Edit]()

    def open(self) -> Lake:
        """As a resource."""
        return lake_at(self.home / "lake", now_ns=self.now_ns)

    def deliver(self, sets: Iterable[Row] = (), edits: Sequence[Edit] = ()) -> "Merging":
        lake = self.open()
        if sets := list(sets):
            commit(lake, ELEMENT_SETS, sets)
        if edits:
            provenance = {
                "segment_sha256": f"{len(self._edits):064d}",
                "segment_name": "edits",
                "received_time_ns": self.now_ns,
            }
            rows = [{**facts_of(each), **provenance, "record_number": n} for n, each in enumerate(edits)]
            commit(lake, CATALOG_EDITS, [{**row, "error_kind": None, "error": None} for row in rows])
            self._edits += edits
        given: dict[str, Any] = {"lake": self}
        declared(SATELLITE_CATALOG).body(**given)
        declared(HELD_ELEMENT_SETS).body(**given)
        declared(ORBITAL_CATALOG).body(**given, leases=LeaseResource())
        declared(CATALOG_CONFLICTS).body(**given)
        for table, balance in CHECKS:
            found = review(lake, table, [balance])
            assert found.findings == (), found
        return self

    def edit(self, norad_id: int, attribute: str, value: str) -> Edit:
        facts: dict[str, Any] = {"norad_id": norad_id, "attribute": attribute, "value": value}
        return next_edit(self._edits, **facts, origin="north", editor="me", edited_time_ns=0)

    def in_force(self) -> dict[int, tuple[str, int]]:
        return {row["norad_id"]: key(row) for row in self.open().log(ORBITAL_CATALOG).rows().to_pylist()}

    def catalogue(self) -> list[Row]:
        rows = self.open().log(ORBITAL_CATALOG).rows().drop_columns("commit_sequence").sort_by("norad_id")
        return list(rows.to_pylist())

    def holds(self, outcome: str = HELD) -> dict[tuple[str, int], str]:
        rows = self.open().log(HELD_ELEMENT_SETS).rows().to_pylist()
        return {key(row): row["reason"] for row in rows if row["outcome"] == outcome}

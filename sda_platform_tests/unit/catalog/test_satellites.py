"""What is known of satellites does not depend on how statements came in batches, and edits decide on decays."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.assets import changed_entries
from sda_platform.catalog.edit_decoding import facts_of
from sda_platform.catalog.edits import next_edit
from sda_platform.catalog.identity import identities_around
from sda_platform.catalog.satellites import changed_satellites, with_decays
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG, SATELLITE_CATALOG
from sda_platform.clock import parse_iso_ns
from sda_platform.formats.edits import DECAY, IN_ORBIT, Edit
from sda_platform.formats.satcat import FACTS, PREDICTION, SatelliteRecord
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import sets_of, small_catalogue

LATE = "2025-05-05T00:00:00Z"


def rows(*records: SatelliteRecord, received: int = 0) -> list[dict[str, Any]]:
    """Records as rows that a segment of its own brought."""
    return [
        {
            **{name: getattr(each, name) for name in FACTS},
            "segment_sha256": f"{received:064x}",
            "segment_name": "satcat.csv",
            "record_number": number,
            "received_time_ns": received,
        }
        for number, each in enumerate(records)
    ]


def edits(*values: str, norad_id: int = 1) -> list[dict[str, Any]]:
    """Rows of edits of a decay, each made after the one before."""
    made: list[Edit] = []
    for value in values:
        facts: dict[str, Any] = {"norad_id": norad_id, "attribute": DECAY, "origin": "north", "editor": "me"}
        made.append(next_edit(made, value=value, edited_time_ns=0, **facts))
    provenance = {"segment_sha256": "e" * 64, "segment_name": "edits", "received_time_ns": 99}
    return [{**facts_of(edit), **provenance, "record_number": number} for number, edit in enumerate(made)]


def known(current: list[dict[str, Any]], changed: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What is known of each object, without the record that stated it last."""
    provenance = ("segment_sha256", "segment_name", "record_number", "received_time_ns")
    rows = {row["norad_id"]: row for row in (*current, *changed)}
    return {number: {n: value for n, value in row.items() if n not in provenance} for number, row in rows.items()}


def test_a_prediction_replaces_all_of_the_one_before__44() -> None:
    first = SatelliteRecord(
        1, predicted_decay_time_ns=9, prediction_window_min=60.0, reentry_latitude_deg=1.0, reentry_longitude_deg=2.0
    )
    current = changed_satellites([], rows(first, received=1), [])
    (found,) = changed_satellites(current, rows(SatelliteRecord(1, predicted_decay_time_ns=7), received=2), [])
    stated = [found[name] for name in PREDICTION]
    assert stated == [7, None, None, None]
    assert not changed_satellites([found], rows(SatelliteRecord(1, object_name=None), received=3), [])


def test_of_each_fact_the_newest_statement_counts_and_silence_undoes_nothing() -> None:
    first = changed_satellites([], rows(SatelliteRecord(1, "A", object_type="PAYLOAD", rcs_m2=2.0), received=1), [])
    message = rows(SatelliteRecord(1, decay_time_ns=50), received=2)
    behind = rows(SatelliteRecord(1, "B", operational_status="-"), received=3)
    (row,) = changed_satellites(first, [*behind, *message], [])
    stated = ("object_name", "object_type", "rcs_m2", "decay_time_ns", "operational_status", "received_time_ns")
    assert [row[name] for name in stated] == ["B", "PAYLOAD", 2.0, 50, "-", 3]
    assert set(row) == set(SATELLITE_CATALOG.content_schema.names)
    assert changed_satellites([row], rows(SatelliteRecord(1, "B"), received=4), []) == [], "nothing new"


def test_an_edit_decides_on_a_decay_and_is_undone() -> None:
    stated = changed_satellites([], rows(SatelliteRecord(1, decay_time_ns=50), received=1), [])
    decisions = []
    for count in range(4):
        changed = changed_satellites(stated, [], edits(*(LATE, IN_ORBIT, "")[:count]))
        row = {each["norad_id"]: each for each in (*stated, *changed)}[1]
        decisions.append((row["decay_is_decided"], row["decay_time_ns"], row["stated_decay_time_ns"]))
        stated = [row]
    assert decisions == [(False, 50, 50), (True, parse_iso_ns(LATE), 50), (True, None, 50), (False, 50, 50)]
    (retired,) = changed_satellites([], [], edits(LATE, norad_id=7))
    assert (retired["norad_id"], retired["decay_time_ns"]) == (7, parse_iso_ns(LATE)), "no catalogue lists it"


RECORDS = st.builds(
    SatelliteRecord,
    norad_id=st.integers(1, 3),
    object_name=st.sampled_from([None, "A", "B"]),
    decay_time_ns=st.sampled_from([None, 5, 6]),
    rcs_m2=st.sampled_from([None, 0.5]),
)


@given(st.lists(RECORDS, max_size=8), st.integers(0, 8))
def test_two_batches_give_what_one_gives(records: list[SatelliteRecord], cut: int) -> None:
    received = itertools.count(1)
    landed = [rows(each, received=next(received))[0] for each in records]
    decided = edits(LATE)
    first = changed_satellites([], landed[:cut], decided)
    both = known(first, changed_satellites(first, landed[cut:], decided))
    assert both == known([], changed_satellites([], landed[::-1], decided))


def test_entries_take_the_decays_that_are_known() -> None:
    entries = pa.table({"norad_id": [1, 2, 3, 4], "decay_time_ns": pa.array([9, 9, None, None], pa.int64())})
    decays = pa.table({"norad_id": [4, 2, 8], "decay_time_ns": pa.array([7, None, 1], pa.int64())})
    assert with_decays(entries, decays)["decay_time_ns"].to_pylist() == [9, None, None, 7]


def entries_after(lake: Lake) -> dict[int, int | None]:
    """The decays of the catalogue entries that the next commit of the catalogue changes."""
    plan = lake.plan(ORBITAL_CATALOG)
    before, identities = identities_around(lake, plan)
    changed, _ = changed_entries(lake, plan, before, identities)
    return dict(zip(changed["norad_id"].to_pylist(), changed["decay_time_ns"].to_pylist(), strict=True))


def satellite(norad_id: int, decay_ns: int | None, *, is_decided: bool = False) -> dict[str, Any]:
    (row,) = changed_satellites([], rows(SatelliteRecord(norad_id, decay_time_ns=decay_ns)), [])
    return {**row, "decay_is_decided": is_decided}


def test_the_catalogue_takes_decays_with_new_sets_and_without(tmp_path: Path) -> None:
    lake = small_catalogue(tmp_path, [5, 11, 25544])
    lake.reads_unverified = True
    assert entries_after(lake) == {}
    commit(lake, SATELLITE_CATALOG, [satellite(5, 70), satellite(11, None), satellite(77, 80)])
    assert entries_after(lake) == {5: 70}, "no set is new, and 77 has none"
    newer = sets_of([5, 11], epoch_time_ns=START_NS - 1, segment_sha256="cd" * 32)
    commit(lake, ELEMENT_SETS, newer)
    assert entries_after(lake) == {5: 70, 11: None}

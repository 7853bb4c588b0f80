"""The catalogue's error scales: by the sets that its commit consumed, whenever and in whatever order they came."""

from pathlib import Path

import numpy as np

from sda_platform.catalog.orbits import catalogue_ahead, propagator_of
from sda_platform.catalog.tables import ELEMENT_SETS, ERROR_SCALES, HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.lake.manifest import TableSnapshot
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sets_with_history import DAY_NS, OBJECTS, as_table, newest, rated, sets


def test_scales_depend_on_the_sets_not_on_their_commits_or_order(tmp_path: Path) -> None:
    one, many = lake_at(tmp_path / "one"), lake_at(tmp_path / "many")
    commit(one, ELEMENT_SETS, sets())
    order = np.random.default_rng(1).permutation(len(sets())).tolist()
    for part in np.array_split(order, 3):
        commit(many, ELEMENT_SETS, [sets()[n] for n in part])
    expected = rated(one, newest(sets()))
    assert rated(many, newest(sets())) == expected
    assert len(expected) == OBJECTS
    assert all(row[3] > 0 and min(row[:3]) > 0 for row in expected.values())
    assert min(min(row[:3]) for row in expected.values()) < 0.8


def test_sets_after_the_entrys_epoch_and_the_platforms_own_count_for_nothing(tmp_path: Path) -> None:
    plain, more = lake_at(tmp_path / "plain"), lake_at(tmp_path / "more")
    entries = newest(sets())
    ahead = [{**row, "epoch_time_ns": row["epoch_time_ns"] + DAY_NS, "raan_deg": 0.0} for row in entries]
    own = [{**row, "originator": OWN_ORIGINATOR, "raan_deg": 0.0} for row in sets()]
    commit(plain, ELEMENT_SETS, sets())
    commit(more, ELEMENT_SETS, [*sets(), *ahead, *own])
    assert rated(more, entries) == rated(plain, entries)


def test_an_object_without_sets_for_months_does_not_extend_the_history_of_others(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    commit(lake, ELEMENT_SETS, sets())
    recent, stale = newest(sets())[:2]
    own = {**recent, "originator": OWN_ORIGINATOR, "epoch_time_ns": recent["epoch_time_ns"] + 20 * DAY_NS}
    first = next(row for row in sets() if row["norad_id"] == stale["norad_id"])
    alone, both = rated(lake, [own]), rated(lake, [own, {**first, "epoch_time_ns": first["epoch_time_ns"] + 1}])
    assert both[own["norad_id"]] == alone[own["norad_id"]]
    assert 0 < alone[own["norad_id"]][3] < rated(lake, [recent])[own["norad_id"]][3]


def test_a_late_set_changes_the_scales_of_its_object_alone(tmp_path: Path) -> None:
    lake, entries = lake_at(tmp_path), newest(sets())
    number = entries[0]["norad_id"]
    own = [row for row in sets() if row["norad_id"] == number]
    late = own[len(own) // 2]
    commit(lake, ELEMENT_SETS, [row for row in sets() if row is not late])
    before = rated(lake, entries)
    facts = [dict(zip(HISTORY_COLUMNS, before[row["norad_id"]], strict=True)) for row in entries]
    current = as_table([{**row, **told} for row, told in zip(entries, facts, strict=True)], scales=True)
    assert rated(lake, [], current) == {}, "known sets change nothing"
    commit(lake, ELEMENT_SETS, [late])
    after = rated(lake, [], current)
    assert list(after) == [number]
    assert after[number] != before[number]


def test_a_set_ahead_errs_like_its_object(tmp_path: Path) -> None:
    lake, entry = lake_at(tmp_path, now_ns=newest(sets())[0]["epoch_time_ns"]), newest(sets())[0]
    scale = dict(zip(ERROR_SCALES, (0.5, 2.0, 3.0), strict=True))
    ahead = {**entry, "epoch_time_ns": entry["epoch_time_ns"] + DAY_NS}
    commit(lake, ELEMENT_SETS, [entry, ahead])
    commit(lake, ORBITAL_CATALOG, [{**entry, **scale}], as_of_ns=entry["epoch_time_ns"])
    found = catalogue_ahead(lake, 0, TableSnapshot(ELEMENT_SETS.name, 0, 1), entry["epoch_time_ns"] + 2 * DAY_NS)
    assert len(found) == 2
    np.testing.assert_array_equal(found.propagator.error_scale, [[0.5, 2.0, 3.0]] * 2)


def test_entries_of_an_earlier_version_err_like_their_regime() -> None:
    assert (propagator_of(as_table(newest(sets()))).error_scale == 1.0).all()
    assert (propagator_of(as_table(newest(sets()), scales=True)).error_scale == 1.0).all()

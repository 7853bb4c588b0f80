"""States and covariances of an object: each set within its term, with the error scales that the catalogue has."""

from pathlib import Path

import numpy as np
import pytest

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.predictions import ELEMENT_SET, error_scales, predicted
from sda_platform.serving.source import KnownPath
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sets_with_history import newest, rated, sets
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row
from sda_platform_tests.unit.serving.source import MemorySource

HOUR_NS = 3_600 * 10**9


def live_over(home: Path, *rows: dict[str, object]) -> LiveCatalogue:
    source = MemorySource()
    source.commit(*rows)
    live = LiveCatalogue(source, IndexStore(home), lambda: EPOCH_NS)
    live.start()
    return live


def test_error_scales_are_those_of_the_catalogue__44(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, ELEMENT_SETS, sets())
    expected = rated(lake, newest(sets()))
    segment = {"segment_sha256": "ab" * 32, "received_time_ns": 0, "classification": "U"}
    live = live_over(tmp_path / "index", *({**row(1), **each, **segment} for each in sets()))
    with live.view() as view:
        for number, columns in expected.items():
            found = max(view.history(number), key=lambda each: each.epoch_time_ns)
            assert error_scales(view, found) == pytest.approx(columns[:3], rel=1e-12)
    live.close()


def test_each_set_counts_within_its_term__44(tmp_path: Path) -> None:
    epochs = [EPOCH_NS, EPOCH_NS + 6 * HOUR_NS]
    sets_of = [row(5, epoch_time_ns=epoch, record_number=n, classification="UC"[n]) for n, epoch in enumerate(epochs)]
    live = live_over(tmp_path, *sets_of)
    times = EPOCH_NS + HOUR_NS * np.arange(12, dtype=np.int64)
    with live.view() as view:
        current = view.get(5)
        assert current is not None
        found = predicted(view, current, times, ())
    assert [len(each.time_ns) for each in found.stretches] == [6, 6]
    assert np.concatenate([each.time_ns for each in found.stretches]).tolist() == times.tolist()
    assert [each.marking.classification for each in found.stretches] == ["U", "C"]
    for each in found.stretches:
        sigma_km = np.sqrt(np.trace(each.covariances[:, :3, :3], axis1=1, axis2=2))
        assert (np.linalg.eigvalsh(each.covariances)[:, 0] > 0).all()
        assert sigma_km[0] < sigma_km[-1], "errors grow with the age of the set"
    live.close()


@pytest.mark.parametrize("is_own", [True, False])
def test_a_path_of_our_own_ends_where_a_planned_manoeuvre_comes_into_force__44(tmp_path: Path, is_own: bool) -> None:
    ahead = EPOCH_NS + 2 * DAY_NS
    live = live_over(tmp_path, row(5), row(5, epoch_time_ns=ahead, record_number=2))
    times = EPOCH_NS + HOUR_NS * np.arange(40, 60, dtype=np.int64)
    path = Ephemeris(times, np.tile([7000.0, 0, 0, 0, 7.5, 0], (20, 1)), times[:0], np.zeros((0, 6, 6)), 0, FOREVER_NS)
    with live.view() as view:
        current = view.get(5)
        assert current is not None
        found = predicted(view, current, times, [KnownPath("refined_ephemeris", "one", path, is_own)])
    origins = [each.origin for each in found.stretches]
    assert origins == (["refined_ephemeris", ELEMENT_SET] if is_own else ["refined_ephemeris"])
    assert not is_own or found.stretches[1].time_ns[0] >= ahead - 60 * 10**9
    assert np.isnan(found.stretches[0].covariances).all(), "a path without covariances has none"
    live.close()

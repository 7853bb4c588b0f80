"""Sets that SGP4 accepts again after it refused them, and states beyond what the elements allow."""

from pathlib import Path

import numpy as np
import pytest

from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.orbits.elements import ElementSets, semi_major_axis_km
from sda_platform.orbits.propagation import Propagator, refusal_reasons
from sda_platform.orbits.usable_spans import STATED_DECAY
from sda_platform_tests.support.extreme_elements import extreme_sets, judged_states
from sda_platform_tests.support.reference_elements import reference_elements

FIELD = Path(__file__).parents[2] / "data" / "field"
DAY_NS = 86_400 * 10**9


def field(name: str) -> ElementSets:
    return read_elements(FIELD / name, 0, 2**62).elements


def at(text: str) -> int:
    return int(np.datetime64(text, "ns").astype(np.int64))


def test_a_decayed_set_stays_refused_field_040() -> None:
    propagator = Propagator(field("040-ghost-after-decay-passes.tle"))
    days = at("2024-01-01") + np.arange(0, 3650, 5) * DAY_NS
    error, r_teme_km, _ = propagator.grid(days)
    first = int(np.flatnonzero(error[0])[0])
    assert "2024-03-01" < str(np.datetime64(int(days[first]), "ns")) < "2024-05-01"
    assert (error[0, first:] != 0).all()
    assert np.isnan(r_teme_km[0, first:]).all()
    for time_ns, reason in ((at("2024-01-01"), None), (at("2025-12-17"), "decayed"), (at("2035-01-01"), "decayed")):
        (found,) = refusal_reasons(propagator.elements, time_ns)
        assert (reason or "None") in str(found)


def test_every_way_to_ask_gives_the_same_judgement() -> None:
    elements = ElementSets.stack(
        [field("040-ghost-after-decay-passes.tle"), field("041-decay-within-window-flock.tle")]
    )
    times = at("2015-08-08") + np.arange(0, 4500, 90) * DAY_NS
    whole, _, _ = Propagator(elements).grid(times)
    backwards, _, _ = Propagator(elements).grid(times[::-1])
    rows, columns = np.divmod(np.arange(2 * len(times)), len(times))
    single, _, _ = Propagator(elements).at(rows, times[columns])
    one_by_one = [
        Propagator(elements).take([row]).at([0], times[column])[0][0] for row, column in zip(rows, columns, strict=True)
    ]
    assert (whole != 0).any()
    assert (whole == 0).any()
    for other in (backwards[:, ::-1], single.reshape(whole.shape), np.array(one_by_one).reshape(whole.shape)):
        np.testing.assert_array_equal(other != 0, whole != 0)


def test_a_refusal_before_the_epoch_holds_for_all_times_before_it() -> None:
    elements = field("041-decay-within-window-flock.tle")
    error, _, _ = Propagator(elements).grid(elements.epoch_time_ns[0] - np.arange(0, 3650, 2) * DAY_NS)
    first = int(np.flatnonzero(error[0])[0])
    assert 0 < first < 1800
    assert (error[0, first:] != 0).all()


def test_a_stated_decay_ends_the_set_and_not_what_comes_before_it() -> None:
    first = reference_elements(every=1000).take([0])
    columns = {name: getattr(first, name) for name in ElementSets.__dataclass_fields__}
    decay_ns = int(first.epoch_time_ns[0]) + 3 * DAY_NS
    propagator = Propagator(ElementSets.from_columns({**columns, "decay_time_ns": np.array([decay_ns])}))
    error, _, _ = propagator.grid([decay_ns - 1_000_000, decay_ns, decay_ns + 10**9])
    assert error[0].tolist() == [0, STATED_DECAY, STATED_DECAY]
    from_ns, until_ns, code = propagator.usable_parts(decay_ns - DAY_NS, decay_ns + DAY_NS)
    assert (from_ns[0], until_ns[0], code[0]) == (decay_ns - DAY_NS, decay_ns, STATED_DECAY)
    assert "source of the set states" in str(refusal_reasons(propagator.elements, decay_ns + 1)[0])


def test_real_sets_are_refused_within_a_month_exactly_where_sgp4_refuses_them() -> None:
    """The judgement costs no object that SGP4 gives: checked over the whole catalogue, two weeks both ways."""
    elements = reference_elements(every=7)
    some = Propagator(elements)
    times = int(np.median(elements.epoch_time_ns)) + np.arange(-14, 15, 7) * DAY_NS
    error, _, _ = some.grid(times)
    raw = some._array.sgp4(*_julian(times))[0]
    differing = (error != 0) & (raw == 0)
    assert differing.sum() <= 5
    np.testing.assert_array_equal(error[raw != 0] != 0, True)


def _julian(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole, rest = np.divmod(times, DAY_NS)
    return whole + 2440587.5, rest / DAY_NS


@pytest.mark.parametrize("seed", [1, 2])
def test_no_state_is_beyond_what_the_elements_allow(seed: int) -> None:
    """A sample of `python -m sda_platform_tests.support.extreme_elements`, which judges 100,000 sets."""
    found = judged_states(extreme_sets(seed, 300), seed)
    assert found.accepted > 100
    assert found.beyond == []
    assert found.accepted_again == []


def test_the_axis_of_an_accepted_state_is_that_of_the_elements() -> None:
    elements = reference_elements(every=100)
    error, r, v = Propagator(elements).at(np.arange(len(elements)), elements.epoch_time_ns + 3650 * DAY_NS)
    kept = error == 0
    assert kept.sum() > 50
    radius, speed = np.linalg.norm(r[kept], axis=1), np.linalg.norm(v[kept], axis=1)
    axis_km = 1 / (2 / radius - speed**2 / 398600.8)
    assert (axis_km < 1.11 * semi_major_axis_km(elements)[kept]).all()

"""The parts of a simulated world: keyed chance, clocks within bounds, damage that shows, debris orbits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.framing.container import pack_records
from sda_platform.simulation.corruption import damaged
from sda_platform.simulation.randomness import keyed_uniform, stream
from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform.simulation.time_tag_biases import stamped_times
from sda_platform.simulation.visibility import tick_times
from sda_platform_tests.support.observations import (
    GOLDEN_OPTICAL,
    SEALED_TIME_NS,
    RadarReading,
    decode_observations,
    isl_payload,
)


@given(st.lists(st.integers(), max_size=20), st.integers())
def test_a_keyed_draw_depends_on_its_key_alone(keys: list[int], seed: int) -> None:
    together = keyed_uniform(seed, "x", keys)
    assert together.tolist() == [keyed_uniform(seed, "x", [key])[0] for key in keys]
    assert np.all((together >= 0) & (together < 1))


def test_streams_of_different_labels_differ() -> None:
    assert stream(1, "a").random() != stream(1, "b").random()
    assert stream(1, "a").random() == stream(1, "a").random()


@pytest.mark.parametrize(
    ("quality", "bound_s"),
    [
        ("gps_locked", lambda age_s: 1e-6 + 0 * age_s),
        ("ntp_synced", lambda age_s: 0.010 + 0.001 * age_s / 60),
        ("onboard_drift", lambda age_s: 1e-4 * age_s),
    ],
)
def test_time_tag_bias_is_within_the_bound_of_its_quality__DP3(quality: str, bound_s: object) -> None:
    true_ns = REFERENCE_TIME_NS + np.arange(500) * 7_000_000_000
    names = [f"s{number % 50}" for number in range(500)]
    shown_ns, age_s = stamped_times(3, quality, names, true_ns)
    assert np.all(age_s >= 0)
    assert np.all(np.abs(shown_ns - true_ns) <= bound_s(age_s) * 1e9 + 1)  # type: ignore[operator]
    assert np.any(shown_ns != true_ns)


@pytest.mark.parametrize("manner", [0, 1, 2])
@pytest.mark.parametrize(
    ("feed", "segment_format", "payload"),
    [
        ("radar", "radar-frames", RadarReading().payload()),
        ("isl", "isl-frames", isl_payload()),
        ("optical", "optical-jsonl", GOLDEN_OPTICAL),
    ],
)
def test_damage_always_shows(feed: str, segment_format: str, payload: bytes, manner: int) -> None:
    broken = damaged(feed, payload, manner)
    data = broken if feed == "optical" else pack_records([broken], [SEALED_TIME_NS])
    rows = decode_observations(data, feed=feed, segment_format=segment_format, sealed_time_ns=SEALED_TIME_NS)
    assert rows.num_rows == 1
    assert rows["error_kind"].null_count == 0


@given(st.integers(1, 100), st.integers(101, 250), st.integers(1, 40))
def test_ticks_of_adjoining_stretches_are_those_of_the_whole(begin: int, end: int, interval: int) -> None:
    middle = (begin + end) // 2
    keys = ["a", "b", "c"]
    whole = set(zip(*(part.tolist() for part in tick_times(keys, begin, end, interval, 1)), strict=True))
    halves = [tick_times(keys, *span, interval, 1) for span in ((begin, middle), (middle, end))]
    assert whole == {pair for half in halves for pair in zip(*(part.tolist() for part in half), strict=True)}

"""Which state an assessment rests on where an object has several: by covariance, agreement and age, and it says why."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.operator_ephemerides import (
    ASSUMED_EPHEMERIS,
    NONE,
    OPERATOR_EPHEMERIS,
    OperatorEphemerides,
)
from sda_platform.conjunction.refined_ephemerides import REFINED_EPHEMERIS
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.state_choice import (
    CHOICES,
    EARLIER_DEPARTS,
    LEAVES_TRACK,
    LESS_CERTAIN,
    NEWER_WITHOUT_COVARIANCE,
    why_state,
)
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.fusion.tables import STATE_COLUMNS, lower_triangles
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import HOUR_NS, SECOND_NS
from sda_platform_tests.support.object_shell import BEGIN_NS
from sda_platform_tests.support.sampled_paths import shell
from sda_platform_tests.support.track_columns import SCHEMA

NUMBER = int(shell().norad_id[3])
OTHER = int(shell().norad_id[5])
HOURS, STEP_NS = 12, 300 * SECOND_NS
TIMES_NS = BEGIN_NS + np.arange(0, HOURS * HOUR_NS + 1, STEP_NS)
NO_TRACK = Tracks.of(SCHEMA.empty_table())


def track(*, off_km: float = 0.0) -> Tracks:
    """The object's track at the begin, known to 10 m, on the path of its set."""
    row = shell().positions([NUMBER])
    _, r, v = shell().propagator.at(row, np.array([BEGIN_NS]))
    r = r * (1 + off_km / np.linalg.norm(r))
    joint = np.diag([1e-4] * 3 + [1e-12] * 3 + [1e-6] * 2)[None]
    columns: dict[str, Any] = {
        "norad_id": NUMBER, "track_id": "a fit", "epoch_time_ns": BEGIN_NS,
        **dict(zip(STATE_COLUMNS, np.hstack([r, v])[0].tolist(), strict=True)),
        "drag_area_m2_kg": 0.02, "reflective_area_m2_kg": 0.02,
        "joint_covariance": lower_triangles(joint)[0].tolist(),
    }  # fmt: skip
    return Tracks.of(pa.Table.from_pylist([columns], pa.schema([SCHEMA.field(name) for name in TRACK_COLUMNS])))


@cache
def propagated() -> FloatArray:
    """The states of `track` at TIMES_NS."""
    return track().at(np.zeros(len(TIMES_NS), np.int64), TIMES_NS)[0]


def ephemeris(
    *, sigma_km: float = 0.1, off_km: float = 0.0, dv_m_s: float = 0.0, from_h: int = 0, until_h: int = HOURS
) -> Ephemeris:
    """The path of `track`, ``off_km`` above it, and from hour 6 on as if burned along the track."""
    time_ns = BEGIN_NS + np.arange(from_h * HOUR_NS, until_h * HOUR_NS + 1, STEP_NS)
    r, v = np.split(propagated()[np.searchsorted(TIMES_NS, time_ns)], 2, axis=1)
    along = v / np.linalg.norm(v, axis=1, keepdims=True)
    after_s = np.maximum(time_ns - BEGIN_NS - 6 * HOUR_NS, 0)[:, None] / SECOND_NS
    r = r * (1 + off_km / np.linalg.norm(r, axis=1, keepdims=True)) - 3 * dv_m_s / 1000 * after_s * along
    covariance = np.diag([sigma_km**2] * 3 + [1e-10] * 3)
    return Ephemeris(
        time_ns,
        np.hstack([r, v]),
        time_ns,
        np.repeat(covariance[None], len(time_ns), axis=0),
        int(time_ns[0]),
        int(time_ns[-1]),
    )


def stated(*paths: tuple[str, Ephemeris]) -> OperatorEphemerides:
    """Ephemerides of the object, each later one created an hour after the one before."""
    return OperatorEphemerides(
        np.full(len(paths), NUMBER),
        BEGIN_NS + np.arange(len(paths)) * HOUR_NS,
        tuple(f"e{n}" for n in range(len(paths))),
        tuple(path for _, path in paths),
        tuple(source for source, _ in paths),
    )


def used(known: OperatorEphemerides, hour: float, tracks: Tracks = NO_TRACK) -> tuple[str | None, str]:
    """The ephemeris that an assessment takes at this hour, and why."""
    found = BestStates.of(np.array([NUMBER]), np.array([BEGIN_NS + round(hour * HOUR_NS)]), shell(), tracks, known)
    return found.ephemeris_id[0], str(found.choice[0])


@pytest.mark.parametrize("below", [OPERATOR_EPHEMERIS, REFINED_EPHEMERIS])
def test_a_newer_ephemeris_without_covariance_leaves_a_known_one_in_use_on_the_same_path(below: str) -> None:
    known = (below, ephemeris(until_h=8)), (ASSUMED_EPHEMERIS, ephemeris(off_km=0.1, from_h=2))
    if below == REFINED_EPHEMERIS:
        found = stated(known[0]).and_paths(stated(known[1]))
        older, newer = "e0", "e0"
    else:
        found, (older, newer) = OperatorEphemerides.none().and_paths(stated(*known)), ("e0", "e1")
    assert used(found, 1) == (older, "")
    assert used(found, 5) == (older, NEWER_WITHOUT_COVARIANCE)
    assert used(found, 9) == (newer, ""), "beyond the span of the one with a covariance"
    at_five = found.covering(np.array([NUMBER]), np.array([BEGIN_NS + 5 * HOUR_NS]))[0]
    assert found.source[at_five] == below
    assert found.created_ns[at_five] == found.created_ns[found.source.index(ASSUMED_EPHEMERIS)]


@pytest.mark.parametrize("change", [{"off_km": 0.4}, {"dv_m_s": 0.1}])
def test_a_newer_ephemeris_on_another_path_counts_and_the_missing_covariance_is_said(change: Any) -> None:
    pair = stated((OPERATOR_EPHEMERIS, ephemeris()), (ASSUMED_EPHEMERIS, ephemeris(sigma_km=2.0, **change)))
    assert used(OperatorEphemerides.none().and_paths(pair), 1) == ("e1", EARLIER_DEPARTS)


def test_a_newer_ephemeris_with_a_covariance_counts_whatever_an_earlier_one_states() -> None:
    pair = stated((OPERATOR_EPHEMERIS, ephemeris()), (OPERATOR_EPHEMERIS, ephemeris(sigma_km=2.0)))
    assert used(OperatorEphemerides.none().and_paths(pair), 1) == ("e1", "")


@pytest.mark.parametrize("source", [OPERATOR_EPHEMERIS, ASSUMED_EPHEMERIS])
def test_a_track_that_lacks_the_planned_manoeuvre_gives_way_to_the_ephemeris(source: str) -> None:
    planned = stated((source, ephemeris(sigma_km=1.0, dv_m_s=2.0)))
    assert used(planned, 1, track()) == (None, LESS_CERTAIN), "before the burn the track is known better"
    assert used(planned, 10, track()) == ("e0", LEAVES_TRACK)
    assert used(planned, 10, track(off_km=30.0))[0] is None, "the object is not where its operator says, now"


def test_our_own_ephemeris_never_stands_against_the_track_for_a_manoeuvre() -> None:
    own = stated((REFINED_EPHEMERIS, ephemeris(sigma_km=1.0, dv_m_s=2.0)))
    assert used(own, 10, track()) == (None, ""), "it is no plan, but another estimate"


def test_an_assessment_names_the_choice_and_says_it_in_words() -> None:
    pair = stated((OPERATOR_EPHEMERIS, ephemeris()), (ASSUMED_EPHEMERIS, ephemeris(off_km=0.1)))
    candidate = {"event_id": ["e"], "norad_id_1": [NUMBER], "norad_id_2": [OTHER], "tca_time_ns": [BEGIN_NS + HOUR_NS]}
    known = OperatorEphemerides.none().and_paths(pair)
    (found,) = assess_candidates(
        pa.table(candidate), shell(), NO_TRACK, known, Volume.sphere(5.0), ObjectSizes()
    ).to_pylist()
    assert f"{NEWER_WITHOUT_COVARIANCE}_1" in found["risk_flags"].split(",")
    assert (why_state(found, 1), why_state(found, 2)) == (CHOICES[NEWER_WITHOUT_COVARIANCE], "")
    assert known.covering(np.array([OTHER]), np.array([BEGIN_NS]))[0] == NONE

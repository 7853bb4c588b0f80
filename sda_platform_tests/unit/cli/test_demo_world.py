"""What the demo's sensors have to see."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from sda_platform.cli.platform.simulated_world import continued_world, made_ahead, observed_world
from sda_platform.orbits.frames import site_is_dark
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform.simulation.world import SimulatedSegment

MINUTE_NS = 60 * 10**9
_POSITION = ("x_m", "y_m", "z_m")


def test_each_kind_of_sensor_reports_whatever_is_of_interest__DP3_F4() -> None:
    segments = observed_world("nominal", start_ns=REFERENCE_TIME_NS, duration_s=20.0, seed=1, objects=[])
    assert {segment.feed for segment in segments} == {"radar", "optical", "isl"}


def test_stretches_of_the_demo_show_one_world_and_keep_their_observers() -> None:
    """Each used to begin a world of its own: every object jumped, and was suspected of a manoeuvre."""
    wanted = iter([[25544, 43477], [43477], [], []])
    stretch_ns, shown = 30 * 10**9, []
    world = continued_world(
        "nominal", from_ns=REFERENCE_TIME_NS, truth_from_ns=REFERENCE_TIME_NS, now_ns=lambda: 0, minutes=0.5, seed=7,
        objects=lambda before: [*dict.fromkeys([*before, *next(wanted)])], scheduled=tuple,
    )  # fmt: skip
    for segment in world:
        if segment.available_time_ns > REFERENCE_TIME_NS + 3 * stretch_ns:
            break
        shown.append(segment.truth)
    whole = observed_world(
        "nominal", start_ns=REFERENCE_TIME_NS, duration_s=90.0, seed=7, objects=[25544, 43477],
        truth_from_ns=REFERENCE_TIME_NS,
    )  # fmt: skip
    path = states_of(pa.concat_tables(segment.truth for segment in whole))
    found = states_of(pa.concat_tables(shown))
    beacons = [key for key in found if key[0] == 25544]
    assert {(time_ns - REFERENCE_TIME_NS) // stretch_ns for _, time_ns in beacons} >= {0, 1, 2}
    common = found.keys() & path.keys()
    assert len(common) > 50
    assert max(np.linalg.norm(found[key] - path[key]) for key in common) < 1e-3, "metres"


def states_of(truth: pa.Table) -> dict[tuple[int, int], npt.NDArray[np.float64]]:
    """True positions, m, by object and time."""
    columns = [truth.column(name).to_pylist() for name in ("norad_id", "true_time_ns", *_POSITION)]
    return {(row[0], row[1]): np.array(row[2:]) for row in zip(*columns, strict=True)}


def test_it_is_night_over_some_telescope_at_any_time_of_the_year() -> None:
    time_ns = REFERENCE_TIME_NS + np.arange(0, 366 * 24 * 60, 20) * MINUTE_NS
    telescopes = [sensor for sensor in sensor_registry().values() if sensor.kind == "optical"]
    dark = [site_is_dark(t.latitude_deg, t.longitude_deg, time_ns) for t in telescopes]
    assert np.any(dark, axis=0).all()


def test_segments_that_are_made_ahead_come_in_order_and_their_error_too() -> None:
    def world() -> Iterator[SimulatedSegment]:
        yield from observed_world("nominal", start_ns=REFERENCE_TIME_NS, duration_s=20.0, seed=1, objects=[])
        raise ValueError("the world ends")

    plain = list(observed_world("nominal", start_ns=REFERENCE_TIME_NS, duration_s=20.0, seed=1, objects=[]))
    ahead = made_ahead(world(), 2)
    assert [next(ahead).meta.sha256 for _ in plain] == [segment.meta.sha256 for segment in plain]
    with pytest.raises(ValueError, match="the world ends"):
        next(ahead)

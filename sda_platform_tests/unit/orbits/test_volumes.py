"""Screening volumes: what is inside, which regime an orbit is of, and what a flat box leaves of a sphere's events."""

import numpy as np
import pytest

from sda_platform.orbits.screening.encounter import relative_states
from sda_platform.orbits.screening.search import screen
from sda_platform.orbits.screening.volumes import REGIMES, Volume, by_volume, regimes, screen_volume
from sda_platform_tests.unit.orbits.scenes import catalogue

HOUR_NS = 3_600_000_000_000
BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))
BOX = Volume("box", 0.5, 28.0, 29.0)
ELLIPSOID = Volume("ellipsoid", 0.5, 28.0, 29.0)


def test_a_box_holds_its_corners_and_an_ellipsoid_does_not() -> None:
    places = np.array([[0.5, 28, 29], [-0.5, 0, 0], [0.51, 0, 0], [0, 28.1, 0], [0.2, -14, 14]])
    assert BOX.holds(places).tolist() == [True, True, False, False, True]
    assert ELLIPSOID.holds(places).tolist() == [False, True, False, False, True]
    assert BOX.circumscribed_km == pytest.approx(np.linalg.norm([0.5, 28, 29]))
    assert ELLIPSOID.circumscribed_km == 29.0
    assert Volume.sphere(5.0).circumscribed_km == 5.0


@pytest.mark.parametrize("axes", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, float("nan"), 1.0), (1.0, 1.0, np.inf)])
def test_half_axes_are_positive_numbers(axes: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="half-axes must be positive"):
        Volume("box", *axes)


@pytest.mark.parametrize(
    ("norad_id", "regime"),
    [
        (25544, "LEO1"),  # the space station
        (33591, "LEO3"),  # NOAA 19
        (22195, "MEO"),  # LAGEOS 2
        (32711, "MEO"),  # a navigation satellite
        (41866, "GEO"),  # GOES 16
    ],
)
def test_known_satellites_are_in_their_regime(norad_id: int, regime: str) -> None:
    (row,) = np.flatnonzero(catalogue().elements.norad_id == norad_id)
    assert regimes(catalogue().elements)[row] == regime


def test_every_orbit_of_the_catalogue_is_of_one_regime_and_every_regime_occurs() -> None:
    assert set(regimes(catalogue().elements).tolist()) == set(REGIMES)
    volumes = dict.fromkeys(REGIMES, BOX)
    rows = [row for _, part in by_volume(catalogue().elements, np.arange(len(catalogue())), volumes) for row in part]
    assert sorted(rows) == list(range(len(catalogue())))


@pytest.mark.parametrize("volume", [Volume("box", 20.0, 28.0, 29.0), Volume("ellipsoid", 20.0, 28.0, 29.0)])
def test_what_a_volume_keeps_of_its_sphere_is_inside_it_at_closest_approach(volume: Volume) -> None:
    rng = np.random.default_rng(2)
    shell = np.flatnonzero(regimes(catalogue().elements) == "LEO2")
    mine, others = rng.choice(shell, 20, replace=False), rng.choice(shell, 1500, replace=False)
    end_ns = BEGIN_NS + 2 * HOUR_NS
    sphere = screen(catalogue(), mine, others, BEGIN_NS, end_ns, volume.circumscribed_km).events
    inside = np.zeros(len(sphere), dtype=bool)
    for k in range(len(sphere)):
        for first, second in ((sphere.lo[k], sphere.hi[k]), (sphere.hi[k], sphere.lo[k])):
            if first in mine:
                states = [catalogue().at([n], sphere.tca_time_ns[k])[1:] for n in (first, second)]
                inside[k] |= bool(volume.holds(relative_states(*states[0], *states[1]).position_rtn_km)[0])
    kept = screen_volume(catalogue(), mine, others, BEGIN_NS, end_ns, volume).events
    assert len(sphere) > len(kept) > 3
    assert kept.tca_time_ns.tolist() == sphere.tca_time_ns[inside].tolist()
    assert kept.lo.tolist() == sphere.lo[inside].tolist()

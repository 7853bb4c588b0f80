"""A plan's effect on one satellite's risk: the path after a burn, the events before and after, and the least burn."""

import numpy as np
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.planned_trajectory import Burn, burned, planned, unchanged
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.whatif import Encounter, Scene, compared, least_burn
from sda_platform.orbits.covariance import teme_to_rtn
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.scenes import catalogue

DAY_NS = parse_iso_ns("2024-11-01T00:00:00Z")
HOUR_NS = 3600 * 10**9
PRIMARY, OTHER = 20_580, 99_001
MEETING_NS = DAY_NS + 10 * HOUR_NS


def primary(scale: float = 1.0) -> Propagator:
    elements = catalogue().elements
    return Propagator(elements.take(np.flatnonzero(elements.norad_id == PRIMARY)), np.full((1, 3), scale))


@pytest.fixture(scope="module")
def scene() -> Scene:
    """The primary, and one object that meets it head-on, 0.3 km above."""
    _, r, v = primary().at([0], MEETING_NS)
    fitted = mean_elements(r * (1 + 0.3 / np.linalg.norm(r)), -v, MEETING_NS)
    columns = {name: getattr(fitted, name) for name in ElementSets.__dataclass_fields__}
    other = ElementSets.from_columns({**columns, "norad_id": np.array([OTHER])})
    known = Catalogue(Propagator(ElementSets.stack([primary().elements, other])), ("HST", "ONCOMING"))
    return Scene(known, primary(), DAY_NS, DAY_NS + 12 * HOUR_NS, 5.0, 10.0, ObjectSizes({OTHER: 5.0}))


def test_after_a_burn_along_the_track_the_lead_grows_by_three_times_its_size_a_second() -> None:
    times = DAY_NS + np.arange(6, 60, 6) * HOUR_NS
    path = burned(primary(), [Burn(DAY_NS + HOUR_NS, (0.0, 0.1, 0.0))]).at(times)[0]
    moved_km = np.linalg.norm(path - unchanged(primary()).at(times)[0], axis=1)
    np.testing.assert_allclose(moved_km, 3e-4 * (times - DAY_NS - HOUR_NS) / 1e9, atol=1.0, rtol=0.05)
    nothing = burned(primary(), [Burn(DAY_NS + HOUR_NS, (0.0, 0.0, 0.0))]).at(times)[0]
    assert np.linalg.norm(nothing - unchanged(primary()).at(times)[0], axis=1).max() < 0.2


def test_a_burn_and_the_ephemeris_of_its_path_have_the_same_events(scene: Scene) -> None:
    before = scene.encounters(unchanged(scene.primary))
    assert [round(each.miss_km, 2) for each in before if abs(each.tca_ns - MEETING_NS) < 10**9] == [0.3]
    path = burned(scene.primary, [Burn(DAY_NS + 2 * HOUR_NS, (0.0, 0.01, 0.0))])
    times = np.arange(DAY_NS, DAY_NS + 12 * HOUR_NS + 1, 60 * 10**9)
    r, v, _ = path.at(times)
    ephemeris = Ephemeris(
        times, np.hstack([r, v]), np.empty(0, np.int64), np.empty((0, 6, 6)), int(times[0]), int(times[-1])
    )
    by_burn, by_ephemeris = (scene.encounters(each) for each in (path, planned(ephemeris, scene.primary)))
    assert len(by_burn) == len(by_ephemeris) > 0
    for one, other in zip(by_burn, by_ephemeris, strict=True):
        assert abs(one.tca_ns - other.tca_ns) < 10**7
        assert one.miss_km == pytest.approx(other.miss_km, abs=0.01)


def test_the_least_burn_brings_every_event_to_the_goal_and_a_smaller_one_does_not(scene: Scene) -> None:
    before = scene.encounters(unchanged(scene.primary))
    goal = max(each.probability for each in before) / 30
    found = least_burn(scene, before, (DAY_NS, DAY_NS + 3 * HOUR_NS), goal, 1.0)
    assert found is not None and 0 < found.dv_m_s < 1.0
    assert max((each.probability for each in found.after), default=0.0) <= goal
    smaller = Burn(found.burn.time_ns, (0.0, 0.8 * found.burn.dv_rtn_m_s[1], 0.0))
    after = scene.encounters(burned(scene.primary, [smaller]))
    assert max(each.probability for each in after) > goal
    assert least_burn(scene, before, (DAY_NS, DAY_NS + HOUR_NS), goal, 1e-3) is None
    least = least_burn(scene, before, (DAY_NS, DAY_NS + HOUR_NS), 1.0, 1e-5)
    assert least is not None and least.dv_m_s <= 1e-5, "never above the largest burn"


def test_the_primarys_covariance_has_the_error_scale_of_its_history() -> None:
    times = DAY_NS + np.arange(3) * 10 * HOUR_NS
    known, plain = (unchanged(primary(scale)).at(times)[2] for scale in (3.0, 1.0))
    r, v = primary().at(np.zeros(3, np.int64), times)[1:]
    expected = element_covariance_rtn(primary(3.0), np.zeros(3, np.int64), times, r, v)
    np.testing.assert_allclose(teme_to_rtn(known, r, v), expected, rtol=1e-6, atol=1e-9)
    assert (np.einsum("nii->ni", known) > np.einsum("nii->ni", plain)).all()


def test_encounters_are_paired_by_secondary_and_time() -> None:
    one, moved, new = (Encounter(row, DAY_NS + s * 10**9, 1.0, 1e-6) for row, s in ((1, 0), (1, 30), (2, 5)))
    again = Encounter(1, DAY_NS + 7200 * 10**9, 1.0, 1e-6)
    pairs = [(o.before, o.after) for o in compared([one, again], [moved, new])]
    assert pairs == [(one, moved), (None, new), (again, None)]

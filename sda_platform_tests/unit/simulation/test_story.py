"""The story of the demo: what happens is what its chapters say."""

import numpy as np
import pytest

from sda_platform.cli.platform.simulated_world import continued_world
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.risk.probability import assess
from sda_platform.simulation.reference import REFERENCE_TIME_NS, reference_catalogue
from sda_platform.simulation.scenarios import Incidents, with_manoeuvre, with_newcomers
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.story import FRAGMENT, SATELLITE, SILENT_RADAR, Story
from sda_platform.simulation.world import SimulatedSegment

MINUTE_NS = 60_000_000_000
STORY = Story(REFERENCE_TIME_NS, REFERENCE_TIME_NS, seed=7, catalogue_error_s=0.05)


@pytest.fixture(scope="module")
def incidents() -> Incidents:
    return STORY.incidents


def sky_of(incidents: Incidents, *, with_burn: bool) -> Sky:
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    sky = Sky.of_catalogue(
        table, objects=[SATELLITE], seed=7, catalogue_error_s=0.05, start_time_ns=REFERENCE_TIME_NS
    )  # fmt: skip
    for burn in incidents.manoeuvres if with_burn else ():
        sky = with_manoeuvre(sky, burn)
    return with_newcomers(sky, incidents.newcomers, 7)


@pytest.mark.parametrize(("with_burn", "least_m", "most_m"), [(False, 10, 20), (True, 2_000, 50_000)])
def test_the_fragment_meets_the_satellite_unless_it_manoeuvres(
    incidents: Incidents, with_burn: bool, least_m: float, most_m: float
) -> None:
    sky = sky_of(incidents, with_burn=with_burn)
    times_ns = STORY.encounter_ns + np.arange(-5_000, 5_001, 50) * 1_000_000
    satellite, fragment = len(sky) - 2, len(sky) - 1
    _, r1, _ = sky.states(np.full(len(times_ns), satellite), times_ns)
    _, r2, _ = sky.states(np.full(len(times_ns), fragment), times_ns)
    assert least_m < 1e3 * np.linalg.norm(r1 - r2, axis=1).min() < most_m


def test_the_published_set_predicts_the_encounter(incidents: Incidents) -> None:
    (newcomer,) = incidents.newcomers
    assert newcomer.element_set.epoch_time_ns == newcomer.catalogued_ns == STORY.at(3)
    sky = sky_of(incidents, with_burn=False)
    at_encounter = np.full(2, STORY.encounter_ns)
    _, predicted, _ = sky.propagator.at(np.array([0, 1]), at_encounter)
    assert np.linalg.norm(predicted[0] - predicted[1]) < 2.0, "km"


def test_the_other_centre_states_the_same_encounter_and_a_small_probability(incidents: Incidents) -> None:
    (arrival,) = incidents.arrivals
    message = read_cdm(arrival.data)
    assert [each.fields["OBJECT_DESIGNATOR"] for each in message.objects] == [str(SATELLITE), str(FRAGMENT)]
    assert message.tca_time_ns == STORY.encounter_ns
    first, second = message.objects
    risk = assess(
        [second.position_km - first.position_km],
        [second.velocity_km_s - first.velocity_km_s],
        [2 * 0.1**2 * np.eye(3)],
        10.0,
    )
    assert risk.probability[0] < 1e-6
    assert message.miss_distance_m > 500


def test_the_fragment_is_observed_and_published_from_its_chapter_on_and_the_radar_is_silent_in_its() -> None:
    """Across stretches: the radar's backlog arrives when its link is up again, after the next stretch has begun."""
    story = Story(
        REFERENCE_TIME_NS,
        REFERENCE_TIME_NS,
        7,
        0.05,
        catalogued_min=0.25,
        message_min=0.4,
        silent_min=(0.35, 0.75),
        burn_min=0.9,
    )
    shown: list[SimulatedSegment] = []
    world = continued_world(
        "nominal", from_ns=REFERENCE_TIME_NS, truth_from_ns=REFERENCE_TIME_NS, now_ns=lambda: 0, minutes=0.5, seed=7,
        objects=lambda _: [SATELLITE, 25544, 43477, 20580, 27424, 33591, 38771], scheduled=tuple,
        incidents=story.incidents,
    )  # fmt: skip
    for segment in world:
        if segment.available_time_ns > story.at(1.4):
            break
        shown.append(segment)
    arrived = [segment.available_time_ns for segment in shown]
    assert arrived == sorted(arrived)
    (published,) = (segment for segment in shown if segment.feed == "elements")
    assert published.available_time_ns == story.at(0.25)
    assert [segment.available_time_ns for segment in shown if segment.feed == "messages"] == [story.at(0.4)]
    rows = [row for segment in shown for row in segment.truth.to_pylist()]
    assert min((row["true_time_ns"] for row in rows if row["norad_id"] == FRAGMENT), default=2**62) >= story.at(0.25)
    begin_ns, end_ns = (story.at(minutes) for minutes in story.silent_min)
    of_radar = [row for row in rows if row["source_id"] == SILENT_RADAR]
    assert not any(begin_ns <= row["received_time_ns"] < end_ns for row in of_radar)


def test_the_chapters_are_in_order_and_each_incident_has_one(incidents: Incidents) -> None:
    times = [time_ns for time_ns, _ in STORY.chapters]
    assert times == sorted(times)
    happens = {incidents.newcomers[0].catalogued_ns, incidents.arrivals[0].available_time_ns}
    happens |= {incidents.outages[0].from_ns, incidents.outages[0].to_ns, incidents.manoeuvres[0].time_ns}
    assert happens == set(times)

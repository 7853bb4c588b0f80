"""Simulated sensors observe what they are scheduled for, whatever their survey takes in, and nothing twice."""

from dataclasses import replace
from functools import cache

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.sensing.passes import find_passes
from sda_platform.simulation.observers import Observers, ObservingPlan
from sda_platform.simulation.simulated_observations import SimulatedObservations
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.visibility import ScheduledTime
from sda_platform_tests.support.segments import START_NS, catalogue_of

SECOND_NS = 10**9
OBJECTS = (20580, 25544, 27386, 39084, 43013)


@cache
def sky() -> Sky:
    table = decode_element_sets(catalogue_of(OBJECTS), segment_format="omm-csv")
    return Sky.of_catalogue(table, objects=OBJECTS, seed=1, catalogue_error_s=0.0, start_time_ns=START_NS)


@cache
def booking() -> ScheduledTime:
    """A minute around the culmination of a pass."""
    radars = ObservingPlan().sensors.of_kind("radar")
    found = find_passes(sky().propagator, radars, START_NS, START_NS + 12 * 3600 * SECOND_NS, least_s=200.0)
    middle_ns = int(found.tca_ns[0])
    place = radars[found.sensor[0]].source_id, int(sky().norad_id[found.index[0]])
    return ScheduledTime(*place, middle_ns - 30 * SECOND_NS, middle_ns + 30 * SECOND_NS)


def radar(survey: int, *scheduled: ScheduledTime) -> SimulatedObservations:
    plan = ObservingPlan(radar_capacity=survey, scheduled=scheduled)
    return Observers(sky(), plan, 1).radar(booking().start_time_ns - 60 * SECOND_NS, booking().end_time_ns)


def test_a_scheduled_object_is_observed_in_its_time_and_no_other__PW27() -> None:
    assert len(radar(0)) == 0
    found = radar(0, booking())
    assert 58 <= len(found) <= 61
    assert set(found.source_id.tolist()) == {booking().source_id}
    assert set(found.norad_id.tolist()) == {booking().norad_id}
    times = found.true_time_ns
    assert times.min() >= booking().start_time_ns and times.max() < booking().end_time_ns


def test_what_is_scheduled_and_surveyed_is_observed_once() -> None:
    surveyed, both = radar(100), radar(100, booking())
    assert both.observation_id == surveyed.observation_id
    assert len(surveyed) > 60, "the survey takes in the object before its time, too"


def test_a_schedule_for_others_changes_nothing() -> None:
    elsewhere, unknown = replace(booking(), source_id="radar-none"), replace(booking(), norad_id=1)
    before = replace(booking(), start_time_ns=START_NS - 2, end_time_ns=START_NS - 1)
    assert len(radar(0, elsewhere, unknown, before)) == 0

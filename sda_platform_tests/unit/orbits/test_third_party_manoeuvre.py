"""A third party turns a miss of 9 km into 60 m five hours before it: observers in orbit find the manoeuvre.

A sample of `benchmarks/constellation_manoeuvre.py`, with a few observers around the third party.
"""

import numpy as np
import pyarrow.compute as pc

from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.sky import Sky
from sda_platform_tests.support.third_party import (
    BEFORE_TCA_NS,
    START_NS,
    approaches,
    burn_to,
    catalogue_table,
    play,
    propagator_of,
)

FLEET, THIRD = 41774, 61063
OBSERVERS = 24


def test_a_manoeuvre_of_a_third_party_is_found_within_ten_minutes_of_its_first_observation() -> None:
    table = catalogue_table()
    pair_table = table.filter(pc.field("norad_id").isin([FLEET, THIRD]))
    begin_ns = START_NS + 20 * 60 * 10**9 + BEFORE_TCA_NS
    (approach,) = approaches(pair_table, propagator_of(pair_table), begin_ns, begin_ns + 6 * 3600 * 10**9)
    sky = Sky.of_catalogue(table, objects=[FLEET, THIRD], seed=1, catalogue_error_s=0.05, start_time_ns=START_NS)
    burn, before_km, after_km = burn_to(sky, THIRD, approach.tca_ns - BEFORE_TCA_NS, approach.tca_ns, 3.0)
    assert 8.5 < before_km < 9.5
    assert 0.055 < after_km < 0.065
    assert np.linalg.norm(burn.dv_rtn_m_s) < 3.01

    stars = table.filter(pc.starts_with(table["object_name"], "STARLINK"))
    places = propagator_of(stars).grid(np.array([burn.time_ns]))[1][:, 0]
    third = propagator_of(pair_table).grid(np.array([burn.time_ns]))[1][1, 0]
    order = np.argsort(np.nan_to_num(np.linalg.norm(places - third, axis=1), nan=1e9))
    near = stars["norad_id"].to_numpy()[order[: OBSERVERS + 1]].tolist()
    objects = [FLEET, THIRD, *(number for number in near if number != THIRD)]
    seen_by = Constellation(rate_per_s=1, half_field_deg=60.0, reach_km=2500.0)
    known = table.filter(pc.field("norad_id").isin(objects))
    found = play(known, [FLEET, THIRD], approach.tca_ns, burn, objects, seen_by, before_s=900.0, after_s=600.0, seed=1)
    assert found.manoeuvre_s is not None and found.manoeuvre_s <= 600.0, found
    assert 0.0 < found.miss_km < before_km - 1.0, "the event is assessed with the track from then on"
    assert found.observations <= 20, "it is not observed more often than a catalogue of thousands would be"

"""A third party turns a miss of 9 km into 60 m five hours before it: an alert follows within five minutes.

A sample of `benchmarks/constellation_manoeuvre.py`. With seed 2 the observers of one window must show the manoeuvre: no
other window comes in time. With 10 m/s, two of them see the object outside of its gate.
"""

import numpy as np
import pyarrow.compute as pc

from sda_platform.simulation.sky import Sky
from sda_platform_tests.support.third_party import (
    BEFORE_TCA_NS,
    ERROR_S,
    HOUR_NS,
    START_NS,
    Play,
    approaches,
    around,
    burn_to,
    catalogue_table,
    propagator_of,
)

FLEET, THIRD = 41774, 61063
OBSERVERS, FIVE_MINUTES_S = 24, 300.0


def test_a_manoeuvre_of_a_third_party_is_alerted_within_five_minutes_of_its_first_observation() -> None:
    size_m_s, seed = 10.0, 2
    table = catalogue_table()
    both = table.filter(pc.field("norad_id").isin([FLEET, THIRD]))
    begin_ns = START_NS + HOUR_NS // 3 + BEFORE_TCA_NS
    (approach,) = approaches(both, propagator_of(both), begin_ns, begin_ns + 6 * HOUR_NS)
    burn_ns = approach.tca_ns - BEFORE_TCA_NS
    sky = Sky.of_catalogue(table, objects=[FLEET, THIRD], seed=seed, catalogue_error_s=ERROR_S, start_time_ns=START_NS)
    burn, before_km, after_km = burn_to(sky, THIRD, burn_ns, approach.tca_ns, size_m_s, is_along_normal=False)
    assert 8.5 < before_km < 9.5 and 0.055 < after_km < 0.065
    assert np.linalg.norm(burn.dv_rtn_m_s) < size_m_s + 0.01

    objects = around(table, [FLEET, THIRD], burn_ns, OBSERVERS)
    found = Play(table, [FLEET, THIRD], approach.tca_ns, burn_ns, [burn], objects, seed=seed).run(
        before_s=900.0, after_s=320.0
    )
    assert found.suspected_s is not None and found.candidate_s is not None and found.yellow_s is not None, found
    assert found.suspected_s <= found.candidate_s <= found.yellow_s <= FIVE_MINUTES_S, found
    assert found.suspected_others == 0 and found.other_alerts <= 1, found
    assert found.observations <= 10, "it is not observed more often than a catalogue of thousands would be"

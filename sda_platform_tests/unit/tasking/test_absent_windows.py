"""Why a request has no window: decay, a set that is not usable, no set, the end of the search, or no sensor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sda_platform.catalog.orbits import Catalogue
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.orbits.propagation import Propagator
from sda_platform.tasking.absent_windows import with_causes

FLOCK = Path(__file__).parents[2] / "data" / "field" / "041-decay-within-window-flock.tle"
START_NS = parse_epoch_ns("2015-08-07T06:00:00")
HOUR_NS = 3_600 * 10**9


def catalogue(**changed: Any) -> Catalogue:
    """The flock's set of field case 041, which SGP4 refuses from 2015-08-10T21:42 on."""
    elements = read_elements(FLOCK, START_NS, START_NS + 120 * HOUR_NS).elements
    for name, value in changed.items():
        getattr(elements, name)[:] = value
    return Catalogue(Propagator(elements), ("FLOCK",) * len(elements))


def cause(known: Catalogue | None, deadline_h: float, horizon_h: float, norad_id: int | None = None) -> tuple[Any, Any]:
    number = norad_id or int(catalogue().norad_id[0])
    row = {
        "norad_id": number, "unserved_reason": "no_window", "deadline_time_ns": START_NS + round(deadline_h * HOUR_NS),
    }  # fmt: skip
    (found,) = with_causes([row], known, START_NS, START_NS + round(horizon_h * HOUR_NS))
    return found["unserved_reason"], found.get("unserved_detail")


def test_a_decayed_object_is_named_with_the_instant() -> None:
    reason, detail = cause(catalogue(), 110.0, 120.0)
    assert reason == "decayed"
    assert detail.startswith("decay: its set of 2015-08-0")
    assert "is usable until 2015-08-10T21:4" in detail
    assert "mean eccentricity" in detail, "the words of SGP4"


def test_before_the_end_of_the_set_the_search_or_the_sensors_are_the_cause() -> None:
    assert cause(catalogue(), 20.0, 120.0) == ("no_window", "no sensor can see it in time")
    reason, detail = cause(catalogue(), 30.0, 24.0)
    assert reason == "beyond_horizon"
    assert detail == "no sensor can see it until 2015-08-08T06:00Z, and later passes are not searched yet"


def test_an_object_without_a_set_and_a_set_that_is_no_orbit_are_told_apart() -> None:
    assert cause(catalogue(), 20.0, 24.0, norad_id=99) == ("no_elements", "the catalogue has no element set of it")
    reason, detail = cause(catalogue(bstar_per_earth_radius=np.nan), 20.0, 24.0)
    assert reason == "set_unusable"
    assert "is usable until" in detail


@pytest.mark.parametrize("reason", ["no_antenna_time", "sensor_out", None])
def test_other_rows_stay_as_they_are(reason: str | None) -> None:
    row = {"norad_id": 1, "unserved_reason": reason, "deadline_time_ns": START_NS}
    assert with_causes([row], catalogue(), START_NS, START_NS + HOUR_NS) == [row]
    assert cause(None, 1.0, 1.0) == ("no_window", None), "a commit of an earlier version did not read the catalogue"

"""Observations of satellites whose time tags are biased."""

from functools import cache

import numpy as np
import pyarrow as pa

from sda_platform.fusion.watermarks import WINDOWS_IN_TERM, term_of
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.scenes import START_NS, catalogue
from sda_platform_tests.support.windows import WINDOW_NS, watched_beacons

TERM_NS = WINDOWS_IN_TERM * WINDOW_NS
TERM = term_of(START_NS, WINDOW_NS)


@cache
def observed(ahead_ms: float) -> list[pa.Table]:
    """A window in each of four terms."""
    return watched_beacons(30, 4, ahead_ms, kind="radar", spacing=WINDOWS_IN_TERM)


@cache
def satellites() -> Propagator:
    numbers = [int(name[4:]) for name in set(observed(0.0)[0]["source_id"].to_pylist()) if name.startswith("isl-")]
    return catalogue().take(np.flatnonzero(np.isin(catalogue().elements.norad_id, numbers)))

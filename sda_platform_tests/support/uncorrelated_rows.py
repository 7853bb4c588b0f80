"""Simulated observations of unknown objects as rows of `observations`."""

from functools import cache

import pyarrow as pa

from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform_tests.support.windows import tracked_windows

OBJECTS, WINDOWS = 6, 4


@cache
def observations() -> pa.Table:
    return pa.concat_tables(tracked_windows(OBJECTS, WINDOWS)[0]).select(OBSERVATION_COLUMNS)

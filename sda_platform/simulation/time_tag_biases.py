"""Time-tag biases of simulated sources, within the bound of their clock quality.

Bounds: GPS 1 us; NTP 10 ms and 1 ms per minute since synchronisation; on board 100 us per second since. A source's
share of its bound is constant, so that its observations share their error, as real ones do.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.simulation.randomness import keyed_uniform

_SYNC_PERIOD_S: Final = {"gps_locked": 1.0, "ntp_synced": 1024.0, "onboard_drift": 600.0}


def stamped_times(seed: int, quality: str, source_id: Sequence[str], time_ns: IntArray) -> tuple[IntArray, FloatArray]:
    """Time stamps (n,) of the sources' clocks at true `time_ns` (n,), ns, and the seconds (n,) since each
    synchronisation.
    """
    names, inverse = np.unique(np.asarray(source_id, dtype=np.str_), return_inverse=True)
    share = (2 * keyed_uniform(seed, "clock share", names.tolist()) - 1)[inverse]
    period_ns = int(_SYNC_PERIOD_S[quality] * 1e9)
    phase_ns = (keyed_uniform(seed, "clock phase", names.tolist()) * period_ns).astype(np.int64)[inverse]
    age_s = ((time_ns + phase_ns) % period_ns) / 1e9
    bound_s = {"gps_locked": 1e-6 + 0 * age_s, "ntp_synced": 0.010 + 0.001 * age_s / 60, "onboard_drift": 1e-4 * age_s}
    offset_ns = (share * bound_s[quality] * 1e9).astype(np.int64)
    return time_ns + offset_ns, age_s

"""Objects on a shell of orbits that meet each other."""

import numpy as np

from sda_platform.catalog.orbits import Catalogue
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.scenes import catalogue

BEGIN_NS = int(np.datetime64("2024-11-01", "ns").astype(np.int64))


def shell() -> Catalogue:
    """Three hundred objects of low orbits, and a few that cross them."""
    elements = catalogue().elements
    motion = elements.mean_motion_rev_per_day
    low = np.random.default_rng(8).choice(np.flatnonzero((motion > 14.4) & (motion < 15.0)), 300, replace=False)
    rows = np.unique(np.concatenate([low, np.flatnonzero((elements.eccentricity > 0.6) & (motion > 2))[:20]]))
    return Catalogue(Propagator(elements.take(rows)), ("",) * len(rows))

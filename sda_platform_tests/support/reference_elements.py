"""Real element sets for tests: the shipped catalogue of 2024-11-01, or every so many of it."""

from functools import cache

import numpy as np

from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets
from sda_platform.simulation.reference import reference_catalogue


@cache
def _catalogue() -> ElementSets:
    rows = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    return ElementSets.from_columns(
        arrays(rows, [n for n in ElementSets.__dataclass_fields__ if n in rows.column_names])
    )


def reference_elements(*, every: int) -> ElementSets:
    """One of ``every`` objects, in the order of the catalogue."""
    return _catalogue().take(np.arange(0, len(_catalogue()), every))

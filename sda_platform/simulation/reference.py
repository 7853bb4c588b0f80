"""The real catalogue of every simulated world: CelesTrak's of 2024-11-01 (see data/SOURCES.md)."""

import gzip
from functools import cache
from importlib import resources
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.element_sets import decode_element_sets

REFERENCE_TIME_NS: Final = 1_730_419_200_000_000_000
"""2024-11-01T00:00:00Z, the catalogue's nominal time."""


def reference_catalogue() -> bytes:
    """An `omm-csv` segment of 26,834 element sets, ids up to 270387."""
    name = "celestrak_on_orbit_2024-11-01.omm.csv.gz"
    packed = resources.files("sda_platform.simulation").joinpath("data", name).read_bytes()
    return gzip.decompress(packed)


@cache
def reference_elements() -> pa.Table:
    """Return the element sets of that segment, decoded."""
    return decode_element_sets(reference_catalogue(), segment_format="omm-csv")


def geostationary_objects(count: int) -> list[int]:
    """Catalogue numbers of about ``count`` geostationary objects, distributed around the belt.

    At any time some telescope observes some of them, while most low orbits are invisible at night and by day.
    """
    table = reference_elements()
    motion, inclination = table["mean_motion_rev_per_day"], table["inclination_deg"]
    stays = pc.and_(pc.greater(motion, 0.99), pc.less(motion, 1.015))
    numbers = table["norad_id"].filter(pc.and_(stays, pc.less(inclination, 0.2)))
    return [int(number) for number in numbers.to_pylist()[:: max(1, len(numbers) // count)]]


def low_objects(count: int) -> list[int]:
    """Catalogue numbers of about ``count`` objects in low orbits, distributed over the catalogue.

    At any time a radar observes some of them within minutes.
    """
    table = reference_elements()
    numbers = table["norad_id"].filter(pc.greater(table["mean_motion_rev_per_day"], 12.0))
    return [int(number) for number in numbers.to_pylist()[:: max(1, len(numbers) // count)]]

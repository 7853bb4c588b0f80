"""The real catalogue that every simulated world starts from: CelesTrak's of 2024-11-01 (see data/SOURCES.md)."""

import gzip
from importlib import resources
from typing import Final

REFERENCE_TIME_NS: Final = 1_730_419_200_000_000_000
"""2024-11-01T00:00:00Z, the instant the catalogue is meant for."""


def reference_catalogue() -> bytes:
    """An `omm-csv` segment of 26,834 element sets, ids up to 270387."""
    name = "celestrak_on_orbit_2024-11-01.omm.csv.gz"
    packed = resources.files("sda_platform.simulation").joinpath("data", name).read_bytes()
    return gzip.decompress(packed)

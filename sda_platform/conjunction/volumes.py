"""The screening volumes of each regime of orbit, from a CSV file: the shipped one or a user's."""

from collections.abc import Sequence
from pathlib import Path

from sda_platform.formats.listings import read_listing
from sda_platform.orbits.screening.volumes import REGIMES, Volume

STANDARD = "standard"
_SHAPES = ("box", "ellipsoid")
_COLUMNS = ("regime", "shape", "radial_km", "in_track_km", "cross_track_km")


def screening_volumes(source: str) -> dict[str, Volume]:
    """Return the volume of each regime from the CSV ``source``, or from the shipped one where it is `STANDARD`.

    A line a regime: its name, `box` or `ellipsoid`, and half-axes in km. Orbits of a regime that has no line are not
    screened as primaries.

    Raises:
        ListingError: the file cannot be read or breaks that form.
    """
    path = Path(__file__).with_name("volumes.csv") if source == STANDARD else Path(source)
    return read_listing(path, _COLUMNS, _volume)


def _volume(fields: Sequence[str]) -> tuple[str, Volume]:
    regime, shape, *axes = fields
    if regime not in REGIMES:
        raise ValueError(f"regime is {regime!r}, must be one of {', '.join(REGIMES)}")
    if shape not in _SHAPES:
        raise ValueError(f"shape is {shape!r}, must be {' or '.join(_SHAPES)}")
    return regime, Volume("box" if shape == "box" else "ellipsoid", *(float(axis) for axis in axes))

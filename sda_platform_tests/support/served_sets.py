"""Element sets that the catalogue service serves."""

from pathlib import Path

from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.unit.serving.catalogues import DAY_NS, EPOCH_NS, row

NOW_NS = EPOCH_NS + 2 * DAY_NS
ISS = row(25544, object_name="ISS (ZARYA)", international_designator="1998-067A", mean_motion_rev_per_day=15.5)
GEO = row(41866, object_name="GOES 16", mean_motion_rev_per_day=1.0027, eccentricity=0.0001, inclination_deg=0.03)
BIG = row(799_500_001, object_name="STARLINK-9", international_designator="2026-001A")


def nothing_submitted(home: Path) -> SubmittedEphemerides:
    return SubmittedEphemerides(lake_at(home / "lake"), str(home / "landing"))

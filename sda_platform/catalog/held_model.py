"""The columns of `held_element_sets`."""

from typing import Final

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import Provenance
from sda_platform.orbits.element_jumps import BAD_FIT, CROSS_TAG, KINDS, UNSETTLED

IMPLAUSIBLE: Final = "implausible orbit"
PLANNED: Final = "planned manoeuvre"
HOLD_REASONS: Final = (IMPLAUSIBLE, PLANNED, *(KINDS[kind] for kind in (UNSETTLED, BAD_FIT, CROSS_TAG)))
"""Why a set is held: by itself, because it assumes a manoeuvre, or because it contradicts the sets before it."""
BORNE_OUT: Final = "borne out"
RELEASED: Final = "released"
"""What became of a held set: sets that arrived later agree with it, or a person has released it."""


class HeldElementSet(Provenance):
    """An element set that is held, or was: it is not merged while it is held."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number of the object for which it counts.")
    object_name: T.StringType = pa.Field(nullable=True, description="Common name by the set.")
    originator: T.StringType = pa.Field(nullable=True, description="Organisation that published the set.")
    source_name: T.StringType = pa.Field(nullable=True, description="Who brought the set to us; null: not recorded.")
    epoch_time_ns: T.LongType = quantity("ns", "Epoch of the elements, Unix time UTC.")
    reason: T.StringType = pa.Field(isin=list(HOLD_REASONS), description="Why it is held.")
    outcome: T.StringType = pa.Field(
        isin=["held", BORNE_OUT, RELEASED], description="Whether it is held, or why it is not any more."
    )
    held_since_ns: T.LongType = quantity("ns", "Mission time of the commit that held it first.")
    changed_time_ns: T.LongType = quantity("ns", "Mission time at which its outcome became what it is.")
    released_by: T.StringType = pa.Field(nullable=True, description="Who released it.")
    compared_epoch_time_ns: T.LongType = quantity("ns", "Epoch of the set that it contradicts.", nullable=True)
    times_usual: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Deviation from that set, times the usual one of the object."
    )
    radial_km: T.DoubleType = quantity("km", "The same deviation, radial.", nullable=True)
    in_track_km: T.DoubleType = quantity("km", "In-track.", nullable=True)
    cross_track_km: T.DoubleType = quantity("km", "Across the plane, at its most.", nullable=True)

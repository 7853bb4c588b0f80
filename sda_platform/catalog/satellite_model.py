"""The columns of `satellite_records` and `satellite_catalog`."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.satcat import OBJECT_TYPES, SIZES, STATUSES
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import LandingColumns, Provenance


class SatelliteFacts(Provenance):
    """What satellite catalogues and decay messages state of an object."""

    object_name: T.StringType = pa.Field(nullable=True, description="Common name.")
    international_designator: T.StringType = pa.Field(nullable=True, description="COSPAR designator: 1998-067A.")
    object_type: T.StringType = pa.Field(nullable=True, isin=list(OBJECT_TYPES), description="Kind of object.")
    operational_status: T.StringType = pa.Field(
        nullable=True, isin=list(STATUSES), description="Operational status by CelesTrak's codes."
    )
    owner: T.StringType = pa.Field(nullable=True, description="Country or organisation that owns it, as a code.")
    launch_time_ns: T.LongType = quantity("ns", "Launch, Unix time UTC; of a day its begin.", nullable=True)
    launch_site: T.StringType = pa.Field(nullable=True, description="Launch site, as a code.")
    decay_time_ns: T.LongType = quantity("ns", "Decay, Unix time UTC; of a day its end.", nullable=True)
    predicted_decay_time_ns: T.LongType = quantity("ns", "Predicted decay, Unix time UTC.", nullable=True)
    prediction_window_min: T.DoubleType = quantity(
        "min", "Uncertainty of the predicted decay, to each side.", nullable=True, ge=0
    )
    reentry_latitude_deg: T.DoubleType = quantity(
        "deg", "Geodetic latitude of the predicted decay, north.", nullable=True, ge=-90, le=90
    )
    reentry_longitude_deg: T.DoubleType = quantity(
        "deg", "Longitude of the predicted decay, east.", nullable=True, ge=-180, le=360
    )
    rcs_m2: T.DoubleType = quantity("m²", "Radar cross-section.", nullable=True, gt=0)
    rcs_size: T.StringType = pa.Field(nullable=True, isin=list(SIZES), description="Class of its cross-section.")


class LandedSatelliteRecord(SatelliteFacts, LandingColumns):
    """Bronze: one row per landed record of a satellite catalogue; one that cannot be used has an error."""

    norad_id: T.LongType = pa.Field(nullable=True, ge=1, description="Catalogue number.")


class Satellite(SatelliteFacts):
    """What is known of each catalogued object: of each fact the newest statement; of decays the edit that decides."""

    norad_id: T.LongType = pa.Field(ge=1, description="Catalogue number.")
    stated_decay_time_ns: T.LongType = quantity("ns", "Decay by sources, whatever edits decide.", nullable=True)
    decay_is_decided: T.BooleanType = pa.Field(description="Whether an edit decides on the decay.")

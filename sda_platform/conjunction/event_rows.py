"""Rows of events: what every close approach has, and alerts."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.markings import MARKS
from sda_platform.lake.correction_log import CorrectionLogModel
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import MarkedRows

STATED_COLUMNS = (
    "norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km", "relative_speed_km_s", "object_name_1",
    "object_name_2", "stated_probability", "stated_by", *MARKS,
)  # fmt: skip
"""What received CDMs state of an encounter, under the names of `conjunction_alerts`."""


class Approach(CorrectionLogModel):
    """One close approach."""

    event_id: T.StringType = pa.Field(description="UUIDv5 of the pair and the time slot of the encounter.")
    norad_id_1: T.LongType = pa.Field(ge=1, description="The protected object; of two alike, the lower number.")
    norad_id_2: T.LongType = pa.Field(ge=1, description="The object that approaches it.")
    tca_time_ns: T.LongType = quantity("ns", "Time of closest approach (TCA), Unix time UTC.")
    miss_distance_km: T.DoubleType = quantity("km", "Distance at TCA.", ge=0)
    relative_speed_km_s: T.DoubleType = quantity("km/s", "Relative speed at TCA.", ge=0, lt=20)


class Alert(Approach, MarkedRows):
    """An alert for subscribers: an event that the alert policy selects, assessed here or stated by a received CDM.

    Columns from ``status`` on are null in entries of a version without a policy. An event that only messages have is
    as they state it, with no probability of ours.
    """

    norad_id_1: T.LongType = pa.Field(
        nullable=True, ge=1, description="The protected object; of two alike, the lower number. Null: by name only."
    )
    norad_id_2: T.LongType = pa.Field(
        nullable=True, ge=1, description="The object that approaches it. Null: by name only."
    )
    relative_speed_km_s: T.DoubleType = quantity("km/s", "Relative speed at TCA.", nullable=True, ge=0, lt=20)

    object_name_1: T.StringType = pa.Field(nullable=True, description="The primary's name.")
    object_name_2: T.StringType = pa.Field(nullable=True, description="The secondary's name.")
    collision_probability: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Our own Pc as assessed; null: only received messages have the event."
    )
    risk: T.StringType = pa.Field(isin=["red", "yellow"], description="The level by the alert policy.")
    track_id_1: T.StringType = pa.Field(nullable=True, description="The newest window of the primary's track, if used.")
    track_id_2: T.StringType = pa.Field(
        nullable=True, description="The newest window of the secondary's track, if used."
    )
    status: T.StringType = pa.Field(
        nullable=True, isin=["open", "closed"], description="open: the TCA is ahead; closed: it has passed."
    )
    outcome: T.StringType = pa.Field(
        nullable=True,
        isin=["passed_red", "passed_yellow"],
        description="Of a closed alert: its level when the TCA passed. Null: it is open.",
    )
    highest_risk: T.StringType = pa.Field(
        nullable=True, isin=["red", "yellow"], description="The highest level that this alert has had since it began."
    )
    rule: T.StringType = pa.Field(
        nullable=True,
        isin=["probability", "dilution", "suspected_manoeuvre", "stated_by_other", "hysteresis"],
        description="The rule of the policy that gives the level.",
    )
    change: T.StringType = pa.Field(
        nullable=True, description="Why this revision was sent: names of changes, comma-separated."
    )
    data_quality: T.StringType = pa.Field(
        nullable=True,
        isin=["element_sets", "mixed", "tracks_or_ephemerides", "received_cdm"],
        description="Origin of the covariances: the model of element-set errors for both objects, for one "
        "(mixed), or for none; received_cdm: only a message has the event.",
    )
    maximum_probability: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Largest Pc over all scalings of the covariance."
    )
    mahalanobis_distance: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="Miss over the combined covariance, sigmas."
    )
    stated_probability: T.DoubleType = pa.Field(
        nullable=True,
        ge=0,
        le=1,
        description="The largest Pc of received messages (each originator's newest): stated, else of their states.",
    )
    stated_by: T.StringType = pa.Field(nullable=True, description="The originator of the message with that Pc.")

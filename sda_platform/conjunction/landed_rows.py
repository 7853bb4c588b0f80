"""Rows that land from outside: received conjunction data messages, and acknowledgements of alerts."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.formats.acknowledgements import ACTIONS
from sda_platform.lake.quantities import number_list, quantity
from sda_platform.lake.table import LandingColumns, Provenance

# Named here again: a table's description must not load the numerics that fill it.
METHODS = ["FOSTER-1992", "HALL-2021", "MONTE-CARLO"]
"""Methods of a probability."""
"""An array of numbers."""


class Message(Provenance, LandingColumns):
    """A received conjunction data message, or a record that is none: what it states, and what is computed from it.

    ``stated_`` columns are the originator's. ``recomputed_probability`` and what belongs to it are computed here, from
    the message's states and covariances. Our own assessment of the encounter is in `conjunction_assessments`.
    """

    originator: T.StringType = pa.Field(nullable=True, description="Organisation that created the message.")
    message_id: T.StringType = pa.Field(nullable=True, description="The originator's id of the message.")
    created_time_ns: T.LongType = quantity("ns", "When it was created, Unix time UTC.", nullable=True)
    object_designator_1: T.StringType = pa.Field(nullable=True, description="OBJECT1 as the message designates it.")
    object_designator_2: T.StringType = pa.Field(nullable=True, description="OBJECT2 as the message designates it.")
    norad_id_1: T.LongType = pa.Field(
        nullable=True, ge=1, description="Catalogue number: the designator, or of it the one that the catalogue has."
    )
    norad_id_2: T.LongType = pa.Field(
        nullable=True, ge=1, description="Catalogue number: the designator, or of it the one that the catalogue has."
    )
    object_name_1: T.StringType = pa.Field(nullable=True, description="OBJECT1's name.")
    object_name_2: T.StringType = pa.Field(nullable=True, description="OBJECT2's name.")
    tca_time_ns: T.LongType = quantity("ns", "Time of closest approach (TCA), Unix time UTC.", nullable=True)
    miss_distance_km: T.DoubleType = quantity("km", "Distance at TCA, as stated.", nullable=True, ge=0)
    relative_speed_km_s: T.DoubleType = quantity("km/s", "Relative speed at TCA, of the states.", nullable=True, ge=0)
    stated_probability: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Pc as the originator states it; null: the message has none."
    )
    stated_method: T.StringType = pa.Field(nullable=True, description="Method of the stated Pc.")
    recomputed_probability: T.DoubleType = pa.Field(
        nullable=True,
        ge=0,
        le=1,
        description="Pc of the message's states and covariances by the best method, computed here.",
    )
    probability_method: T.StringType = pa.Field(nullable=True, isin=METHODS, description="Method of the recomputed Pc.")
    probability_2d: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Pc, two-dimensional (Foster 1992), of the same, valid or not."
    )
    is_2d_valid: T.BooleanType = pa.Field(
        nullable=True, description="Whether the two-dimensional Pc may be used; null: the input lacks what decides it."
    )
    risk_flags: T.StringType = pa.Field(nullable=True, description="Flags and findings by name, comma-separated.")
    maximum_probability: T.DoubleType = pa.Field(
        nullable=True,
        ge=0,
        le=1,
        description="Largest Pc over all scalings of the covariance (dilution), or over all of an object without one.",
    )
    mahalanobis_distance: T.DoubleType = pa.Field(nullable=True, ge=0, description="Miss over the combined covariance.")
    hard_body_radius_m: T.DoubleType = quantity("m", "The combined radius that was used.", nullable=True, gt=0)
    hard_body_radius_source: T.StringType = pa.Field(
        nullable=True, description="Source of the radius, or the default that was assumed."
    )
    risk: T.StringType = pa.Field(
        nullable=True,
        isin=["red", "yellow", "green", "unknown"],
        description="Risk level of the stated Pc, else of the recomputed one; unknown: there is neither.",
    )
    reference_frame_1: T.StringType = pa.Field(nullable=True, description="Frame of OBJECT1's state.")
    reference_frame_2: T.StringType = pa.Field(nullable=True, description="Frame of OBJECT2's state.")
    state_1: T.ArrayType = number_list(6, "OBJECT1's state at TCA in its frame; km, km/s.", nullable=True)
    covariance_1: T.ArrayType = number_list(
        21, "Its 6×6 covariance in its own RTN axes, km and km/s, lower triangle by rows (21 terms).", nullable=True
    )
    state_2: T.ArrayType = number_list(6, "OBJECT2's state at TCA in its frame; km, km/s.", nullable=True)
    covariance_2: T.ArrayType = number_list(
        21, "Its 6×6 covariance in its own RTN axes, km and km/s, lower triangle by rows (21 terms).", nullable=True
    )


class AlertAcknowledgementRow(Provenance, LandingColumns):
    """Bronze: one row per landed action of a person about an alert, for ever; one that cannot be used has an error."""

    alert_id: T.StringType = pa.Field(nullable=True, description="The alert: its event_id.")
    revision: T.LongType = pa.Field(nullable=True, ge=0, description="The revision that the person saw.")
    acknowledged_by: T.StringType = pa.Field(nullable=True, description="Who acknowledged, assigned or commented.")
    comment: T.StringType = pa.Field(nullable=True, description="What that person remarked; may be empty.")
    acknowledged_time_ns: T.LongType = quantity("ns", "Mission time of the action.", nullable=True)
    action: T.StringType = pa.Field(
        nullable=True, isin=[*ACTIONS], description="What the person did; null: acknowledged it."
    )
    assigned_to: T.StringType = pa.Field(
        nullable=True, description="Of an assignment: who is to act from now on; empty or null: no one."
    )

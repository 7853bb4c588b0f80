"""Tables of package conjunction: candidates, assessments, alerts, and received CDMs.

Three are correction logs keyed by ``event_id``, which a close approach keeps while its TCA changes. The fourth has
messages from other organisations.
"""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG, SATELLITE_CATALOG
from sda_platform.conjunction.event_rows import STATED_COLUMNS, Alert, Approach
from sda_platform.conjunction.landed_rows import METHODS, AlertAcknowledgementRow, Message
from sda_platform.conjunction.sizes import SIZE_SOURCES
from sda_platform.formats.markings import MARKS
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.quantities import number_list, quantity
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.units import DAY_NS, SECOND_NS

MESSAGES_FEED = "messages"
"""The landing zone of received conjunction data messages."""
ACKNOWLEDGEMENTS_FEED = "acknowledgements"
"""The landing zone of acknowledgements of alerts."""
SAME_EVENT_NS = 600 * SECOND_NS
"""A message of another organisation and an event of ours are one encounter if their pair agrees and their TCAs are
less than this apart."""
TRACK_REACH_NS = DAY_NS
"""How far ahead tracks are used, unless the object has manoeuvred: the span for which their covariance is verified."""
SCREENED_FROM, SCREENED_UPTO = "screened_from_ns", "screened_upto_ns"
"""Watermarks of `conjunction_candidates`: the span that its last full screening covers."""

_STATE_SOURCES = [
    "operator_ephemeris", "operator_ephemeris_assumed_covariance", "refined_ephemeris", "fused_track", "element_set",
]  # fmt: skip
_CLASSIFICATION = "Classification of the data of the {}'s state, as `classification` of its source; null: not known."
_DATA_MODE = "Data mode of the data of the {}'s state, as `data_mode` of its source; null: not known."
_DEGREES = (
    "Of the distribution (Student's t) of the errors of the {}'s state, of which the covariance's 95 % ellipsoid holds "
    "95 %; null: the errors are Gaussian."
)
_OBJECT_TYPES = ["payload", "rocket body", "debris", "unknown"]


class Candidate(Approach):
    """An approach below the screening threshold, by both objects' element sets, or the ephemerides that cover it."""

    elements_epoch_1_ns: T.LongType = quantity(
        "ns", "Epoch of the primary's element set; of an ephemeris, a time in it."
    )
    elements_epoch_2_ns: T.LongType = quantity(
        "ns", "Epoch of the secondary's element set; of an ephemeris, a time in it."
    )


class Assessment(Approach):
    """A candidate with the best states known: relative geometry in the primary's RTN frame, and risk."""

    object_name_1: T.StringType = pa.Field(nullable=True, description="The primary's name.")
    object_name_2: T.StringType = pa.Field(nullable=True, description="The secondary's name.")
    radial_miss_km: T.DoubleType = quantity("km", "Relative position, radial.")
    in_track_miss_km: T.DoubleType = quantity("km", "Relative position, in-track.")
    cross_track_miss_km: T.DoubleType = quantity("km", "Relative position, cross-track.")
    relative_velocity_radial_km_s: T.DoubleType = quantity("km/s", "Relative velocity, radial.", nullable=True)
    relative_velocity_in_track_km_s: T.DoubleType = quantity("km/s", "Relative velocity, in-track.", nullable=True)
    relative_velocity_cross_track_km_s: T.DoubleType = quantity(
        "km/s", "Relative velocity, cross-track.", nullable=True
    )
    time_in_volume_s: T.DoubleType = quantity(
        "s",
        "How long the secondary is inside the screening volume of the primary.",
        nullable=True,
        ge=0,
    )
    mahalanobis_distance: T.DoubleType = pa.Field(ge=0, description="Miss over the combined covariance.")
    collision_probability: T.DoubleType = pa.Field(
        ge=0, le=1, description="Pc by the best method available (docs/explanation/collision-probability.md)."
    )
    probability_method: T.StringType = pa.Field(
        nullable=True, isin=METHODS, description="How Pc was found: 2D, expected collisions, or trials."
    )
    probability_standard_error: T.DoubleType = pa.Field(
        nullable=True, ge=0, description="One-sigma error of Pc where it comes from trials."
    )
    probability_2d: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Pc, two-dimensional (Foster 1992), valid or not."
    )
    is_2d_valid: T.BooleanType = pa.Field(
        nullable=True, description="Whether the two-dimensional Pc may be used; null: the input lacks what decides it."
    )
    risk_flags: T.StringType = pa.Field(
        nullable=True, description="Why it may not, and what else was found: names, comma-separated."
    )
    maximum_probability: T.DoubleType = pa.Field(
        ge=0, le=1, description="Largest Pc over all scalings of the covariance (dilution)."
    )
    maximum_sigma_scale: T.DoubleType = pa.Field(
        nullable=True,
        ge=0,
        description="The sigmas' factor that gives it; empty where long tails raise Pc, or no covariance is known.",
    )
    hard_body_radius_m: T.DoubleType = quantity("m", "Sum of both objects' radii.", gt=0)
    radius_1_m: T.DoubleType = quantity("m", "The primary's hard-body radius.", nullable=True, gt=0)
    radius_2_m: T.DoubleType = quantity("m", "The secondary's hard-body radius.", nullable=True, gt=0)
    radius_source_1: T.StringType = pa.Field(
        nullable=True, isin=SIZE_SOURCES, description="Where the primary's radius comes from."
    )
    radius_source_2: T.StringType = pa.Field(
        nullable=True, isin=SIZE_SOURCES, description="Where the secondary's radius comes from."
    )
    object_type_1: T.StringType = pa.Field(
        nullable=True,
        isin=_OBJECT_TYPES,
        description="The primary's type, by satellite catalogue or name.",
    )
    object_type_2: T.StringType = pa.Field(
        nullable=True,
        isin=_OBJECT_TYPES,
        description="The secondary's type, by satellite catalogue or name.",
    )
    is_screening_only: T.BooleanType = pa.Field(
        nullable=True,
        description="Whether a covariance is the model of element-set errors: no Pc to manoeuvre by.",
    )
    risk: T.StringType = pa.Field(
        isin=["red", "yellow", "green"],
        description="red: Pc ≥ 1e-4; yellow: Pc ≥ 1e-7; green: below. The highest of all, if is_2d_valid is null.",
    )
    state_source_1: T.StringType = pa.Field(
        isin=_STATE_SOURCES,
        description="Source of the primary's state and covariance: ephemeris, track, or element set with a model.",
    )
    state_source_2: T.StringType = pa.Field(
        isin=_STATE_SOURCES,
        description="Source of the secondary's state and covariance: ephemeris, track, or element set with a model.",
    )
    track_id_1: T.StringType = pa.Field(nullable=True, description="The newest window of the primary's track, if used.")
    track_id_2: T.StringType = pa.Field(
        nullable=True, description="The newest window of the secondary's track, if used."
    )
    manoeuvre_time_1_ns: T.LongType = quantity(
        "ns", "Suspected manoeuvre of the primary, by its track, since the epoch of its element set.", nullable=True
    )
    manoeuvre_time_2_ns: T.LongType = quantity(
        "ns", "Suspected manoeuvre of the secondary, by its track, since the epoch of its element set.", nullable=True
    )
    ephemeris_id_1: T.StringType = pa.Field(
        nullable=True, description="The primary's ephemeris, if used: segment and record; ours: object and epoch."
    )
    ephemeris_id_2: T.StringType = pa.Field(
        nullable=True,
        description="The secondary's ephemeris, if used: segment and record; ours: object and epoch.",
    )
    classification_1: T.StringType = pa.Field(nullable=True, description=_CLASSIFICATION.format("primary"))
    classification_2: T.StringType = pa.Field(nullable=True, description=_CLASSIFICATION.format("secondary"))
    data_mode_1: T.StringType = pa.Field(nullable=True, description=_DATA_MODE.format("primary"))
    data_mode_2: T.StringType = pa.Field(nullable=True, description=_DATA_MODE.format("secondary"))
    state_1: T.ArrayType = number_list(6, "The primary's state at TCA, TEME; km, km/s.", nullable=True)
    covariance_1: T.ArrayType = number_list(
        21, "Its 6×6 covariance, TEME, lower triangle by rows (21 terms).", nullable=True
    )
    degrees_of_freedom_1: T.DoubleType = pa.Field(nullable=True, gt=0, description=_DEGREES.format("primary"))
    state_2: T.ArrayType = number_list(6, "The secondary's state at TCA, TEME; km, km/s.", nullable=True)
    covariance_2: T.ArrayType = number_list(
        21, "Its 6×6 covariance, TEME, lower triangle by rows (21 terms).", nullable=True
    )
    degrees_of_freedom_2: T.DoubleType = pa.Field(nullable=True, gt=0, description=_DEGREES.format("secondary"))


_APPROACH = ["event_id", "norad_id_1", "norad_id_2"]
_ELEMENTS = [
    ("orbital_catalog", c)
    for c in ("epoch_time_ns", "mean_motion_rev_per_day", "eccentricity", "inclination_deg", "mean_anomaly_deg")
]
_PATHS = [*_ELEMENTS, ("ephemerides", "state"), ("refined_ephemerides", "state")]
_ENCOUNTER = [
    *[("conjunction_candidates", c) for c in ("tca_time_ns", "miss_distance_km")],
    *[("tracks", c) for c in ("x_km", "y_km", "z_km", "covariance")],
    *[(table, c) for table in ("ephemerides", "refined_ephemerides") for c in ("state", "covariance")],
]
_MARKED_SOURCES = ("orbital_catalog", "tracks", "ephemerides", "refined_ephemerides")
_ALERT_COPIES = [
    *_APPROACH, "tca_time_ns", "miss_distance_km", "relative_speed_km_s", "object_name_1", "object_name_2",
    "collision_probability", "track_id_1", "track_id_2", "maximum_probability", "mahalanobis_distance",
]  # fmt: skip

RECEIVED_CDMS = Table(
    "received_cdms",
    "conjunction",
    Message,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    reads=(ORBITAL_CATALOG,),
    zones=(MESSAGES_FEED,),
)
CONJUNCTION_CANDIDATES = Table(
    "conjunction_candidates",
    "conjunction",
    Candidate,
    ("event_id", "sequence", "op"),
    "tca_time_ns",
    lineage={
        "norad_id_1": [("orbital_catalog", "norad_id")],
        "norad_id_2": [("orbital_catalog", "norad_id")],
        "elements_epoch_1_ns": [("orbital_catalog", "epoch_time_ns"), ("element_sets", "epoch_time_ns")],
        "elements_epoch_2_ns": [("orbital_catalog", "epoch_time_ns"), ("element_sets", "epoch_time_ns")],
        "tca_time_ns": _PATHS,
        "miss_distance_km": _PATHS,
        "relative_speed_km_s": _PATHS,
    },
    consumes=(ORBITAL_CATALOG, EPHEMERIDES, REFINED_EPHEMERIDES),
    reads=(ELEMENT_SETS, TRACKS, RECEIVED_CDMS),
    refuses_rows=True,
)
CONJUNCTION_ASSESSMENTS = Table(
    "conjunction_assessments",
    "conjunction",
    Assessment,
    ("event_id", "sequence", "op"),
    "tca_time_ns",
    lineage={
        **{c: [("conjunction_candidates", c)] for c in _APPROACH},
        **dict.fromkeys(
            ("tca_time_ns", "miss_distance_km", "radial_miss_km", "collision_probability", "probability_2d", "risk"),
            _ENCOUNTER,
        ),
        "object_type_1": [("satellite_catalog", "object_type"), ("orbital_catalog", "object_name")],
        "object_type_2": [("satellite_catalog", "object_type"), ("orbital_catalog", "object_name")],
        "track_id_1": [("tracks", "track_id")],
        "track_id_2": [("tracks", "track_id")],
        "ephemeris_id_1": [("ephemerides", "segment_name"), ("ephemerides", "record_number")],
        "ephemeris_id_2": [("ephemerides", "segment_name"), ("ephemerides", "record_number")],
        "object_name_1": [("orbital_catalog", "object_name")],
        "object_name_2": [("orbital_catalog", "object_name")],
        **{f"{mark}_{n}": [(table, mark) for table in _MARKED_SOURCES] for mark in MARKS for n in (1, 2)},
        "degrees_of_freedom_1": [("orbital_catalog", "history_differences")],
        "degrees_of_freedom_2": [("orbital_catalog", "history_differences")],
        "radius_1_m": [("satellite_catalog", "rcs_m2")],
        "radius_2_m": [("satellite_catalog", "rcs_m2")],
    },
    consumes=(CONJUNCTION_CANDIDATES, TRACKS, EPHEMERIDES, REFINED_EPHEMERIDES),
    reads=(ORBITAL_CATALOG, ELEMENT_SETS, SATELLITE_CATALOG),
    refuses_rows=True,
)
CONJUNCTION_ALERTS = Table(
    "conjunction_alerts",
    "conjunction",
    Alert,
    ("event_id", "sequence", "op"),
    "tca_time_ns",
    lineage={
        **{c: [("conjunction_assessments", c)] for c in _ALERT_COPIES},
        **{c: [("conjunction_assessments", c), ("received_cdms", c)] for c in STATED_COLUMNS if c in _ALERT_COPIES},
        "risk": [("conjunction_assessments", c) for c in ("collision_probability", "maximum_probability", "risk")],
        "data_quality": [("conjunction_assessments", c) for c in ("state_source_1", "state_source_2")],
        "stated_probability": [("received_cdms", c) for c in ("stated_probability", "recomputed_probability")],
        "stated_by": [("received_cdms", "originator")],
        **{
            mark: [*(("conjunction_assessments", f"{mark}_{n}") for n in (1, 2)), ("received_cdms", mark)]
            for mark in MARKS
        },
    },
    consumes=(CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS),
    reads=(CONJUNCTION_CANDIDATES, TRACKS, EPHEMERIDES),
)
ALERT_ACKNOWLEDGEMENTS = Table(
    "alert_acknowledgements",
    "conjunction",
    AlertAcknowledgementRow,
    ("segment_sha256", "record_number"),
    "received_time_ns",
    zones=(ACKNOWLEDGEMENTS_FEED,),
)

TABLES = (
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_ALERTS,
    RECEIVED_CDMS,
    ALERT_ACKNOWLEDGEMENTS,
)

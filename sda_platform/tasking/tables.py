"""Tables of tasking: what should be observed, when it can be, and which sensor observes it."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ground.tables import FLEET_MEMBERSHIP, GROUND_COMMANDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_log import CorrectionLogModel
from sda_platform.lake.quantities import quantity, text_list
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS

CONJUNCTION, ANALYST, MANOEUVRE, RESIDUAL, LOST, STALE = (
    "conjunction",
    "analyst_satellite",
    "manoeuvre",
    "residual",
    "lost_track",
    "stale_track",
)
REASONS = (CONJUNCTION, ANALYST, MANOEUVRE, RESIDUAL, LOST, STALE)
PRIORITY_CLASSES = (0, 1, 2)
"""0: a conjunction at risk red; 1: other conjunctions, new objects, doubtful elements; 2: upkeep of the catalogue."""
SCHEDULED, UNSERVED = "scheduled", "unserved"
PLANNED, ACCEPTED, EXECUTING, EXECUTED = "planned", "accepted", "executing", "executed"
OBSERVED, FAILED, MISSED = "observed", "failed", "missed"
TASK_STATES = (PLANNED, ACCEPTED, EXECUTING, EXECUTED, OBSERVED, FAILED, MISSED)
SATISFIED, RESCHEDULED, OPEN, WITHDRAWN = "satisfied", "rescheduled", "open", "withdrawn"
REQUEST_STATES = (SATISFIED, RESCHEDULED, OPEN, WITHDRAWN)
DECAYED, SET_UNUSABLE, NO_ELEMENTS, BEYOND_HORIZON = "decayed", "set_unusable", "no_elements", "beyond_horizon"
UNSERVED_REASONS = (
    "no_window", "no_antenna_time", "sensor_out", DECAYED, SET_UNUSABLE, NO_ELEMENTS, BEYOND_HORIZON,
)  # fmt: skip


class Demand(CorrectionLogModel):
    """The observation requested for one object, and the reason."""

    request_id: T.StringType = pa.Field(description="UUIDv5 of reason, object and event.")
    norad_id: T.LongType = pa.Field(ge=1, description="The object to observe.")
    reason: T.StringType = pa.Field(isin=list(REASONS), description="Why it should be observed.")
    priority_class: T.LongType = pa.Field(
        isin=list(PRIORITY_CLASSES),
        description="0: conjunction at risk red; 1: other conjunctions, new objects, doubtful orbits; 2: upkeep.",
    )
    owner: T.StringType = pa.Field(description="On whose behalf: the operator of a protected object, or catalogue.")
    event_id: T.StringType = pa.Field(nullable=True, description="The conjunction; null: the reason is another.")
    requested_time_ns: T.LongType = quantity("ns", "Mission time at which the platform first requested it.")
    deadline_time_ns: T.LongType = quantity(
        "ns", "When the observation must be done; for a conjunction before its TCA."
    )
    information_gain: T.DoubleType = pa.Field(
        ge=0,
        description="Expected gain of one pass: ln of the factor by which the one-sigma ellipse shrinks.",
    )
    expected_probability: T.DoubleType = pa.Field(
        nullable=True, ge=0, le=1, description="Pc after such a pass if the miss stays; null: no conjunction."
    )
    dwell_s: T.DoubleType = quantity(
        "s", "Antenna time that brings the wanted covariance; null: the usual time.", nullable=True, ge=0
    )


class PassWindow(CorrectionLogModel):
    """An interval in which one ground sensor can observe one object."""

    pass_id: T.StringType = pa.Field(description="UUIDv5 of object, sensor, acquisition and loss.")
    norad_id: T.LongType = pa.Field(ge=1, description="The object.")
    source_id: T.StringType = pa.Field(description="The ground sensor.")
    aos_time_ns: T.LongType = quantity(
        "ns", "Acquisition: the object rises above the mask, or comes into range or light."
    )
    tca_time_ns: T.LongType = quantity("ns", "Culmination: the greatest elevation.")
    los_time_ns: T.LongType = quantity("ns", "Loss: the object sets, or leaves range or light.")
    max_elevation_deg: T.DoubleType = quantity("deg", "Elevation at culmination.", ge=-5, le=90)
    azimuth_aos_deg: T.DoubleType = quantity("deg", "Azimuth at acquisition, from north by east.", ge=0, le=360)
    azimuth_tca_deg: T.DoubleType = quantity("deg", "Azimuth at culmination, from north by east.", ge=0, le=360)
    azimuth_los_deg: T.DoubleType = quantity("deg", "Azimuth at loss, from north by east.", ge=0, le=360)
    range_tca_km: T.DoubleType = quantity("km", "Range at culmination.", ge=0)
    elements_epoch_ns: T.LongType = quantity("ns", "Epoch of the element set that predicted it.")


class ScheduledTask(CorrectionLogModel):
    """One request in the schedule: the sensor and time that serve it, or why nothing does."""

    request_id: T.StringType = pa.Field(description="The request.")
    norad_id: T.LongType = pa.Field(ge=1, description="The object to observe.")
    reason: T.StringType = pa.Field(isin=list(REASONS), description="Why it should be observed.")
    priority_class: T.LongType = pa.Field(isin=list(PRIORITY_CLASSES), description="Class of the request.")
    owner: T.StringType = pa.Field(description="On whose behalf.")
    deadline_time_ns: T.LongType = quantity("ns", "When the observation must be done.")
    status: T.StringType = pa.Field(
        isin=[SCHEDULED, UNSERVED], description="Whether a sensor will observe it before the deadline."
    )
    unserved_reason: T.StringType = pa.Field(
        nullable=True,
        isin=list(UNSERVED_REASONS),
        description="no_window: no sensor sees it in time; no_antenna_time: these are taken; sensor_out: "
        "these are out of service; decayed, set_unusable: its element set ends before; "
        "no_elements; beyond_horizon: the search ends before the deadline.",
    )
    pass_id: T.StringType = pa.Field(nullable=True, description="The pass window that is used.")
    source_id: T.StringType = pa.Field(nullable=True, description="The sensor.")
    beam: T.LongType = pa.Field(nullable=True, ge=0, description="Which of a phased array's beams; null: the first.")
    start_time_ns: T.LongType = quantity("ns", "Beginning of the observation, antenna on target.", nullable=True)
    end_time_ns: T.LongType = quantity("ns", "End of the observation.", nullable=True)
    azimuth_start_deg: T.DoubleType = quantity("deg", "Where the antenna begins, about.", nullable=True, ge=0, le=360)
    azimuth_end_deg: T.DoubleType = quantity("deg", "Where the antenna ends, about.", nullable=True, ge=0, le=360)
    max_elevation_deg: T.DoubleType = quantity("deg", "Greatest elevation of the pass.", nullable=True, ge=-5, le=90)
    information_gain: T.DoubleType = pa.Field(ge=0, description="Expected gain of the request.")
    unserved_detail: T.StringType = pa.Field(
        nullable=True,
        description="The same in words, with the time.",
    )


class TaskOfSensor(CorrectionLogModel):
    """What became of one scheduled observation, of its request, and what it changed."""

    task_id: T.StringType = pa.Field(description="UUIDv5 of request, sensor and beginning; also the id of its command.")
    request_id: T.StringType = pa.Field(description="The request.")
    event_id: T.StringType = pa.Field(nullable=True, description="The conjunction; null: the reason is another.")
    norad_id: T.LongType = pa.Field(ge=1, description="The object to observe.")
    reason: T.StringType = pa.Field(isin=list(REASONS), description="Why it should be observed.")
    priority_class: T.LongType = pa.Field(isin=list(PRIORITY_CLASSES), description="Class of the request.")
    source_id: T.StringType = pa.Field(description="The sensor.")
    pass_id: T.StringType = pa.Field(description="The pass window; empty: not recorded.")
    start_time_ns: T.LongType = quantity("ns", "Beginning of the observation.")
    end_time_ns: T.LongType = quantity("ns", "End of the observation.")
    state: T.StringType = pa.Field(
        isin=list(TASK_STATES),
        description="planned; accepted by an uplink; executing; executed: nothing observed yet; observed; failed: the "
        "command ended otherwise; missed: neither executed nor observed.",
    )
    detail: T.StringType = pa.Field(description="The answer of the station, or the reason; empty: none.")
    request: T.StringType = pa.Field(
        isin=list(REQUEST_STATES),
        description="satisfied: observed, and the reason is gone; rescheduled: another time is ahead; open; withdrawn: "
        "the reason is gone without an observation.",
    )
    issued_time_ns: T.LongType = quantity("ns", "When its command was issued; null: it has none.", nullable=True)
    accepted_time_ns: T.LongType = quantity("ns", "When an uplink took the command.", nullable=True)
    finished_time_ns: T.LongType = quantity(
        "ns", "When the command ended, by the station's clock if it states that.", nullable=True
    )
    observations: T.LongType = pa.Field(ge=0, description="Observations attributed to it.")
    observation_ids: T.ArrayType = text_list(
        "These: of its sensor, within its time, and in a window fit of its object; sorted."
    )
    expected_gain: T.DoubleType = pa.Field(ge=0, description="Expected gain of the request, of one pass.")
    realised_gain: T.DoubleType = pa.Field(
        nullable=True,
        ge=0,
        description="The same of what its observations brought; 0: none; null: the states before are not known.",
    )


OBSERVATION_REQUESTS = Table(
    "observation_requests",
    "tasking",
    Demand,
    ("request_id", "sequence", "op"),
    "requested_time_ns",
    lineage={
        "norad_id": [("conjunction_assessments", "norad_id_1"), ("tracks", "norad_id")],
        "event_id": [("conjunction_assessments", "event_id")],
        "deadline_time_ns": [("conjunction_assessments", "tca_time_ns")],
        "information_gain": [("conjunction_assessments", "covariance_1"), ("tracks", "covariance")],
    },
    consumes=(CONJUNCTION_ASSESSMENTS, TRACKS, PROVISIONAL_ELEMENTS),
)
PASS_WINDOWS = Table(
    "pass_windows",
    "tasking",
    PassWindow,
    ("pass_id", "sequence", "op"),
    "aos_time_ns",
    lineage={
        "norad_id": [("observation_requests", "norad_id")],
        "elements_epoch_ns": [("orbital_catalog", "epoch_time_ns")],
    },
    consumes=(OBSERVATION_REQUESTS, ORBITAL_CATALOG),
)
PASS_SCHEDULE = Table(
    "pass_schedule",
    "tasking",
    ScheduledTask,
    ("request_id", "sequence", "op"),
    "deadline_time_ns",
    lineage={
        **{
            name: [("observation_requests", name)]
            for name in ("request_id", "norad_id", "reason", "priority_class", "owner", "deadline_time_ns")
        },
        "pass_id": [("pass_windows", "pass_id")],
        "source_id": [("pass_windows", "source_id")],
        "start_time_ns": [("pass_windows", "aos_time_ns")],
        "end_time_ns": [("pass_windows", "los_time_ns")],
    },
    consumes=(OBSERVATION_REQUESTS, PASS_WINDOWS),
    # The last three show which scheduled observations failed.
    reads=(FLEET_MEMBERSHIP, ORBITAL_CATALOG, GROUND_COMMANDS, OBSERVATIONS, FUSED_TRACKS),
)
TASK_OUTCOMES = Table(
    "task_outcomes",
    "tasking",
    TaskOfSensor,
    ("task_id", "sequence", "op"),
    "start_time_ns",
    lineage={
        **{
            name: [("pass_schedule", name)]
            for name in (
                "request_id",
                "norad_id",
                "reason",
                "priority_class",
                "source_id",
                "pass_id",
                "start_time_ns",
                "end_time_ns",
            )
        },
        "expected_gain": [("pass_schedule", "information_gain")],
        "event_id": [("observation_requests", "event_id")],
        "state": [("ground_commands", "state"), ("fused_tracks", "observation_ids")],
        "detail": [("ground_commands", "detail")],
        **{name: [("ground_commands", name)] for name in ("issued_time_ns", "accepted_time_ns")},
        "finished_time_ns": [("ground_commands", "station_finished_time_ns"), ("ground_commands", "finished_time_ns")],
        "observation_ids": [("observations", "observation_id")],
        "realised_gain": [
            ("fused_tracks", "covariance"),
            ("fused_tracks", "predicted_covariance"),
            ("conjunction_assessments", "covariance_1"),
        ],
    },
    consumes=(PASS_SCHEDULE, GROUND_COMMANDS),
    reads=(OBSERVATION_REQUESTS, OBSERVATIONS, FUSED_TRACKS, CONJUNCTION_ASSESSMENTS),
)

TABLES = (OBSERVATION_REQUESTS, PASS_WINDOWS, PASS_SCHEDULE, TASK_OUTCOMES)

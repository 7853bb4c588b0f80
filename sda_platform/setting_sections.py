"""Settings by section. A section belongs to the Dagster resource that uses it: the resource inherits its fields.

Each field names the environment variable that sets it. A field that several resources use is declared once.
"""

import os
from typing import Literal, Self

from pydantic import model_validator

from sda_platform.list_settings import ClosureFile, FleetFile, SensorFile
from sda_platform.setting_fields import SettingsSection, setting


class SpaceWeatherSettings(SettingsSection):
    """Solar flux and geomagnetic activity, on which the density of the air depends."""

    space_weather: str = setting(
        "",
        "Daily F10.7 and Ap, a CSV in CelesTrak's form; empty: that of `sda connect`, or else F10.7 150 and Ap 15.",
        "SPACE_WEATHER",
        is_file=True,
    )


class Parallelism(SettingsSection):
    """How much of the engine a search uses."""

    at_once: int = setting(
        os.cpu_count() or 2,
        "Number of Spark tasks of a screening or a search for passes; on a cluster, set twice the number of its cores.",
        "SCREENING_AT_ONCE",
        shown_default="the machine's cores",
        ge=1,
    )


class BacklogAge(SettingsSection):
    """When pending segments are overdue."""

    backlog_max_age_s: float = setting(
        300.0, "Longest time a segment may be pending before a check warns, seconds.", "BACKLOG_MAX_AGE_S"
    )


class IntakeSettings(BacklogAge):
    """How much a run takes from a landing zone, and when files there are overdue."""

    max_segments: int = setting(
        256, "Largest number of segments that one materialization consumes from a zone.", "BATCH_MAX_SEGMENTS"
    )
    max_bytes: int = setting(
        128 * 2**20, "Largest number of bytes that one materialization consumes from a zone.", "BATCH_MAX_BYTES"
    )
    orphan_grace_s: float = setting(
        60.0,
        "Age from which data without metadata (or the reverse) is quarantined, seconds.",
        "ORPHAN_GRACE_S",
    )


class VitalsSettings(BacklogAge):
    """How often the platform's vitals are evaluated, and from when on each is red."""

    interval_s: float = setting(20.0, "Time between two evaluations of the vitals, seconds.", "VITALS_INTERVAL_S", ge=1)
    notice_repeat_s: float = setting(
        4 * 3600.0,
        "Time after which a fault that lasts is notified again, seconds; then after twice the pause, at most a day.",
        "NOTICE_REPEAT_S",
        ge=60,
    )
    silence_of_all_s: float = setting(
        40.0,
        "Longest mission time in which no radar and no link reports, where there are several, seconds.",
        "SILENCE_OF_ALL_S",
        ge=0,
    )
    metrics_interval_s: float = setting(
        600.0,
        "Time between two samples of metrics for table `pipeline_metrics`, seconds.",
        "METRICS_INTERVAL_S",
        ge=1,
    )
    watermark_stall_s: float = setting(
        40.0,
        "Longest mission time in which the watermark does not advance, or a table leaves commits unconsumed, seconds.",
        "WATERMARK_STALL_S",
    )
    subscriber_lag_s: float = setting(
        40.0, "Longest mission time for which an alert may wait for the subscriber, seconds.", "SUBSCRIBER_LAG_S"
    )
    heartbeat_max_s: float = setting(
        75.0,
        "Longest time without a heartbeat of Dagster's daemon, which beats every 30 s, seconds.",
        "HEARTBEAT_MAX_S",
    )
    run_max_s: float = setting(1800.0, "Longest time that a run may be under way, seconds.", "RUN_MAX_S")
    failed_runs_max: int = setting(
        3, "Number of runs of a job that fail one after another from which it is a fault.", "FAILED_RUNS_MAX", ge=1
    )
    queue_max_s: float = setting(600.0, "Longest time that a run may be queued, seconds.", "QUEUE_MAX_S")
    disk_min_free: float = setting(0.05, "Least free share of a disk.", "DISK_MIN_FREE", ge=0, le=1)


class GrowthSettings(SettingsSection):
    """From when on dead letters are too many; a usual rate below ``floor_per_min`` counts as that."""

    factor: float = setting(
        10.0, "Multiple of the usual rate of a kind of dead letter from which a check warns.", "DEAD_LETTER_GROWTH"
    )
    factor_by_kind: dict[str, float] = setting(
        {}, 'The multiple for some kinds, as JSON: {"bad_json": 40}.', "DEAD_LETTER_GROWTH_BY_KIND"
    )
    floor_per_min: float = setting(
        1.0, "Lowest rate that counts as usual, dead letters per minute.", "DEAD_LETTER_FLOOR_PER_MIN"
    )


class FusionSettings(SensorFile):
    """Windows and lateness, seconds of event time, and the ground sensors."""

    window_s: int = setting(30, "Length of a fusion window in event time, seconds.", "WINDOW_S")
    allowed_lateness_s: float = setting(
        5.0, "Event time after its end in which a window accepts late data, seconds.", "ALLOWED_LATENESS_S"
    )
    idle_after_s: float = setting(
        60.0, "Silence after which a kind of source holds no window open, seconds.", "IDLE_AFTER_S"
    )
    sources: list[str] = setting(
        ["radar", "optical", "isl"],
        "Kinds of source that exist, as JSON: no window closes before each has reported once.",
        "SOURCES",
    )


class ScreeningSettings(FleetFile, Parallelism):
    """Objects that are screened against each other, the horizon, and the distance that makes a candidate."""

    scope: Literal["fleet", "all"] = setting(
        "fleet", "fleet: the fleet against all objects; all: all against all.", "SCREENING_SCOPE"
    )
    fleet_internal: bool = setting(
        True, "Whether approaches within the fleet are candidates.", "SCREENING_FLEET_INTERNAL"
    )
    volumes: str = setting(
        "",
        "Screening volumes by regime: a CSV, or `standard`; empty: a sphere of the threshold.",
        "SCREENING_VOLUMES",
        is_file=True,
    )
    satellite_catalogue: str = setting(
        "",
        "CSV of CelesTrak's satellite catalogue, whose sizes count before those of `satellite_catalog`; empty: none.",
        "SCREENING_SATELLITE_CATALOGUE",
        is_file=True,
    )
    objects_per_task: int = setting(
        30_000,
        "Largest number of objects that one task screens against all; fewer on a cluster of many cores.",
        "SCREENING_OBJECTS_PER_TASK",
        ge=1,
    )
    horizon_h: float = setting(168.0, "Span of a screening from its as_of, hours.", "SCREENING_HORIZON_H")
    refresh_h: float = setting(
        6.0,
        "Age at which a full screening is repeated, hours; at most 10, because one older than 12 hours is an alarm.",
        "SCREENING_REFRESH_H",
        gt=0,
        le=10,
    )
    threshold_km: float = setting(
        5.0, "Miss distance below which an approach is a candidate, km.", "SCREENING_THRESHOLD_KM"
    )
    sigmas: float = setting(
        0.0,
        "Miss below which a farther approach is a candidate too, sigmas of the errors of both element sets; 0: none. "
        "Without `SDA_SCREENING_VOLUMES` only.",
        "SCREENING_SIGMAS",
        ge=0,
    )
    reach_km: float = setting(
        150.0, "Largest miss distance of such an approach, km.", "SCREENING_REACH_KM", gt=0, le=1000
    )
    manoeuvre_sigmas: float = setting(
        3.0,
        "The same for an object with a suspected manoeuvre, which is screened on its track: "
        "sigmas of the track; 0: by its element set.",
        "SCREENING_MANOEUVRE_SIGMAS",
        ge=0,
    )


class AlertSettings(FleetFile):
    """When an assessed event becomes an alert, and when an alert is sent again. Members of the fleet may have their own
    levels of Pc."""

    red_pc: float = setting(1e-4, "Pc from which an alert is red.", "ALERT_RED_PC", gt=0, le=1)
    yellow_pc: float = setting(1e-5, "Pc from which an event is an alert.", "ALERT_YELLOW_PC", gt=0, le=1)
    dilution_within_h: float = setting(
        72.0, "Time to TCA from which the largest Pc of a diluted event counts, hours.", "ALERT_DILUTION_WITHIN_H", ge=0
    )
    dilution_red_pc: float = setting(
        1e-2, "Largest Pc over all scalings of the covariance from which it is red.", "ALERT_DILUTION_RED_PC", gt=0
    )
    dilution_red_sigmas: float = setting(
        1.0, "Largest miss for that, sigmas of the combined covariance.", "ALERT_DILUTION_RED_SIGMAS", ge=0
    )
    dilution_yellow_pc: float = setting(
        1e-3, "Largest Pc over all scalings from which it is an alert.", "ALERT_DILUTION_YELLOW_PC", gt=0
    )
    dilution_yellow_sigmas: float = setting(
        2.0, "Largest miss for that, sigmas of the combined covariance.", "ALERT_DILUTION_YELLOW_SIGMAS", ge=0
    )
    manoeuvre_decades: float = setting(
        1.0,
        "How far below its yellow threshold Pc makes an alert after a suspected manoeuvre, decades; 0: no farther.",
        "ALERT_MANOEUVRE_DECADES",
        ge=0,
    )
    stated_by_other: bool = setting(
        True,
        "Whether the Pc of a received CDM makes an alert by the same levels.",
        "ALERT_STATED_BY_OTHER",
    )
    hysteresis_decades: float = setting(
        0.5, "How far below its threshold Pc must fall to lower a level, decades.", "ALERT_HYSTERESIS_DECADES", ge=0
    )
    revise_decades: float = setting(0.5, "Change of Pc that is sent, decades.", "ALERT_REVISE_DECADES", gt=0)
    revise_tca_s: float = setting(10.0, "Change of TCA that is sent, seconds.", "ALERT_REVISE_TCA_S", gt=0)
    revise_miss_km: float = setting(1.0, "Change of the miss distance that is sent, km.", "ALERT_REVISE_MISS_KM", gt=0)

    @model_validator(mode="after")
    def _yellow_is_below_red(self) -> Self:
        """Refuse a level that would hide the other: no event would ever be yellow, or red."""
        pairs = (
            ("SDA_ALERT_YELLOW_PC", self.yellow_pc, "SDA_ALERT_RED_PC", self.red_pc),
            (
                "SDA_ALERT_DILUTION_YELLOW_PC",
                self.dilution_yellow_pc,
                "SDA_ALERT_DILUTION_RED_PC",
                self.dilution_red_pc,
            ),
            (
                "SDA_ALERT_DILUTION_RED_SIGMAS",
                self.dilution_red_sigmas,
                "SDA_ALERT_DILUTION_YELLOW_SIGMAS",
                self.dilution_yellow_sigmas,
            ),
        )
        for low, low_value, high, high_value in pairs:
            if low_value > high_value:
                raise ValueError(f"{low} is {low_value:g}, above {high}, which is {high_value:g}: exchange them")
        return self


class RefinementSettings(FleetFile):
    """How many tracks are refined at a time. Those of the fleet and of objects in open events come first."""

    at_once: int = setting(
        20,
        "Most tracks that are refined in ten minutes, about two seconds each.",
        "REFINED_AT_ONCE",
        ge=2,
    )


class SchedulingSettings(SensorFile, ClosureFile, FleetFile, Parallelism):
    """Sensors, objects and horizon of the tasking of sensors."""

    scope: Literal["requested", "all"] = setting(
        "requested",
        "Objects whose pass windows are kept: those of open requests, or the whole catalogue.",
        "TASKING_SCOPE",
    )
    horizon_h: float = setting(24.0, "How far ahead sensors are scheduled, hours.", "TASKING_HORIZON_H", gt=0, le=168)

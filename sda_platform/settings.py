"""Every setting of the platform: typed, with its unit, its default and the environment variable that sets it.

Holds values only. Nothing here opens a file, a socket or a session, and no other module reads the environment.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX: Final = "SDA_"
OTHER_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SDA_COLLECT_TOKEN": "the token that `sda sources` sends to the collector",
        "SDA_DAGSTER_POSTGRES_URL": "Dagster's storage; `dagster.yaml` reads it",
        "SDA_PLATFORM_ID": "the mark of a running platform's processes",
    }
)
"""Variables with the prefix that are no settings, and what they are for."""


class UnknownSetting(Exception):
    """The environment has a variable with the platform's prefix that names no setting."""


class Settings(BaseSettings):
    """The platform's settings; each is overridden by ``SDA_<NAME>`` in the environment."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    home: Path = Field(Path("var"), description="Home directory: everything that the platform stores on this machine.")
    lake: str = Field("", description="URI of the lake (path, s3://, abfs://, gs://); empty: <home>/lake.")
    landing: str = Field("", description="URI of the landing zones; empty: <home>/landing.")
    spark_remote: str = Field(
        "",
        description="The engine: empty = the local server that `sda up` runs; sc://host:port = a remote one; "
        "local = a session inside this process.",
    )
    driver_memory: str = Field("3g", description="Heap of the local engine (JVM notation).")
    subscriber: str = Field(
        "",
        repr=False,  # it may hold a password
        description="Receiver of alerts: a path or sqlite:///path, postgresql://user:password@host/database, "
        "https://host/path; empty: <home>/subscriber.sqlite.",
    )
    sensors: str = Field(
        "",
        description="CSV of the ground radars and telescopes; empty: the shipped `orbits/sensing/sensors.csv`.",
    )
    collect: str = Field(
        "", description="Configuration of the collectors (TOML); empty: <home>/collect.toml, if it is there."
    )
    fleet: str = Field("", description="CSV of the protected fleet (norad_id,name,operator); empty: the shipped one.")

    failure_webhook: str = Field(
        "", repr=False, description="URL that gets a report of each failed run; empty: only the log."
    )
    ui_url: str = Field("", description="Address of the Dagster UI in links; empty: this machine, at webserver_port.")

    webserver_host: str = Field(
        "127.0.0.1",
        description="Address of the Dagster UI. The UI has no login: open it to a network only behind a proxy.",
    )
    webserver_port: int = Field(3000, description="Port of the Dagster UI; if it is busy, a free one is used.")
    serving_host: str = Field("127.0.0.1", description="Address at which `sda serve` listens; it has no login.")
    serving_port: int = Field(3100, description="Port of the catalogue's lookup endpoint.")
    serving_engine: Literal["lmdb", "rocksdb"] = Field("lmdb", description="Engine of the serving index.")
    engine_port: int = Field(15002, description="Port of the local engine; if it is busy, a free one is used.")
    hung_after_s: float = Field(
        60.0,
        ge=3.0,
        description="Seconds without an answer after which a process of the platform is restarted.",
    )
    sensor_interval_s: int = Field(
        1, ge=1, description="Time between two looks of a landing sensor at its zones, seconds."
    )

    segment_max_bytes: int = Field(
        64 * 2**20, ge=64 * 2**10, le=64 * 2**20, description="Largest segment that `sda land` seals, bytes."
    )
    batch_max_segments: int = Field(
        256, description="Largest number of segments that one materialization consumes from a zone."
    )
    batch_max_bytes: int = Field(
        128 * 2**20, description="Largest number of bytes that one materialization consumes from a zone."
    )
    orphan_grace_s: float = Field(
        60.0, description="Age from which data without metadata (or the reverse) is quarantined, seconds."
    )
    backlog_max_age_s: float = Field(
        300.0, description="Longest time a segment may be pending before a check warns, seconds."
    )

    dead_letter_growth: float = Field(
        10.0, description="Multiple of the usual rate of a kind of dead letter from which a check warns."
    )
    dead_letter_growth_by_kind: dict[str, float] = Field(
        {}, description='The multiple for some kinds, as JSON: {"bad_json": 40}.'
    )
    dead_letter_floor_per_min: float = Field(
        1.0, description="Lowest rate that counts as usual, dead letters per minute."
    )

    window_s: int = Field(30, description="Length of a fusion window in event time, seconds (DP3-F5).")
    allowed_lateness_s: float = Field(
        5.0, description="Event time after its end in which a window accepts late data, seconds."
    )
    idle_after_s: float = Field(60.0, description="Silence after which a kind of source holds no window open, seconds.")
    sources: tuple[str, ...] = Field(
        ("radar", "optical", "isl"),
        description="Kinds of source that exist, as JSON: no window closes before each has reported once (DP3-F4).",
    )
    own_elements: bool = Field(True, description="Whether element sets are determined from tracks.")
    fusion_refresh: bool = Field(
        True, description="Whether time-tag biases, element sets and reports are computed every two minutes."
    )
    screening_scope: Literal["fleet", "all"] = Field(
        "fleet", description="fleet: the fleet against all objects; all: all against all."
    )
    screening_fleet_internal: bool = Field(True, description="Whether approaches within the fleet are candidates.")
    screening_volumes: str = Field(
        "", description="Volumes by regime: a CSV, or `standard`; empty: a sphere of screening_threshold_km."
    )
    screening_objects_per_task: int = Field(
        30_000,
        ge=1,
        description="Largest number of objects that one task screens against all; fewer on a cluster of many cores.",
    )
    screening_at_once: int = Field(
        default_factory=lambda: os.cpu_count() or 2,
        ge=1,
        description="Number of concurrent tasks of a screening: the number of the engine's cores.",
    )
    screening_horizon_h: float = Field(168.0, description="Span of a screening from its as_of, hours.")
    screening_refresh_h: float = Field(6.0, description="Age at which a full screening is repeated, hours.")
    screening_threshold_km: float = Field(5.0, description="Miss distance below which an approach is a candidate, km.")

    tasking: bool = Field(True, description="Whether sensors are scheduled every ten minutes.")
    tasking_scope: Literal["requested", "all"] = Field(
        "requested", description="Whose pass windows are kept: objects of open requests, or the whole catalogue."
    )
    tasking_horizon_h: float = Field(24.0, gt=0, le=168, description="How far ahead sensors are scheduled, hours.")

    etcd: tuple[str, ...] = Field(
        (), description='Addresses of etcd for leases, as JSON: ["http://host:2379"]; empty: this is the only site.'
    )

    @model_validator(mode="before")
    @classmethod
    def _environment_is_known(cls, values: Any) -> Any:
        require_known_variables(os.environ)
        return values

    @property
    def collect_path(self) -> Path:
        """The configuration of the collectors."""
        return Path(self.collect).absolute() if self.collect else self.home.absolute() / "collect.toml"

    @property
    def lake_uri(self) -> str:
        """Where the tables are."""
        return _place(self.lake or str(self.home / "lake"))

    @property
    def shown_ui_url(self) -> str:
        """How links to the Dagster UI begin."""
        return self.ui_url.rstrip("/") or f"http://127.0.0.1:{self.webserver_port}"

    @property
    def landing_uri(self) -> str:
        """Where the landing zones are."""
        return _place(self.landing or str(self.home / "landing"))


def _place(uri: str) -> str:
    """``uri``, where it is a path made absolute."""
    return uri if "://" in uri else str(Path(uri).absolute())


def require_known_variables(environment: Mapping[str, str]) -> None:
    """Raise UnknownSetting where ``environment`` has a variable with the prefix that names no setting.

    Names are compared without regard to case, as settings are read. Values are not shown: they may be secret.
    """
    known = {*(PREFIX + name.upper() for name in Settings.model_fields), *OTHER_VARIABLES}
    unknown = sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise UnknownSetting("; ".join(_refusal(name, known) for name in unknown))


def _refusal(name: str, known: set[str]) -> str:
    close = get_close_matches(name.upper(), sorted(known), n=1)
    remedy = f"did you mean {close[0]}?" if close else "unset it; sda_platform/settings.py lists the settings"
    return f"{name} is not a setting: {remedy}"

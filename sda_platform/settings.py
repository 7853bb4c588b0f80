"""Every setting of the platform: typed, with its unit, its default and the environment variable that sets it.

Holds values only. Nothing here opens a file, a socket or a session, and no other module reads the environment. What a
Dagster resource uses is in a section of its own (`setting_sections`).
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeGuard
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from sda_platform.access_settings import AccessSettings
from sda_platform.list_settings import HomeLists
from sda_platform.notify_settings import NotifySettings
from sda_platform.retention_settings import RetentionSettings
from sda_platform.serving_settings import ServingSettings
from sda_platform.setting_fields import IS_FILE, OTHER_VARIABLES, PREFIX, VARIABLE, SettingsSection
from sda_platform.setting_sections import (
    AlertSettings,
    FusionSettings,
    GrowthSettings,
    IntakeSettings,
    RefinementSettings,
    SchedulingSettings,
    ScreeningSettings,
    SpaceWeatherSettings,
    VitalsSettings,
)

_OBJECT_STORE: Final = "s3://"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# In a path, delta-rs refuses or decodes some of them, Spark takes others for patterns or quotes, and SQLite's addresses
# end at a question mark.
_NOT_IN_A_PATH: Final = re.compile(r"[%*?\[\\\]^`{|}\x00-\x1f\x7f]")
_STANDARD = "standard"  # a value of SDA_SCREENING_VOLUMES that is no file


class UnknownSetting(Exception):
    """The environment has a variable with the platform's prefix that names no setting."""


class UnusablePlace(Exception):
    """Home, lake or landing zones are at a place that a part of the platform cannot use."""


class Settings(BaseSettings):
    """The platform's settings. Each is overridden by the environment variable that `declared_settings` names."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    home: Path = Field(Path("var"), description="Home directory: everything that the platform stores on this machine.")
    lake: str = Field("", description="Place of the lake: a path or s3://bucket/prefix; empty: <home>/lake.")
    landing: str = Field("", description="Place of the landing zones, likewise; empty: <home>/landing.")
    spark_remote: str = Field(
        "",
        description="The engine: empty = the local server that `sda up` runs; sc://host:port = a remote one; "
        "local = a session inside this process.",
    )
    driver_memory: str = Field("3g", description="Heap of the local engine (JVM notation).")
    subscriber: str = Field(
        "",
        repr=False,  # it may hold a password
        json_schema_extra={IS_FILE: True},
        description="Receiver of alerts: a path or sqlite:///path, postgresql://user:password@host/database, "
        "https://host/path; empty: <home>/subscriber.sqlite.",
    )
    collect: str = Field(
        "",
        json_schema_extra={IS_FILE: True},
        description="Configuration of the collectors (TOML); empty: <home>/collect.toml, if it is there.",
    )
    failure_webhook: str = Field(
        "",
        repr=False,
        description="URL that gets a notice of each fault that begins, lasts or is over, and reports of failed runs; "
        "empty: only the log.",
    )
    escalation_webhook: str = Field(
        "",
        repr=False,
        description="URL that gets the same notices once a fault has lasted for `SDA_NOTICE_REPEAT_S`; empty: none.",
    )
    otlp_endpoint: str = Field(
        "", description="Address of an OpenTelemetry collector (http://host:4318) for `sda alert trace`; empty: none."
    )
    ui_url: str = Field("", description="Address of the Dagster UI in links; empty: this machine, at webserver_port.")
    webserver_host: str = Field(
        "127.0.0.1",
        description="Address of the Dagster UI. Open it to a network with users and behind a proxy with TLS only.",
    )
    http_hosts: tuple[str, ...] = Field(
        (),
        description="Names with a dot, beside that of `SDA_UI_URL`, under which clients reach the HTTP servers, as "
        'JSON: ["sda.example.org"].',
    )
    webserver_port: int = Field(3000, description="Port of the Dagster UI; if it is busy, a free one is used.")
    health_port: int = Field(
        3001, description="Port of `/health` and `/metrics`; if it is busy, `sda up` uses a free one, on loopback."
    )
    health_host: str = Field("127.0.0.1", description="Address of the same of `sda service watchdog`; it has no login.")
    code_server: str = Field(
        "127.0.0.1:4000",
        description="Where `sda service code-server` listens and its peers find it (host:port, or unix:path on one "
        "machine); it has no login.",
    )
    site: str = Field("main", description="Name of this site in edits of the catalogue; each site needs its own.")
    engine_port: int = Field(15002, description="Port of the local engine; if it is busy, a free one is used.")
    hung_after_s: float = Field(
        60.0, ge=3.0, description="Seconds without an answer after which a process of the platform is restarted."
    )
    sensor_interval_s: float = Field(
        0.5, ge=0.1, description="Time between two looks of a landing sensor at its zones, seconds."
    )
    segment_max_bytes: int = Field(
        64 * 2**20, ge=64 * 2**10, le=64 * 2**20, description="Largest segment that `sda land` seals, bytes."
    )
    own_elements: bool = Field(True, description="Whether element sets are determined from tracks.")
    fusion_refresh: bool = Field(
        True, description="Whether time-tag biases, element sets and reports are computed every two minutes."
    )
    tasking: bool = Field(True, description="Whether sensors are scheduled every ten minutes.")
    etcd: tuple[str, ...] = Field(
        (), description='Addresses of etcd for leases, as JSON: ["http://host:2379"]; empty: this is the only site.'
    )

    station_state: tuple[str, ...] = Field(
        (),
        repr=False,  # they may hold passwords
        description="Servers of the replicated station state, leader and followers, as JSON: "
        '["postgresql://user:password@host/database", …]; empty: none.',
    )

    access: AccessSettings = AccessSettings()
    notification: NotifySettings = NotifySettings()
    intake: IntakeSettings = IntakeSettings()
    growth: GrowthSettings = GrowthSettings()
    retention: RetentionSettings = RetentionSettings()
    serving: ServingSettings = ServingSettings()
    fusion: FusionSettings = FusionSettings()
    weather: SpaceWeatherSettings = SpaceWeatherSettings()
    screening: ScreeningSettings = ScreeningSettings()
    alerting: AlertSettings = AlertSettings()
    refinement: RefinementSettings = RefinementSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    vitals: VitalsSettings = VitalsSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment: the variables of the sections and those of single settings."""
        return init_settings, _SectionVariables(settings_cls), env_settings

    @model_validator(mode="before")
    @classmethod
    def _environment_is_known(cls, values: Any) -> Any:
        require_known_variables(os.environ)
        return values

    @model_validator(mode="after")
    def _places_are_usable(self) -> Self:
        for variable, uri in (("SDA_LAKE", self.lake), ("SDA_LANDING", self.landing)):
            if _SCHEME.match(uri) and not uri.startswith(_OBJECT_STORE):
                raise UnusablePlace(f"{variable}: {uri} is neither a path nor s3://bucket/prefix: write one of these")
        for variable, path in (("SDA_HOME", str(self.home.absolute())), ("SDA_LAKE", self.lake_uri)):
            if found := _NOT_IN_A_PATH.search(path):
                raise UnusablePlace(
                    f"{variable}: the path {path!r} has the character {found[0]!r}, which delta-rs, Spark or SQLite "
                    "cannot use there: choose another place"
                )
        return self

    @model_validator(mode="after")
    def _has_lists(self) -> Self:
        return self.with_lists_of_home()

    def with_lists_of_home(self) -> Self:
        """Look for the lists that no variable names in the home: again, where it has become another."""
        for _, section in self:
            if isinstance(section, HomeLists):
                section.lists_in = str(self.home.absolute())
        return self

    @property
    def collect_path(self) -> Path:
        """Return the path of the collectors' configuration."""
        return Path(self.collect).absolute() if self.collect else self.home.absolute() / "collect.toml"

    @property
    def lake_uri(self) -> str:
        """Return where the tables are."""
        return _place(self.lake or str(self.home / "lake"))

    @property
    def shown_ui_url(self) -> str:
        """How links to the Dagster UI begin."""
        return self.ui_url.rstrip("/") or f"http://127.0.0.1:{self.webserver_port}"

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """Names with a dot of the HTTP servers: those that are listed, and that of the address in links."""
        named = urlsplit(self.ui_url).hostname
        return (*self.http_hosts, named) if named else self.http_hosts

    @property
    def landing_uri(self) -> str:
        """Return where the landing zones are."""
        return _place(self.landing or str(self.home / "landing"))

    def environment(self) -> dict[str, str]:
        """The variables that give a process in any directory these settings; relative paths are made absolute."""
        variables = {}
        for variable, path, field in declared_settings():
            value: Any = self
            for name in path:
                value = getattr(value, name)
            is_path = value and isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get(IS_FILE)
            variables[variable] = _place(value) if is_path and value != _STANDARD else _written(value)
        places = {"HOME": str(self.home.absolute()), "LAKE": self.lake_uri, "LANDING": self.landing_uri}
        return variables | {PREFIX + name: place for name, place in places.items()}


class Declared(NamedTuple):
    """A setting: its environment variable, the attributes that lead to it, and its field."""

    variable: str
    path: tuple[str, ...]
    field: FieldInfo


def declared_settings() -> Iterator[Declared]:
    """Every setting. A variable that several sections use comes once for each."""
    for name, field in Settings.model_fields.items():
        if not _is_section(field.annotation):
            yield Declared(PREFIX + name.upper(), (name,), field)
            continue
        for inner, each in field.annotation.model_fields.items():
            facts = each.json_schema_extra
            if isinstance(facts, dict):  # others follow from the home
                yield Declared(str(facts[VARIABLE]), (name, inner), each)


class _SectionVariables(PydanticBaseSettingsSource):
    """Reads the variables of the sections. Names are compared without regard to case, as others are."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Nothing: sections are read as a whole."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The values by section. An argument for one section counts for each that uses the same variable."""
        given = {name.upper(): text for name, text in os.environ.items()}
        inner = [setting for setting in declared_settings() if len(setting.path) == 2]
        values = {
            variable: self._parsed(variable, field, given[variable])
            for variable, _, field in inner
            if variable in given
        }
        for variable, (section, name), _ in inner:
            arguments = self.current_state.get(section)
            if isinstance(arguments, dict) and name in arguments:
                values[variable] = arguments[name]
        found: dict[str, Any] = {}
        for variable, (section, name), _ in inner:
            if variable in values:
                found.setdefault(section, {})[name] = values[variable]
        return found

    def _parsed(self, variable: str, field: FieldInfo, text: str) -> Any:
        if not self.field_is_complex(field):
            return text
        try:
            return json.loads(text)
        except ValueError as error:
            raise SettingsError(f"{variable} is not JSON: {error}") from None


def _is_section(annotation: Any) -> TypeGuard[type[SettingsSection]]:
    return isinstance(annotation, type) and issubclass(annotation, SettingsSection)


def _written(value: Any) -> str:
    """``value`` as an environment variable holds it."""
    return str(value) if isinstance(value, str | Path) else json.dumps(value)


def _place(uri: str) -> str:
    """``uri``, where it is a path made absolute."""
    return uri if "://" in uri else str(Path(uri).absolute())


def require_known_variables(environment: Mapping[str, str]) -> None:
    """Raise UnknownSetting where ``environment`` has a variable with the prefix that names no setting.

    Names are compared without regard to case, as settings are read. Values are not shown: they may be secret.
    """
    known = {*(setting.variable for setting in declared_settings()), *OTHER_VARIABLES}
    unknown = sorted(name for name in environment if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise UnknownSetting("; ".join(_refusal(name, known) for name in unknown))


def _refusal(name: str, known: set[str]) -> str:
    close = get_close_matches(name.upper(), sorted(known), n=1)
    remedy = f"did you mean {close[0]}?" if close else "unset it; sda_platform/settings.py lists the settings"
    return f"{name} is not a setting: {remedy}"

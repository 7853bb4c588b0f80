"""The collector's configuration: one TOML file, read again when it changes.

    [collector]
    control = "127.0.0.1:9100"
    seal_after_s = 0.1

    [sources.radar-north]
    kind = "radar"
    bind = "127.0.0.1:7001"

Each kind of source is a model here; docs/reference/collectors.md lists their options. Secrets are not in the file: it
names the environment variables that hold them.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from sda_platform.edge.address import Address
from sda_platform.edge.file_options import FolderConfig, PullConfig, UploadConfig
from sda_platform.edge.options import HOSTS, HostAndPort, MarkedOptions, Options, require_token
from sda_platform.edge.providers import ProviderConfig, SpaceWeatherConfig
from sda_platform.edge.senders import AllowedSenders, mutual_tls
from sda_platform.edge.sources.element_refresh import ElementRefresh
from sda_platform.edge.sources.framed_server import LinkSource, TelemetrySource
from sda_platform.edge.sources.optical import OpticalSource
from sda_platform.edge.sources.radar import RadarSource
from sda_platform.edge.sources.source import DEFAULT_QUOTA, REFUSED_FILES, REFUSED_FRAMES, Services, Source
from sda_platform.edge.sources.station import StationSource
from sda_platform.formats.markings import MARKS, UNMARKED
from sda_platform.toml_file import edit_toml, read_toml, subtables

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


class ConfigError(ValueError):
    """The file cannot be used; the text names the file, the option and what is wrong."""


_EMERGENCIES: Final = (
    "Telemetry frames a minute that may count as emergency traffic, as their senders flag them; 0: none. Others count "
    "as routine."
)


class _ListeningConfig(MarkedOptions):
    allow: tuple[str, ...] = Field(
        (), description="Addresses and networks that may send, such as 10.1.0.0/16; empty: every sender."
    )

    @model_validator(mode="after")
    def _has_networks(self) -> Self:
        _ = self.senders
        return self

    @property
    def senders(self) -> AllowedSenders:
        """Who may send. Raises ValueError for what is no network."""
        return AllowedSenders([ip_network(each) for each in self.allow])

    @property
    def is_open(self) -> bool:
        """Whether what comes from any sender lands."""
        return not self.allow


class RadarConfig(_ListeningConfig):
    """Radar frames over UDP."""

    kind: Literal["radar"]
    bind: HostAndPort = Field(description="Address at which it listens.")
    receive_buffer_bytes: int = Field(4 * 2**20, gt=0, description="Size of the socket's receive buffer.")

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        return RadarSource(
            name, services, bind=self.bind, receive_buffer_bytes=self.receive_buffer_bytes, allowed=self.senders
        )


class FramedConfig(_ListeningConfig):
    """Links or telemetry over TCP, from senders that connect; with certificates of both sides, if it has one."""

    kind: Literal["isl", "telemetry"]
    bind: HostAndPort = Field(description="Address at which it listens.")
    acknowledge: bool = Field(False, description="Whether the sender gets acknowledgements of synced frames.")
    max_connections: int = Field(256, gt=0, le=4096, description="Largest number of senders at once.")
    emergencies_per_minute: int = Field(Source.emergencies_per_minute, ge=0, description=_EMERGENCIES)
    certificate: Path | None = Field(None, description="Certificate of this server (PEM); none: no TLS.")
    key: Path | None = Field(None, description="Its private key (PEM).")
    sender_authority: Path | None = Field(
        None, description="Authorities (PEM), one of which must have certified each sender."
    )

    @model_validator(mode="after")
    def _has_all_of_tls(self) -> "FramedConfig":
        files = (self.certificate, self.key, self.sender_authority)
        if any(files) and not all(files):
            raise ValueError("TLS needs certificate, key and sender_authority")
        try:
            self._tls()
        except OSError as error:
            raise ValueError(f"certificate, key or sender_authority cannot be used: {error}") from None
        return self

    @property
    def is_open(self) -> bool:
        """Whether what comes from any sender lands."""
        return not self.allow and self.certificate is None

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        made = LinkSource if self.kind == "isl" else TelemetrySource
        source = made(
            name,
            services,
            bind=self.bind,
            acknowledges=self.acknowledge,
            max_connections=self.max_connections,
            allowed=self.senders,
            tls=self._tls,
        )
        source.emergencies_per_minute = self.emergencies_per_minute
        return source

    def _tls(self) -> ssl.SSLContext | None:
        if self.certificate is None or self.key is None or self.sender_authority is None:
            return None
        return mutual_tls(self.certificate, self.key, self.sender_authority)


class StationConfig(MarkedOptions):
    """A ground station that is called."""

    kind: Literal["station"]
    address: HostAndPort = Field(description="Address of the station.")
    elements_url: str = Field("", description="Service with `/tle/<norad_id>`, the element set; empty: none.")
    norad_id: int | None = Field(None, description="The satellite whose set is requested, and landed.")
    refresh_s: float = Field(600.0, ge=60.0, description="Time between two requests of that set, seconds.")
    emergencies_per_minute: int = Field(Source.emergencies_per_minute, ge=0, description=_EMERGENCIES)

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        refresh = None
        if self.elements_url and self.norad_id is not None:
            refresh = ElementRefresh(self.elements_url, self.norad_id, interval_s=self.refresh_s)
        source = StationSource(name, services, address=self.address, elements=refresh)
        source.emergencies_per_minute = self.emergencies_per_minute
        return source


class OpticalConfig(MarkedOptions):
    """An optical archive over HTTP."""

    kind: Literal["optical"]
    url: str = Field(description="The archive; it is requested with `?since=<ns>`, and `&until=<ns>`.")
    poll_interval_s: float = Field(5.0, gt=0.0, description="Pause between two requests, seconds.")
    wait_ms: int = Field(0, ge=0, le=60_000, description="How long the archive may hold a request; 0: no long polling.")
    overlap_s: float = Field(60.0, ge=0.0, le=86_400.0, description="Time that is requested again, seconds.")
    archive_s: float = Field(86_400.0, gt=0.0, description="How long the archive keeps a record, seconds.")

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        options = self.model_dump(exclude={"kind", *MARKS})
        return OpticalSource(name, services, **options)


SourceConfig = (
    RadarConfig
    | FramedConfig
    | StationConfig
    | OpticalConfig
    | FolderConfig
    | UploadConfig
    | PullConfig
    | SpaceWeatherConfig
)
DescribedConfig = Annotated[SourceConfig | ProviderConfig, Field(discriminator="kind")]
"""What a section of the file may be: a source, or several of one provider."""


class ServiceConfig(Options):
    """What concerns all sources."""

    control: HostAndPort = Field(Address("127.0.0.1", 9100), description="Address of `/health`, `/metrics` and others.")
    hosts: tuple[str, ...] = Field((), description=HOSTS)
    token_variable: str = Field("", description="Environment variable with their token; required beyond loopback.")
    internal_names: tuple[str, ...] = Field((), description="Names of archives whose addresses may be private.")
    seal_after_s: float = Field(0.1, gt=0.0, le=60.0, description="Longest wait of a record for its segment, seconds.")
    deferred_seal_after_s: float = Field(5.0, gt=0.0, le=300.0, description="The same for deferred records, seconds.")
    segment_max_bytes: int = Field(64 * 2**20, ge=64 * 2**10, le=64 * 2**20, description="Largest segment.")
    least_free_bytes: int = Field(
        512 * 2**20,
        ge=0,
        description="Free space below which no file is taken: the rest is for live records.",
    )
    quota_bytes: int = Field(
        round(DEFAULT_QUOTA["bytes"]),
        gt=0,
        description="Bytes, expanded, that one source may land in a minute.",
    )
    quota_records: int = Field(
        round(DEFAULT_QUOTA["records"]), gt=0, description="Records that one source may land in a minute."
    )
    quota_refused: int = Field(
        round(DEFAULT_QUOTA[REFUSED_FILES]), gt=0, description="Files of one source that may be refused in a minute."
    )
    quota_refused_frames: int = Field(
        round(DEFAULT_QUOTA[REFUSED_FRAMES]),
        gt=0,
        description="Live frames of one source that may become dead letters in a minute.",
    )
    backlog_max_bytes: int = Field(512 * 2**20, gt=0, description="Pending bytes of a zone that defer low priority.")
    backlog_max_segments: int = Field(4_096, gt=0, description="Pending segments of a zone that defer low priority.")

    @model_validator(mode="after")
    def _has_token(self) -> "ServiceConfig":
        require_token(self.control, self.token_variable)
        return self

    @property
    def quota(self) -> dict[str, float]:
        """What one source may use in a minute."""
        return {
            "bytes": self.quota_bytes,
            "records": self.quota_records,
            REFUSED_FILES: self.quota_refused,
            REFUSED_FRAMES: self.quota_refused_frames,
        }

    @property
    def token(self) -> str:
        """What clients of the control plane must send; empty on loopback, unless a variable is named."""
        return os.environ.get(self.token_variable, "") if self.token_variable else ""


class CollectorConfig(Options):
    """The whole file."""

    collector: ServiceConfig = Field(default_factory=ServiceConfig)
    described: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")], DescribedConfig] = Field(
        default_factory=dict, alias="sources"
    )

    @cached_property
    def sources(self) -> dict[str, SourceConfig]:
        """Return the sources by name, those of a provider each by its own."""
        providers = {n: each for n, each in self.described.items() if isinstance(each, ProviderConfig)}
        of_providers = {name: each for provider in providers.values() for name, each in provider.sources().items()}
        own = {n: each for n, each in self.described.items() if not isinstance(each, ProviderConfig)}
        return {**of_providers, **own}


def built(name: str, described: SourceConfig, services: Services) -> Source:
    """Return the source that is described."""
    marking = UNMARKED if isinstance(described, SpaceWeatherConfig) else described.marking
    return described.build(name, replace(services, marking=marking))


def load_config(path: Path) -> CollectorConfig:
    """Return the configuration in the file at ``path``. Raises ConfigError."""
    return read_toml(path, CollectorConfig, ConfigError)


def add_source(path: Path, name: str, options: Mapping[str, str]) -> None:
    """Add a source with these options, such as its kind, to the file at ``path``, or begin it.

    One that is there already with these options stays: a command that was interrupted can be repeated. Raises
    ConfigError with the reason; then the file is as it was.
    """

    def add(document: "TOMLDocument") -> None:
        sources = subtables(document, "sources")
        if name not in sources:
            sources[name] = {**options}
        elif sources[name] != options:
            raise ConfigError(f"{path}: there is a source {name!r} already")

    edit_toml(path, add, CollectorConfig, ConfigError)

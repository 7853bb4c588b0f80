"""The sources that bring files: a watched folder, uploads, and archives that are requested."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sda_platform.edge.options import HOSTS, HostAndPort, MarkedOptions, require_token
from sda_platform.edge.sources.folder import FolderSource
from sda_platform.edge.sources.pull import LEAST_INTERVAL_S, Login, PullSource
from sda_platform.edge.sources.source import Services, Source
from sda_platform.edge.sources.upload import UploadSource
from sda_platform.formats.registry import PARTNER_ZONES, ZONES

Rank = Annotated[
    int | None,
    Field(ge=0, le=100, description="Rank of element sets from here: at equal epochs the higher wins; none: 0."),
]


class _FilesConfig(MarkedOptions):
    """A way for files of partners."""

    zones: tuple[str, ...] = Field(
        PARTNER_ZONES, min_length=1,
        description="Landing zones that its files may reach. Those of `edits`, `ground`, `membership`, "
        "`acknowledgements` and `metrics` decide and command: name them for a site that you trust as your own.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _has_known_zones(self) -> Self:
        if unknown := sorted({*self.zones} - {*ZONES}):
            raise ValueError(f"{unknown[0]!r} is no landing zone; they are {', '.join(ZONES)}")
        return self


class FolderConfig(_FilesConfig):
    """A folder that partners copy files to."""

    kind: Literal["folder"]
    path: Path = Field(description="The folder.")
    done: Path | None = Field(
        None, description="Where files go once they were landed or refused: outside the folder. By default PATH-done."
    )
    interval_s: float = Field(1.0, gt=0.0, description="Time between two scans, seconds.")
    settle_s: float = Field(2.0, ge=0.0, description="How long a file must be unchanged before it lands, seconds.")
    rank: Rank = None

    @model_validator(mode="after")
    def _keeps_done_files_from_partners(self) -> Self:
        if self.done and self.done.resolve().is_relative_to(self.path.resolve()):
            raise ValueError(f"done = {str(self.done)!r} lies in the folder, where partners can write")
        return self

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        return FolderSource(
            name, services, path=self.path, done=self.done, interval_s=self.interval_s, settle_s=self.settle_s,
            zones=self.zones, rank=self.rank,
        )  # fmt: skip


class UploadConfig(_FilesConfig):
    """HTTP uploads; beyond loopback a token is needed."""

    kind: Literal["upload"]
    bind: HostAndPort = Field(description="Address at which it listens.")
    hosts: tuple[str, ...] = Field((), description=HOSTS)
    token_variable: str = Field("", description="Environment variable with the token; required beyond loopback.")
    max_bytes: int = Field(2**30, gt=0, description="Largest upload.")
    rank: Rank = None

    @model_validator(mode="after")
    def _has_token(self) -> "UploadConfig":
        require_token(self.bind, self.token_variable)
        return self

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        token = os.environ.get(self.token_variable, "") if self.token_variable else ""
        return UploadSource(
            name, services, bind=self.bind, hosts=self.hosts, token=token, max_bytes=self.max_bytes, zones=self.zones,
            rank=self.rank,
        )  # fmt: skip


class PullConfig(MarkedOptions):
    """A public catalogue that is requested periodically."""

    kind: Literal["pull"]
    url: str = Field(
        description="What is requested; `{fleet}` stands for the numbers of the fleet, `{days}` for the days since the "
        "last answer (7 at first)."
    )
    zone: Literal["elements", "messages", "satellites", "ephemerides", "tracking"] = Field(
        "elements", description="Landing zone of the answer."
    )
    format: str = Field(description="Format of the answer, one of the zone's.")
    interval_s: float = Field(7_200.0, ge=LEAST_INTERVAL_S, description="Time between two requests, seconds.")
    login: Literal["", "space-track"] = Field("", description="Form that opens a session; empty: none.")
    rank: Rank = None

    @model_validator(mode="after")
    def _format_fits(self) -> "PullConfig":
        if self.format not in ZONES[self.zone]:
            raise ValueError(f"zone {self.zone} carries {', '.join(ZONES[self.zone])}, not {self.format!r}")
        return self

    def build(self, name: str, services: Services) -> Source:
        """Return the source that this describes."""
        login = Login() if self.login else None
        return PullSource(
            name, services, url=self.url, zone=self.zone, segment_format=self.format, interval_s=self.interval_s,
            login=login, rank=self.rank,
        )  # fmt: skip

"""The content of `notify.toml`: which changes of which alerts go to which channels, and when."""

from datetime import time
from typing import Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from sda_platform.clock import parse_span_ns
from sda_platform.notification.quiet_hours import quiet_hours, time_zone

Change = Literal["begun", "raised", "lowered", "revised", "withdrawn"]
CHANGES: Final[tuple[Change, ...]] = ("begun", "raised", "lowered", "revised", "withdrawn")


_Span = Annotated[int, BeforeValidator(parse_span_ns)]
CHANNEL_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
_Name = Annotated[str, StringConstraints(pattern=CHANNEL_NAME)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class ChannelEntry(_Entry):
    """Where the address of a channel is: in an environment variable, or in a file that only its user may read."""

    url_variable: str = ""
    url_file: str = ""

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if bool(self.url_variable) == bool(self.url_file):
            raise ValueError("name either url_variable or url_file: an address holds secrets")
        return self


class RuleEntry(_Entry):
    """A rule: it selects alerts, changes of them and times. What is empty selects all.

    Spans are ns. ``unacknowledged_for``: it sends nothing before an alert has been at its level for so long without an
    acknowledgement, and nothing after one.
    """

    name: str = Field(min_length=1, max_length=100)
    channels: tuple[_Name, ...] = Field(min_length=1)
    levels: tuple[Literal["red", "yellow"], ...] = ()
    satellites: tuple[int | str, ...] = ()
    operators: tuple[str, ...] = ()
    within: _Span | None = None
    changes: tuple[Change, ...] = CHANGES
    quiet: Annotated[tuple[time, time], BeforeValidator(quiet_hours)] | None = None
    timezone: Annotated[ZoneInfo, BeforeValidator(time_zone)] = ZoneInfo("UTC")
    unacknowledged_for: _Span | None = None


class NotifyFile(_Entry):
    """The content of `notify.toml`. ``console``: the address of the console in messages; empty: they have no link."""

    console: str = ""
    channels: dict[_Name, ChannelEntry] = Field(min_length=1)
    rules: tuple[RuleEntry, ...] = ()

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [rule.name for rule in self.rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two rules have the name {twice[0]!r}")
        for rule in self.rules:
            if unknown := sorted({*rule.channels} - {*self.channels}):
                raise ValueError(f"rule {rule.name!r} names {unknown[0]!r}, which is no channel")
        return self

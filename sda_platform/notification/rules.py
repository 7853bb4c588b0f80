"""The rules of notification: `notify.toml` says which changes of which alerts go to which channels, and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from sda_platform.clock import parse_span_ns
from sda_platform.conjunction.fleet import protected_fleet
from sda_platform.conjunction.selection import EventSelection, UnknownOperator, satellites_of
from sda_platform.formats.listings import ListingError
from sda_platform.lake.errors import Misconfigured
from sda_platform.settings import Settings
from sda_platform.toml_file import read_toml
from sda_platform.units import SECOND_NS

Change = Literal["begun", "raised", "lowered", "revised", "withdrawn"]
CHANGES: Final[tuple[Change, ...]] = ("begun", "raised", "lowered", "revised", "withdrawn")


def _quiet_hours(text: Any) -> tuple[time, time]:
    begin, separator, end = str(text).partition("-")
    if not separator:
        raise ValueError(f"{text!r} are no quiet hours, such as 22:00-06:00")
    hours = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
    if hours[0] == hours[1] or any(each.tzinfo for each in hours):
        raise ValueError(f"{text!r} are no quiet hours, such as 22:00-06:00; the zone is the rule's `timezone`")
    return hours


def _zone(name: Any) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    except (OSError, ValueError, LookupError):  # each is raised for some names
        raise ValueError(f"{name!r} is no time zone, such as Europe/Berlin") from None


_Span = Annotated[int, BeforeValidator(parse_span_ns)]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]


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
    quiet: Annotated[tuple[time, time], BeforeValidator(_quiet_hours)] | None = None
    timezone: Annotated[ZoneInfo, BeforeValidator(_zone)] = ZoneInfo("UTC")
    unacknowledged_for: _Span | None = None

    def is_quiet(self, now_ns: int) -> bool:
        """Return whether ``now_ns`` is in the quiet hours; they begin and end by the clock of the rule's zone."""
        if self.quiet is None:
            return False
        begin, end = self.quiet
        now = datetime.fromtimestamp(now_ns // SECOND_NS, UTC).astimezone(self.timezone).time()
        return begin <= now < end if begin < end else now >= begin or now < end


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


def rules_path(settings: Settings) -> Path:
    """Return where the rules are."""
    named = settings.notification.rules
    return Path(named).absolute() if named else settings.home.absolute() / "notify.toml"


@dataclass(frozen=True)
class NotifyRules:
    """The rules in force. ``satellites``: the catalogue numbers of each operator that a rule names."""

    file: NotifyFile
    satellites: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def load(cls, settings: Settings) -> Self | None:
        """Return the rules of the platform; None where none are configured. Raises Misconfigured."""
        path = rules_path(settings)
        if not settings.notification.rules and not path.exists():
            return None
        file = read_toml(path, NotifyFile, Misconfigured)
        operators = {name for rule in file.rules for name in rule.operators}
        if not operators:
            return cls(file)
        try:
            fleet = protected_fleet(Path(settings.screening.fleet) if settings.screening.fleet else None)
            return cls(file, {name: satellites_of(fleet, name) for name in operators})
        except (UnknownOperator, ListingError) as error:
            raise Misconfigured(f"{path}: {error}") from None

    def of_channel(self, channel: str) -> list[RuleEntry]:
        """Return the rules that send to a channel."""
        return [rule for rule in self.file.rules if channel in rule.channels]

    def selects(self, rule: RuleEntry, alert: Mapping[str, Any], now_ns: int) -> bool:
        """Return whether a rule is about an alert at ``now_ns``, whatever its changes and quiet hours."""
        numbers = [self.satellites[name] for name in rule.operators]
        until_ns = None if rule.within is None else now_ns + rule.within
        common = EventSelection(
            frozenset(rule.levels), norad_ids=frozenset().union(*numbers) if numbers else None, until_ns=until_ns
        )
        named = [EventSelection(satellite=str(each)) for each in rule.satellites]
        return common.has(alert) and (not named or any(each.has(alert) for each in named))

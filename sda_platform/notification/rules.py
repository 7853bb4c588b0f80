"""The rules of notification that are in force: `notify.toml`, with the satellites of the operators that it names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sda_platform.conjunction.selection import EventSelection, UnknownOperator, satellites_of
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.listings import ListingError
from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.notify_file import NotifyFile, RuleEntry
from sda_platform.settings import Settings
from sda_platform.toml_file import read_toml


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
            fleet = protected_fleet(settings.screening.fleet_file)
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

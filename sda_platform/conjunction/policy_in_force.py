"""The alert policy by which the newest alerts were made."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.errors import NotReplayable
from sda_platform.lake.lake import Lake
from sda_platform.setting_sections import AlertSettings

_MEMBERS: Final = "members"


def policy_in_force(lake: Lake) -> AlertPolicy:
    """Return the alert policy that the newest commit of alerts records; without one, the default policy.

    Raises NotReplayable where a later release recorded a setting that this one does not know.
    """
    commit = lake.log(CONJUNCTION_ALERTS).head().commit
    recorded: Mapping[str, Any] = (commit.manifest.settings or {}).get("alerting") or {} if commit else {}
    if unknown := sorted(recorded.keys() - AlertSettings.model_fields.keys() - {_MEMBERS}):
        raise NotReplayable(f"this version of the platform has no setting {', '.join(unknown)} of alerts")
    settings = AlertSettings(**{name: value for name, value in recorded.items() if name != _MEMBERS})
    return AlertPolicy(settings, levels_by_number(recorded.get(_MEMBERS) or {}))


def levels_by_number(members: Mapping[str, Sequence[float]]) -> dict[int, tuple[float, float]]:
    """Return the members' levels of Pc (yellow, red) by catalogue number, of what a commit records of them."""
    return {int(number): (levels[0], levels[1]) for number, levels in members.items()}

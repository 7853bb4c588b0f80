"""What a channel was sent, and what it has not taken yet: one small file for each channel, in the platform's home.

`<home>/notify/<channel>.json` is written, synced, before a message is sent, and again when it was taken. A process that
is killed in between sends the message again under the same key.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from upath import UPath

from sda_platform.lake import durable
from sda_platform.notification.due import FollowedAlert
from sda_platform.notification.message import PeopleMessage

_FOLDER = "notify"
SCHEMA_VERSION = 1
MOST_REFUSALS = 20


@dataclass(frozen=True)
class RefusedMessage:
    """A message that the service refused for good: its title, why, and when, wall Unix seconds."""

    title: str
    reason: str
    at_s: float


@dataclass(frozen=True)
class ChannelState:
    """What each rule follows, by its name; the message that waits, since when, and how often it was refused and why.

    ``late``: the other channels that were reported to this one as silent. ``refused``: the newest messages that were
    refused for good; ``refusals_reported_s``: until when those of other channels were reported to this one. Times are
    wall, Unix seconds.
    """

    followed: Mapping[str, Mapping[str, FollowedAlert]] = field(default_factory=dict)
    late: tuple[str, ...] = ()
    pending: PeopleMessage | None = None
    pending_since_s: float = 0.0
    attempts: int = 0
    problem: str = ""
    refused: tuple[RefusedMessage, ...] = ()
    refusals_reported_s: float = 0.0

    def late_s(self, now_s: float) -> float:
        """Return for how long a message has waited; 0 where none waits."""
        return max(now_s - self.pending_since_s, 0.0) if self.pending else 0.0


def load(home: Path, channel: str) -> ChannelState:
    """Return the state of a channel; a new one where none was stored, or not whole."""
    try:
        content = json.loads((home / _FOLDER / f"{channel}.json").read_text())
        if content.pop("schema_version") != SCHEMA_VERSION:
            return ChannelState()
        followed = {
            rule: {alert: FollowedAlert(**each) for alert, each in alerts.items()}
            for rule, alerts in content.pop("followed").items()
        }
        pending = content.pop("pending")
        late = tuple(content.pop("late"))
        refused = tuple(RefusedMessage(**each) for each in content.pop("refused", ()))
        message = PeopleMessage(**{**pending, "alerts": tuple(pending.get("alerts", ()))}) if pending else None
        return ChannelState(followed, late, message, refused=refused, **content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ChannelState()


def store(home: Path, channel: str, state: ChannelState) -> None:
    """Make the state of a channel durable. Raises OSError."""
    (home / _FOLDER).mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(state)}, indent=1)
    durable.write(UPath(home / _FOLDER / f"{channel}.json"), (text + "\n").encode())

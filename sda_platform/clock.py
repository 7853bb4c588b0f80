"""The mission clock: the one place from which the platform learns what time it is.

Live, mission time is wall time. A demo, a test or a replay sets it to the data's day and lets it run at a chosen rate.
So freshness, watermarks and ``as_of`` mean the same everywhere. The setting is a small file in the platform's home,
because sensors, runs and the command line are different processes and must agree.
"""

import json
import re
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sda_platform.units import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS
from sda_platform.whole_files import replace_content

CLOCK_FILE = "clock.json"
_UNITS_NS = {"s": SECOND_NS, "min": MINUTE_NS, "h": HOUR_NS, "d": DAY_NS}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_SPAN = re.compile(rf"([0-9]{{1,6}}(?:\.[0-9]{{1,3}})?)({'|'.join(_UNITS_NS)})")


@dataclass(frozen=True)
class MissionClock:
    """``mission = mission_epoch_ns + rate * (wall - wall_epoch_ns)``; all in nanoseconds since 1970, UTC."""

    mission_epoch_ns: int = 0
    wall_epoch_ns: int = 0
    rate: float = 1.0

    @classmethod
    def starting_at(
        cls, mission_epoch_ns: int, *, rate: float = 1.0, wall_epoch_ns: int | None = None
    ) -> "MissionClock":
        """A clock that reads ``mission_epoch_ns`` now and runs at ``rate`` times wall speed (0 = stopped)."""
        return cls(mission_epoch_ns, time.time_ns() if wall_epoch_ns is None else wall_epoch_ns, rate)

    @classmethod
    def load(cls, home: Path) -> "MissionClock":
        """Return the clock saved in ``home``, or wall time where none was saved."""
        path = home / CLOCK_FILE
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def save(self, home: Path) -> None:
        """Make this the clock of every process that works in ``home``."""
        home.mkdir(parents=True, exist_ok=True)
        replace_content(home / CLOCK_FILE, json.dumps(asdict(self)))

    def now_ns(self, wall_ns: int | None = None) -> int:
        """Mission time, nanoseconds since 1970 UTC, at ``wall_ns`` (default: now)."""
        wall = time.time_ns() if wall_ns is None else wall_ns
        return self.mission_epoch_ns + round((wall - self.wall_epoch_ns) * self.rate)

    def wall_ns(self, mission_ns: int) -> int | None:
        """Return the wall time, ns since 1970 UTC, at which this clock shows ``mission_ns``; None if the clock is
        stopped.
        """
        return self.wall_epoch_ns + round((mission_ns - self.mission_epoch_ns) / self.rate) if self.rate else None


def utc(time_ns: int) -> datetime:
    """``time_ns`` as an aware datetime, truncated to microseconds."""
    seconds, nanoseconds = divmod(time_ns, SECOND_NS)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000)


def iso(time_ns: int) -> str:
    """``time_ns`` as ISO 8601 with milliseconds and Z."""
    return utc(time_ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_to_second(time_ns: int) -> str:
    """``time_ns`` as ISO 8601 with whole seconds and Z, as people read it."""
    return f"{iso(time_ns)[:19]}Z"


def parse_iso_ns(text: str) -> int:
    """Nanoseconds since 1970 of an ISO 8601 instant; without an offset it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * SECOND_NS + moment.microsecond * 1000


def parse_instant_ns(text: str, now_ns: int) -> int:
    """Nanoseconds since 1970 of an ISO 8601 instant, of now, yesterday, today or tomorrow (their beginning, UTC), or of
    a span from ``now_ns`` on: +3d, -12h. Raises ValueError.
    """
    text = text.strip()
    if text in _DAYS:
        return now_ns // DAY_NS * DAY_NS + _DAYS[text] * DAY_NS
    if text == "now":
        return now_ns
    if text[:1] in ("+", "-"):
        return now_ns + (1 if text[0] == "+" else -1) * parse_span_ns(text[1:])
    return parse_iso_ns(text)


def parse_span_ns(text: str) -> int:
    """Nanoseconds of a span of time with its unit: 3d, 12h, 90min, 30s. Raises ValueError."""
    if (found := _SPAN.fullmatch(text.strip())) is None:
        raise ValueError(f"{text[:40]!r} is no span of time, such as 3d, 12h, 90min or 30s")
    return round(float(found[1]) * _UNITS_NS[found[2]])

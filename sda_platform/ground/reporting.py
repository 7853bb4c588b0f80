"""An agent's reports of its view, sealed in the landing zone; and changes of the registry."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from upath import UPath

from sda_platform.formats.errors import RecordError
from sda_platform.formats.membership_events import ADMITTED, REMOVED, MembershipEvent, encode_membership_events
from sda_platform.formats.reading import require_readable
from sda_platform.formats.segments import Sender
from sda_platform.ground.membership_states import VIEW_EXPIRES_S
from sda_platform.ground.serf import SerfAgent, SerfMember
from sda_platform.lake import durable
from sda_platform.lake.errors import Misconfigured
from sda_platform.landing.zone import LandingZone

FORMAT: Final = "membership-jsonl"
REPORT_S: Final = VIEW_EXPIRES_S / 4
"""How often an agent reports at least: its view counts while it does."""
_NUMBERS: Final = 2**32


@dataclass
class ViewReporter:
    """Reports what the local ``agent`` sees: at once what changed, and every `REPORT_S` that it is alive itself.

    The directory ``memory`` keeps the agent's highest generation, so that a restarted one goes on above it.
    """

    agent: SerfAgent
    zone: LandingZone
    memory: Path
    clock_ns: Callable[[], int]
    name: str = ""
    generation: int = 0
    _claimed: dict[str, SerfMember] = field(default_factory=dict)
    _count: int = 0
    _next_s: float = 0.0

    def round(self, now_s: float) -> int:
        """Return the number of claims that were sealed at monotonic time ``now_s``. Raises Unavailable."""
        members = self.agent.members()
        if self.name not in members or members[self.name].claim.generation != self.generation:
            # This process or the agent was started anew.
            self._begin()
            members = self.agent.members()
        is_due = now_s >= self._next_s
        claims = [
            each
            for each in members.values()
            if self._claimed.get(each.name) != each or (is_due and each.name == self.name)
        ]
        if claims:
            self._seal(claims)
        self._claimed = members
        self._next_s = now_s + REPORT_S if is_due else self._next_s
        return len(claims)

    def _begin(self) -> None:
        self.name = self.agent.name()
        memory = UPath(self.memory / f"{self.name}.generation")
        known = int(memory.read_text()) if memory.exists() else 0
        seen = self.agent.members()[self.name].claim.generation
        self.generation = max(known, seen) + 1
        self.memory.mkdir(parents=True, exist_ok=True)
        durable.write(memory, str(self.generation).encode())
        self.agent.set_generation(self.generation)
        self._claimed, self._count, self._next_s = {}, 0, 0.0

    def _seal(self, claims: Iterable[SerfMember]) -> None:
        now_ns = self.clock_ns()
        events = []
        for each in claims:
            self._count += 1
            number, claim = self.generation * _NUMBERS + self._count, each.claim
            facts = (claim.name, now_ns, claim.generation, number, each.address, each.role)
            events.append(MembershipEvent(self.name, each.name, *facts))
        _seal(self.zone, self.name, f"{self.name}-{self.generation}-{self._count:08d}", now_ns, events)


def change_registry(zone: LandingZone, now_ns: int, who: str, members: Iterable[str], *, admits: bool) -> None:
    """Admit ``members`` to the fleet or remove them; it is durable when this returns.

    Raises Misconfigured for a name that a reader of the zone would refuse.
    """
    events = [MembershipEvent(who, name, ADMITTED if admits else REMOVED, now_ns) for name in members]
    try:
        require_readable(encode_membership_events(events), FORMAT, zone.feed)
    except RecordError as error:
        raise Misconfigured(str(error)) from None
    _seal(zone, who, f"registry-{uuid.uuid4().hex[:8]}", now_ns, events)


def _seal(zone: LandingZone, who: str, name: str, now_ns: int, events: Iterable[MembershipEvent]) -> None:
    data = encode_membership_events(events)
    zone.seal_at(now_ns, f"{name}.membership", data, FORMAT, sender=Sender(who))

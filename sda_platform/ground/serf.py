"""A local Serf agent: who it holds for what. Serf (MPL) spreads the status between agents by SWIM and gossip.

The agent runs by itself, as a service of the operating system (Debian package `serf`). It is queried with the program
`serf`, on the address of its RPC.
"""

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT
from sda_platform.ground.membership import Membership
from sda_platform.lake.errors import Unavailable

GENERATION_TAG, ROLE_TAG = "generation", "role"
_STATUSES: Final = {"alive": ALIVE, "leaving": LEFT, "left": LEFT, "failed": DEAD}
_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 1.0
_KNOWN_S: Final = 10.0


@dataclass(frozen=True)
class SerfMember:
    """A member as an agent sees it. ``claim`` has the generation that the member states in its tag, 0 without one."""

    name: str
    claim: Membership
    address: str
    role: str


@dataclass(frozen=True)
class SerfAgent:
    """The agent at the RPC address ``rpc`` (host:port)."""

    rpc: str

    def name(self) -> str:
        """Return the name under which it is a member. Raises Unavailable."""
        return str(self._answer("info")["agent"]["name"])

    def members(self) -> dict[str, SerfMember]:
        """All members by name; one whose status Serf does not know is left out. Raises Unavailable."""
        found = (_member(each) for each in self._answer("members")["members"] if each["status"] in _STATUSES)
        return {each.name: each for each in found}

    def set_generation(self, generation: int) -> None:
        """State ``generation`` in the agent's own tag, for all to see. Raises Unavailable."""
        self._run("tags", "-set", f"{GENERATION_TAG}={generation}")

    def _answer(self, command: str) -> dict[str, Any]:
        return dict(json.loads(self._run(command, "-format=json")))

    def _run(self, command: str, *arguments: str) -> str:
        program = shutil.which("serf")
        if program is None:
            raise Unavailable("the program serf is not installed; on Debian: apt-get install serf")
        line = [program, command, f"-rpc-addr={self.rpc}", *arguments]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the Serf agent at {self.rpc} does not answer within {_TIMEOUT_S:.0f} s") from None
        if done.returncode:
            raise Unavailable(f"the Serf agent at {self.rpc} does not answer: {(done.stderr or done.stdout).strip()}")
        return done.stdout


class SerfWatch:
    """The members of an agent, queried once a second in a thread: a slow agent holds up no caller."""

    def __init__(self, agent: SerfAgent) -> None:
        self._agent, self._seen, self._seen_s = agent, dict[str, SerfMember](), 0.0
        threading.Thread(target=self._follow, name="serf", daemon=True).start()

    def status(self, name: str) -> int:
        """Return the status of the member ``name``; ALIVE, which is no evidence, where it is unknown."""
        is_known = name in self._seen and time.monotonic() - self._seen_s <= _KNOWN_S
        return self._seen[name].claim.status if is_known else ALIVE

    def _follow(self) -> None:
        while True:
            with suppress(Unavailable):
                self._seen, self._seen_s = self._agent.members(), time.monotonic()
            time.sleep(_POLL_S)


def _member(fields: Mapping[str, Any]) -> SerfMember:
    tags = fields["tags"] or {}
    generation = tags.get(GENERATION_TAG, "")
    claim = Membership(int(generation) if generation.isdecimal() else 0, _STATUSES[fields["status"]])
    return SerfMember(fields["name"], claim, fields["addr"], tags.get(ROLE_TAG, ""))

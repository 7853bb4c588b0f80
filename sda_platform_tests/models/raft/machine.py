"""The replicated state of the Raft model: registers with compare-and-set, and the newest answer to each client."""

from __future__ import annotations

from dataclasses import dataclass, field

from sda_platform_tests.models.linearizability import COMPARE_AND_SET
from sda_platform_tests.models.raft.log import RegisterRequest, Snapshot


@dataclass
class Registers:
    """Apply requests in the order of the log. A request of a client that was answered before changes nothing."""

    remembers: bool = True
    values: dict[str, object] = field(default_factory=dict)
    sessions: dict[int, tuple[int, object]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, *, remembers: bool) -> Registers:
        """The state of ``snapshot``."""
        return cls(remembers, dict(snapshot.registers), dict(snapshot.sessions))

    def apply(self, request: RegisterRequest) -> tuple[object, bool]:
        """The answer (whether it took effect), and whether this is the first time."""
        number, answer = self.sessions.get(request.client, (0, None))
        if self.remembers and request.number <= number:
            return (answer if request.number == number else None), False
        succeeds = request.kind != COMPARE_AND_SET or self.values.get(request.key) == request.expected
        if succeeds:
            self.values[request.key] = request.value
        self.sessions[request.client] = (request.number, succeeds)
        return succeeds, True

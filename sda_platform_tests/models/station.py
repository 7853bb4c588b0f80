"""A model of a station that executes each command once.

It remembers the ids that it has executed, refuses a command whose time has passed, and a sender with a stale token.
"""

from sda_platform.ground.commands import Command


class Station:
    """What executes commands. Its memory of ids and of the highest token is durable, and written before execution."""

    def __init__(self) -> None:
        self.executed: list[str] = []
        self._seen: set[str] = set()
        self._highest = 0

    def promote(self, token: int) -> None:
        """The sender with ``token`` is the one from here on."""
        self._highest = max(self._highest, token)

    def receive(self, command: Command, token: int, now_ns: int) -> str:
        """``executed``; ``repeated`` or ``expired``, without effect; ``stale_sender``, not to be acknowledged."""
        if token < self._highest:
            return "stale_sender"
        self._highest = token
        if command.command_id in self._seen:
            return "repeated"
        if command.expires_ns <= now_ns:
            return "expired"
        self._seen.add(command.command_id)
        self.executed.append(command.command_id)
        return "executed"

"""Listening sockets that outlive their process: a restart by SIGUSR2 replaces the program and keeps them open.

The collector seals what it has received, and executes itself again with the sockets in its environment. Meanwhile the
kernel keeps datagrams in the receive buffer and connections in the backlog. Its counter of dropped datagrams goes on,
so what did not fit is counted.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

VARIABLE: Final = "COLLECTOR_SOCKETS"
"""Environment variable with the sockets of the process before: JSON of keys and descriptors."""


class Sockets:
    """The listening sockets of a process by key: the source and its configured address."""

    def __init__(self, inherited: Mapping[str, int] | None = None) -> None:
        self._inherited = dict(inherited or {})
        self._open: dict[str, socket.socket] = {}
        self.is_handing_over = False

    @classmethod
    def of_environment(cls) -> "Sockets":
        """Those that the process before has left; the variable is removed, because children have no use for it."""
        return cls(json.loads(os.environ.pop(VARIABLE, "{}")))

    @property
    def inherited(self) -> set[str]:
        """The sources whose sockets were handed over."""
        return {key.partition(" ")[0] for key in self._inherited}

    def listen(self, key: str, make: Callable[[], socket.socket]) -> socket.socket:
        """Return the socket of ``key``, which was handed over or is made. Raises OSError."""
        number = self._inherited.get(key) if key not in self._open else None
        self._open[key] = make() if number is None else socket.socket(fileno=number)
        return self._open[key]

    def release(self, key: str) -> None:
        """Close the socket of ``key``, unless it is handed over."""
        if not self.is_handing_over:
            self._inherited.pop(key, None)
            self._open.pop(key).close()

    def close_unused(self) -> None:
        """Close what was handed over for sources that are not configured any more."""
        for key in self._inherited.keys() - self._open.keys():
            os.close(self._inherited.pop(key))

    def environment(self) -> dict[str, str]:
        """Return the environment of the next process; the sockets stay open in it."""
        for each in self._open.values():
            os.set_inheritable(each.fileno(), True)
        return {**os.environ, VARIABLE: json.dumps({key: each.fileno() for key, each in self._open.items()})}

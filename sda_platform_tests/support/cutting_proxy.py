"""A TCP proxy that cuts a connection at a chosen byte, in a chosen direction, or all of them at a chosen moment."""

import socket
from contextlib import suppress
from threading import Lock, Thread
from typing import Literal

Direction = Literal["request", "answer"]


class CuttingProxy:
    """Forwards to ``port`` on this machine; ``passed`` counts the last connection's bytes, ``cuts`` is where it cut."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._order: tuple[str, int] | None = None
        self._lock = Lock()
        self._ends: list[socket.socket] = []
        self._is_refusing = False
        self.passed = {"request": 0, "answer": 0}
        self.cuts: list[int] = []

    @property
    def url(self) -> str:
        """Where the proxy listens, as the setting of a subscriber."""
        return f"http://127.0.0.1:{self.port}/alerts"

    @property
    def port(self) -> int:
        """Where the proxy listens."""
        return int(self._listener.getsockname()[1])

    def cut_next(self, direction: str, at: int) -> None:
        """Cut the next connection after ``at`` bytes in ``direction``, both ways."""
        self._order = (direction, at)

    def cut(self, *, for_good: bool) -> None:
        """Cut every connection now; ``for_good`` also each that is opened from now on, until `mend`."""
        self._is_refusing = for_good
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            _shut(end)

    def mend(self) -> None:
        """Let connections pass again."""
        self._is_refusing = False

    def redirect(self, port: int) -> None:
        """Lead connections that are opened from now on to another port of this machine."""
        self._target = ("127.0.0.1", port)

    def __enter__(self) -> "CuttingProxy":
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                if self._is_refusing:
                    client.close()
                    continue
                order, self._order = self._order, None
                self.passed = dict.fromkeys(self.passed, 0)
                server = socket.create_connection(self._target)
                with self._lock:
                    self._ends += (client, server)
                for direction, ends in (("request", (client, server)), ("answer", (server, client))):
                    cut_at = order[1] if order and order[0] == direction else None
                    Thread(target=self._pump, args=(direction, *ends, cut_at), daemon=True).start()

    def _pump(self, direction: str, source: socket.socket, sink: socket.socket, cut_at: int | None) -> None:
        with suppress(OSError):
            while cut_at is None or self.passed[direction] < cut_at:
                left = 65536 if cut_at is None else cut_at - self.passed[direction]
                data = source.recv(left)
                if not data:
                    break
                sink.sendall(data)
                self.passed[direction] += len(data)
            else:
                self.cuts.append(cut_at)
        for end in (source, sink):
            _shut(end)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

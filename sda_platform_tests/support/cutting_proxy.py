"""A TCP proxy that cuts a connection at a chosen byte, in a chosen direction, or all of them at a chosen moment.

Before an object store it can also answer requests with an error of the store, and delay all answers.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from http.client import parse_headers
from threading import Event, Lock, Thread
from typing import Literal

Direction = Literal["request", "answer"]


class CuttingProxy:
    """Forwards to ``port`` on this machine; ``passed`` counts the last connection's bytes, ``cuts`` is where it cut.

    ``on_request`` gets each piece of a request. ``faults`` counts what it refused, answered itself or delayed.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._order: tuple[str, int] | None = None
        self._lock = Lock()
        self._ends: set[socket.socket] = set()
        self._is_refusing = False
        self._error: tuple[int, str] | None = None
        self._delay_s = 0.0
        self.passed: dict[Direction, int] = {"request": 0, "answer": 0}
        self.cuts: list[int] = []
        self.faults = 0
        self.on_request: Callable[[bytes], None] = lambda _data: None

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
            ends, self._ends = self._ends, set()
        for end in ends:
            _shut(end)

    def answer_with(self, status: int, code: str) -> None:
        """Answer each request from now on with this HTTP status and this code of S3, until `mend`."""
        self._error = status, code
        self.cut(for_good=False)

    def delay(self, seconds: float) -> None:
        """Let each piece of an answer wait for so long, until `mend`."""
        self._delay_s = seconds

    def mend(self) -> None:
        """Let connections pass again, and at once."""
        self._is_refusing, self._error, self._delay_s = False, None, 0.0

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
                    self.faults += 1
                    client.close()
                    continue
                if self._error is not None:
                    self.faults += 1
                    Thread(target=_answer_error, args=(client, *self._error), daemon=True).start()
                    continue
                order, self._order = self._order, None
                passed = self.passed = {"request": 0, "answer": 0}
                try:
                    server = socket.create_connection(self._target)
                except ConnectionRefusedError:  # the server is down: so is what stands before it
                    client.close()
                    continue
                with self._lock:
                    self._ends |= {client, server}
                Thread(target=self._forward, args=(client, server, order, passed), daemon=True).start()

    def _forward(
        self, client: socket.socket, server: socket.socket, order: tuple[str, int] | None, passed: dict[Direction, int]
    ) -> None:
        """Carry both ways until the connection ends; then close it, so that a long test does not run out of files."""
        cut_at = dict([order]) if order else {}
        answers = Thread(target=self._pump, args=("answer", server, client, cut_at.get("answer"), passed), daemon=True)
        answers.start()
        self._pump("request", client, server, cut_at.get("request"), passed)
        answers.join()
        with self._lock:
            self._ends -= {client, server}
        for end in (client, server):
            end.close()

    def _pump(
        self,
        direction: Direction,
        source: socket.socket,
        sink: socket.socket,
        cut_at: int | None,
        passed: dict[Direction, int],
    ) -> None:
        with suppress(OSError):
            while cut_at is None or passed[direction] < cut_at:
                left = 65536 if cut_at is None else cut_at - passed[direction]
                data = source.recv(left)
                if not data:
                    break
                if direction == "request":
                    self.on_request(data)
                elif self._delay_s:
                    self.faults += 1
                    Event().wait(self._delay_s)
                passed[direction] += len(data)  # before the receiver can look
                sink.sendall(data)
            else:
                self.cuts.append(cut_at)
        for end in (source, sink):
            _shut(end)


def _answer_error(client: socket.socket, status: int, code: str) -> None:
    """Read one request and refuse it."""
    with suppress(OSError), client, client.makefile("rb") as request:
        method = request.readline().partition(b" ")[0]
        headers = parse_headers(request)
        if headers.get("Expect") is None:
            request.read(int(headers.get("Content-Length", 0)))
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + (b"" if method == b"HEAD" else body))


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

"""A link to a station that can be cut or slowed: a relay of TCP connections on this machine."""

import socket
from contextlib import suppress
from threading import Event, Lock, Thread


class FaultyLink:
    """Passes connections on to ``port`` of this machine, as long as it is neither cut nor slow."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._lock, self._ends = Lock(), set[socket.socket]()
        self._is_cut, self._delay_s, self._closed = False, 0.0, Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._accept, name="faulty link", daemon=True).start()

    def cut(self) -> None:
        """End every connection, and refuse new ones."""
        with self._lock:
            self._is_cut, ends, self._ends = True, self._ends, set()
        for end in ends:
            _shut(end)

    def slow(self, delay_s: float) -> None:
        """Let each piece of an answer take so much longer."""
        self._delay_s = delay_s

    def close(self) -> None:
        """Refuse everything, for good."""
        self._closed.set()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._target, timeout=10.0) as server:
            server.settimeout(None)
            with self._lock:
                if self._is_cut:
                    return
                self._ends |= {client, server}
            back = Thread(target=self._carry, args=(server, client, True), daemon=True)
            back.start()
            self._carry(client, server, False)
            back.join()
            with self._lock:
                self._ends -= {client, server}

    def _carry(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer and self._delay_s:
                    self._closed.wait(self._delay_s)
                sink.sendall(data)
        for end in (source, sink):
            _shut(end)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)

"""A proxy before a Postgres server that keeps chosen peers apart from it, as a partition of the network does.

What is under way waits and arrives when the partition ends; a connection that is opened meanwhile is refused. A peer is
a follower by its ``application_name``, or else the user of the connection.
"""

import socket
import struct
from collections.abc import Collection
from contextlib import suppress
from threading import Condition, Thread

_REFUSED_ENCRYPTION = (80877103, 80877104)
"""The codes by which a client asks for TLS and for GSSAPI before it says who it is."""


class StallingProxy:
    """Forwards to ``port`` of this machine; ``followers`` are the names of peers that replicate."""

    def __init__(self, port: int, followers: Collection[str]) -> None:
        self._target, self._followers = ("127.0.0.1", port), set(followers)
        self._apart: set[str] = set()
        self._changed = Condition()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        Thread(target=self._accept, daemon=True).start()

    def separate(self, peers: Collection[str]) -> None:
        """Keep exactly these ``peers`` apart from now on; none ends the partition."""
        with self._changed:
            self._apart = set(peers)
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no more, and let what waits go on."""
        self._listener.close()
        self.separate(())

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Carry one connection in both directions until it has ended."""
        with suppress(OSError, struct.error), client:
            first = _first_message(client)
            peer = self._peer(first)
            if peer in self._apart:
                return
            with socket.create_connection(self._target) as server:
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server.sendall(first)
                back = Thread(target=self._pump, args=(peer, server, client), daemon=True)
                back.start()
                self._pump(peer, client, server)
                back.join()

    def _pump(self, peer: str, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if peer in self._apart:
                    with self._changed:
                        self._changed.wait_for(lambda: peer not in self._apart)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _peer(self, first: bytes) -> str:
        words = first[8:].split(b"\0")
        stated = dict(zip(words[::2], words[1::2], strict=False))
        name = stated.get(b"application_name", b"").decode()
        return name if name in self._followers else stated.get(b"user", b"").decode()


def _first_message(client: socket.socket) -> bytes:
    """The message that says who connects; one that asks for encryption first is answered: there is none."""
    while True:
        head = client.recv(8, socket.MSG_WAITALL)
        length, code = struct.unpack("!II", head)
        if code not in _REFUSED_ENCRYPTION:
            return head + client.recv(length - 8, socket.MSG_WAITALL)
        client.sendall(b"N")

"""The ports that a driver of Spark opens for executors, and what they answer to who has not their secret."""

import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

_LISTEN: Final = "0A"  # a state in /proc/net/tcp
_RPC_REQUEST: Final = 3
_ASKS_FOR_SECRET: Final = b"Expected SaslMessage"


def listening_ports(pid: int) -> set[int]:
    """The TCP ports at which a process of this machine listens."""
    sockets, found = set(), set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed
            sockets.add(str(each.readlink()).removeprefix("socket:[").rstrip("]"))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == _LISTEN and columns[9] in sockets:
                found.add(int(columns[1].rpartition(":")[2], 16))
    return found


def outcome_without_secret(port: int) -> str:
    """What a request to a driver's port gets whose sender has not proved that it has the secret: refused, or else."""
    body = b"from anyone"
    frame = struct.pack(">BqI", _RPC_REQUEST, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as client:
        client.sendall(struct.pack(">q", 8 + len(frame)) + frame)
        answer = client.recv(4096)
    return "refused" if _ASKS_FOR_SECRET in answer else answer.decode(errors="replace")

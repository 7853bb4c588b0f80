"""The ports that a driver of Spark opens for executors, and what they answer to who has not their secret."""

import socket
import struct
from typing import Final

_RPC_REQUEST: Final = 3
_ASKS_FOR_SECRET: Final = b"Expected SaslMessage"


def outcome_without_secret(port: int) -> str:
    """What a request to a driver's port gets whose sender has not proved that it has the secret: refused, or else."""
    body = b"from anyone"
    frame = struct.pack(">BqI", _RPC_REQUEST, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=30.0) as client:
        client.sendall(struct.pack(">q", 8 + len(frame)) + frame)
        answer = client.recv(4096)
    return "refused" if _ASKS_FOR_SECRET in answer else answer.decode(errors="replace")

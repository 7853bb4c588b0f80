"""A trivial statement with a deadline: whether a Spark Connect engine works, not only whether its port is open.

A JVM that is stopped, deadlocked or busy with garbage accepts connections and never answers. The request is written in
the protocol's own encoding, so that the supervisor need not import PySpark.
"""

import uuid
from typing import Final

import grpc

from sda_platform.spark.engine import USER_ID

_EXECUTE: Final = "/spark.connect.SparkConnectService/ExecutePlan"
# A session of its own: no pool's statements wait for it, and the engine keeps only one.
_SESSION_ID: Final = str(uuid.uuid5(uuid.NAMESPACE_URL, "sda-platform/liveness"))
# Field numbers of ExecutePlanRequest, UserContext, Plan, Relation and SQL of Spark Connect.
_REQUEST_SESSION, _REQUEST_USER, _REQUEST_PLAN = 1, 2, 3
_USER_ID, _PLAN_ROOT, _RELATION_SQL, _SQL_QUERY = 1, 1, 10, 1
_LENGTH_DELIMITED: Final = 2


def ask(channel: grpc.Channel, deadline_s: float, token: str = "") -> None:
    """Have the engine behind ``channel`` execute ``SELECT 1`` within ``deadline_s`` seconds. Raises grpc.RpcError.

    ``token`` is sent as it is: for the engine of this machine only.
    """
    metadata = [("authorization", f"Bearer {token}")] if token else None
    execute = channel.unary_stream(_EXECUTE)
    for _answer in execute(select_one(), timeout=deadline_s, metadata=metadata):
        continue


def select_one() -> bytes:
    """Return the request ``SELECT 1``, encoded."""
    query = _field(_RELATION_SQL, _field(_SQL_QUERY, b"SELECT 1"))
    return (
        _field(_REQUEST_SESSION, _SESSION_ID.encode())
        + _field(_REQUEST_USER, _field(_USER_ID, USER_ID.encode()))
        + _field(_REQUEST_PLAN, _field(_PLAN_ROOT, query))
    )


def _field(number: int, content: bytes) -> bytes:
    """A field of protocol buffers with fewer than 128 bytes."""
    return bytes((number << 3 | _LENGTH_DELIMITED, len(content))) + content

"""A gRPC channel to an engine, as PySpark's own client makes it: with TLS and a token where the address asks for them.

    sc://host:port                    as it is
    sc://host:port/;use_ssl=true      TLS; GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names the roots of a private authority

The token comes from the environment variable TOKEN_VARIABLE only, because addresses are shown. TLS is its condition.
This module does not import PySpark, because the supervisor uses it.
"""

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlparse

import grpc

TOKEN_VARIABLE: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
"""Spark's own name: its server demands the token that this variable holds, its client sends it."""
_ROOTS_VARIABLE: Final = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
DEFAULT_PORT: Final = 15002


def host_and_port(remote: str) -> tuple[str, int]:
    """Host and port of ``remote``. Raises ValueError where it is no address of an engine, or holds a token."""
    if any(parameter.startswith("token=") for parameter in remote.split(";")):
        raise ValueError(f"the address of the engine holds a token: remove it, and set {TOKEN_VARIABLE}")
    parsed = urlparse(remote.partition(";")[0])
    if parsed.scheme != "sc" or not parsed.hostname:
        raise ValueError(f"{remote!r} is no address of an engine; write sc://host:port")
    return parsed.hostname, parsed.port or DEFAULT_PORT


def open_channel(remote: str) -> grpc.Channel:
    """The channel to the engine at ``remote``. Raises ValueError as `host_and_port` does, and without its roots."""
    host, port = host_and_port(remote)
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if "use_ssl=true" not in remote.split(";"):
        return grpc.insecure_channel(target)
    credentials = grpc.ssl_channel_credentials(_roots())
    if token := os.environ.get(TOKEN_VARIABLE):
        credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(token))
    return grpc.secure_channel(target, credentials)


def _roots() -> bytes | None:
    """The roots as they are now: gRPC itself reads them once a process, and the watchdog outlives a certificate."""
    path = os.environ.get(_ROOTS_VARIABLE)
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise ValueError(f"{_ROOTS_VARIABLE}: the certificates cannot be read: {error}") from None

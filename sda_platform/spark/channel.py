"""A gRPC channel to an engine, as PySpark's own client makes it: with TLS and a token where the address asks for them.

    sc://host:port                         as it is
    sc://host:port/;use_ssl=true           TLS; GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names the roots of a private authority
    sc://host:port/;token_file=%2Fa%2Fb    with the token in the file /a/b, which others may not read

An address holds no token, because addresses are shown. Without a file the token comes from the environment variable
TOKEN_VARIABLE, and is sent with TLS only. This module does not import PySpark, because the supervisor uses it.
"""

import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlparse

import grpc

from sda_platform.private_home import ExposedFile, private_content

TOKEN_VARIABLE: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
"""Spark's own name: its server demands the token that this variable holds, its client sends it."""
_TOKEN_FILE: Final = "token_file="  # noqa: S105 - the name of a parameter
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


def with_token_file(remote: str, path: Path) -> str:
    """Return the address ``remote`` with the token in the file at ``path``."""
    return f"{remote}/;{_TOKEN_FILE}{quote(str(path), safe='')}"


def token_file(remote: str) -> Path | None:
    """Return the file with the token of ``remote``, if the address names one."""
    found = [each.removeprefix(_TOKEN_FILE) for each in remote.split(";") if each.startswith(_TOKEN_FILE)]
    return Path(unquote(found[0])) if found else None


def without_token_file(remote: str) -> str:
    """Return the address as PySpark reads it, which would send the name of the file to the engine."""
    return ";".join(each for each in remote.split(";") if not each.startswith(_TOKEN_FILE))


def read_token(path: Path) -> str:
    """Return the token in the file at ``path``. Raises ValueError for one that is empty, not to be read, or open to
    others.
    """
    try:
        token = private_content(path).decode("ascii").strip()
    except ExposedFile:
        raise ValueError(f"{path}: the token of the engine is open to other users") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the token of the engine cannot be read: {error}") from None
    if not token:
        raise ValueError(f"{path}: the token of the engine is missing")
    return token


def kept_token(path: Path) -> str:
    """Return the token in the file at ``path``, which is made where there is none. Raises ValueError as
    `read_token`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        return read_token(path)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
    return read_token(path)


class _Bearer(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # gRPC has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
):
    """Adds the token to each call; `grpc` itself adds it to channels with TLS only."""

    def __init__(self, token: str) -> None:
        self._header = ("authorization", f"Bearer {token}")

    def _intercepted(self, continuation: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or ()), self._header]
        return continuation(_Call(details, metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = _intercepted


class _Call(grpc.ClientCallDetails):  # type: ignore[misc]
    def __init__(self, details: Any, metadata: list[tuple[str, str]]) -> None:
        self.method, self.timeout, self.credentials = details.method, details.timeout, details.credentials
        self.wait_for_ready, self.compression = details.wait_for_ready, details.compression
        self.metadata = metadata


def open_channel(remote: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.Channel:
    """Return the channel to the engine at ``remote``; ``options`` are those of gRPC.

    Raises ValueError as `host_and_port` and `read_token` do, and without its roots.
    """
    host, port = host_and_port(remote)
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    path = token_file(remote)
    token = read_token(path) if path else os.environ.get(TOKEN_VARIABLE)
    if "use_ssl=true" not in remote.split(";"):
        channel = grpc.insecure_channel(target, options)
        return grpc.intercept_channel(channel, _Bearer(token)) if path and token else channel
    credentials = grpc.ssl_channel_credentials(_roots())
    if token:
        credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(token))
    return grpc.secure_channel(target, credentials, options)


def _roots() -> bytes | None:
    """Return the roots as they are now: gRPC itself reads them once a process, and the watchdog outlives a
    certificate.
    """
    path = os.environ.get(_ROOTS_VARIABLE)
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise ValueError(f"{_ROOTS_VARIABLE}: the certificates cannot be read: {error}") from None

"""Dagster's real webserver behind the platform's gates, and applications that a thread serves."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import uvicorn
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget
from starlette.types import ASGIApp

from sda_platform.http_deadline import DeadlineProtocol
from sda_platform.runtime.role_webserver import RoleWebserver
from sda_platform.runtime.ui_roles import ROLE_NAMES, Role
from sda_platform.runtime.ui_users import Users, new_user
from sda_platform.runtime.webserver import gated

PROBE_TOKEN = "of-the-platform"


def users_file(directory: Path) -> dict[str, str]:
    """Write users.toml with a user of each role, named as the role; returns their tokens, that of the probes too."""
    made = {name: new_user(name, name) for name in ROLE_NAMES}
    file = directory / "users.toml"
    file.write_text("\n".join(section for _, section in made.values()))
    file.chmod(0o600)
    return {name: token for name, (token, _) in made.items()} | {"platform": PROBE_TOKEN}


@contextmanager
def ui(
    directory: Path, *, has_users: bool = True, anyone: Role = Role.ADMIN, code: Path | None = None
) -> Iterator[ASGIApp]:
    """The UI of the definitions in the file ``code``; ``has_users``: those of the users.toml in ``directory``."""
    users = Users(directory / "users.toml", PROBE_TOKEN) if has_users else None
    target = PythonFileTarget(str(code), None, str(code.parent), None) if code else None
    with dg.instance_for_test() as instance, WorkspaceProcessContext(instance, target) as context:
        yield gated(RoleWebserver(context).create_asgi_app(), (), users, anyone)


@contextmanager
def served(app: ASGIApp, http: Any = DeadlineProtocol, most_connections: int | None = None) -> Iterator[int]:
    """The port at which a thread serves ``app``."""
    listening = socket.create_server(("127.0.0.1", 0))
    options = {"http": http, "limit_concurrency": most_connections, "log_level": "error", "lifespan": "off"}
    server = uvicorn.Server(uvicorn.Config(app, **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listening.close()

"""Dagster's webserver behind the platform's gate: ``python -m sda_platform.runtime.webserver`` with its own arguments.

Dagster answers GraphQL mutations by GET, from any page, under any name. So an image in an asset's description, or a
redirect that the collector follows, could stop a sensor. Here a mutation is a POST of JSON by a page of this origin,
and what its sender may change depends on a role. The role is asked where Dagster executes a mutation, so that no way to
write a request leads past it.
"""

import asyncio
import functools
import logging
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import uvicorn
from dagster._core.workspace.context import IWorkspaceProcessContext
from dagster_webserver import cli
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sda_platform.edge.address import Address
from sda_platform.http_deadline import DeadlineProtocol
from sda_platform.http_gate import BASIC_CHALLENGE, READING, HttpGate, headers_of, refuse
from sda_platform.runtime.role_webserver import USER, RoleWebserver
from sda_platform.runtime.services import UI_TOKEN
from sda_platform.runtime.ui_roles import Role, User
from sda_platform.runtime.ui_users import Users, UsersError
from sda_platform.settings import Settings
from sda_platform.spark.channel import kept_token

# With this function Dagster's command makes its application (decision 20).
_FACTORY: Final = "create_app_from_workspace_process_context"
_CHALLENGE: Final = ((b"www-authenticate", BASIC_CHALLENGE.encode()),)
MOST_BODY_BYTES: Final = 2**18
"""Of a request, and of a message of a WebSocket. A query of 8 MiB was parsed for minutes, and nothing else answered."""
BODY_S: Final = 30.0
MOST_CONNECTIONS: Final = 256
RECHECK_S: Final = 5.0
_POLICY_VIOLATION: Final = 1008
_PROBED: Final = "/server_info"
"""Versions alone: the answer by which a probe sees that the process works."""
_log = logging.getLogger(cli.WEBSERVER_LOGGER_NAME)


class LoginGate:
    """Passes to ``app`` what ``users`` send, with their role; without users everybody has the role ``anyone``."""

    def __init__(self, app: ASGIApp, users: Users | None, anyone: Role) -> None:
        self._app, self._users, self._anyone = app, users, anyone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one connection on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        user = self._user(scope)
        if user is None:
            await refuse(scope, send, "a login is needed: a name and its token", 401, _CHALLENGE)
        elif _changes_by_path(scope) and user.role < Role.ADMIN:
            await refuse(scope, send, f"the role {user.role.name.lower()} may not do that")
        elif scope["type"] == "websocket":
            await self._app({**scope, USER: user}, self._while_known(user, scope, receive, send), send)
        else:
            await self._app({**scope, USER: user}, receive, send)

    def _while_known(self, user: User, scope: Scope, receive: Receive, send: Send) -> Receive:
        """Return ``receive`` that ends the connection, at the latest `RECHECK_S` after ``user`` has lost the role."""

        async def next_message() -> Message:
            coming = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait({coming}, timeout=RECHECK_S))[0]:
                    if self._user(scope) != user:
                        break
                if self._user(scope) == user:
                    return coming.result()
            finally:
                coming.cancel()
            await send(
                {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": "the login or its role has ended"}
            )
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}

        return next_message

    def _user(self, scope: Scope) -> User | None:
        if self._users is None or (scope["type"] == "http" and scope["path"] == _PROBED):
            return User("anyone", self._anyone if self._users is None else Role.VIEWER)
        try:
            return self._users.of(headers_of(scope).get("authorization", ""))
        except UsersError as error:
            _log.error("all users are refused: %s", error)
            return None


def _changes_by_path(scope: Scope) -> bool:
    """Return whether it is a request that may change something and is not judged where Dagster executes mutations.

    The path of a reported asset may end like that of queries.
    """
    return scope["type"] == "http" and scope["method"] not in READING and scope["path"] != "/graphql"


class GraphqlGate:
    """Passes to ``app`` queries that are POSTs of JSON; by GET only the page that edits queries is shown.

    A body has a stated length, and its time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one connection on, or refuse it."""
        length = headers_of(scope).get("content-length", "") if scope["type"] == "http" else ""
        if scope["type"] != "http" or (scope["method"] in READING and not _is_graphql(scope)):
            await self._app(scope, receive, send)
        elif scope["method"] not in READING and not (length.isdecimal() and int(length) <= MOST_BODY_BYTES):
            await refuse(scope, send, f"a body states its length, at most {MOST_BODY_BYTES:,} bytes", 413)
        elif not _is_graphql(scope):
            await self._app(scope, _within(receive), send)
        elif scope["method"] != "POST" and parse_qs(scope["query_string"], keep_blank_values=True):
            await refuse(scope, send, "a query is a POST of JSON, not the address of a page", 405)
        elif scope["method"] == "POST" and not _is_json(scope):
            await refuse(scope, send, "a query is a POST of application/json", 415)
        else:
            await self._app(scope, _within(receive), send)


def _within(receive: Receive) -> Receive:
    """Return ``receive`` whose parts of a body must all have come in time. It raises TimeoutError."""
    ends_s = time.monotonic() + BODY_S
    is_whole = False

    async def next_message() -> Message:
        nonlocal is_whole
        if is_whole:
            return await receive()
        async with asyncio.timeout(ends_s - time.monotonic()):
            message = await receive()
        is_whole = not message.get("more_body", False)
        return message

    return next_message


def _is_graphql(scope: Scope) -> bool:
    return bool(scope["path"].rstrip("/").endswith("/graphql"))


def _is_json(scope: Scope) -> bool:
    """Return whether Dagster takes a body as JSON, too: it looks for media types anywhere in the header, as written."""
    media_type, _, more = headers_of(scope).get("content-type", "").partition(";")
    return media_type.strip() == "application/json" and "/" not in more


def gated(app: ASGIApp, hosts: Collection[str], users: Users | None = None, anyone: Role = Role.ADMIN) -> ASGIApp:
    """Dagster's application behind the gates; ``anyone`` is the role of everybody where there are no ``users``."""
    return HttpGate(LoginGate(GraphqlGate(app), users, anyone), hosts)


def main(arguments: Sequence[str]) -> None:
    """Run Dagster's own command with its ``arguments`` over the gated application. Raises UsersError."""
    settings = Settings()
    access, is_loopback = settings.access, Address(settings.webserver_host, 0).is_loopback
    users = None
    if access.webserver_users:
        users = Users(Path(access.webserver_users), kept_token(settings.home / UI_TOKEN))
    anyone = Role.ADMIN if is_loopback or access.webserver_writes else Role.VIEWER

    @functools.wraps(getattr(cli, _FACTORY))
    def build(
        context: IWorkspaceProcessContext[Any], path_prefix: str = "", poll_rate: int | None = None, **options: Any
    ) -> ASGIApp:
        if users is None and anyone is Role.ADMIN:
            _log.warning("the UI has no login: who reaches it may change everything, unless SDA_WEBSERVER_USERS is set")
        app: Starlette = RoleWebserver(context, path_prefix, poll_rate).create_asgi_app(**options)
        return gated(app, settings.own_hosts, users, anyone)

    setattr(cli, _FACTORY, build)
    run = functools.partial(
        uvicorn.run,
        http=DeadlineProtocol,
        limit_concurrency=MOST_CONNECTIONS,
        ws_max_size=MOST_BODY_BYTES,
        proxy_headers=False,
    )
    setattr(uvicorn, "run", run)  # noqa: B010 - what Dagster's command calls
    sys.argv = ["dagster-webserver", *arguments]
    cli.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])

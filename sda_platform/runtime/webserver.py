"""Dagster's webserver behind the platform's gate: ``python -m sda_platform.runtime.webserver`` with its own arguments.

Dagster answers GraphQL mutations by GET, from any page, under any name. So an image in an asset's description, or a
redirect that the collector follows, could stop a sensor. Here a mutation is a POST of JSON by a page of this origin.
"""

import functools
import sys
from collections.abc import Collection, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from dagster_webserver import cli
from starlette.types import ASGIApp, Receive, Scope, Send

from sda_platform.edge.address import Address
from sda_platform.http_gate import HttpGate, headers_of, refuse
from sda_platform.settings import Settings

# With this function Dagster's command makes its application (decision 20).
_FACTORY: Final = "create_app_from_workspace_process_context"


class GraphqlGate:
    """Passes to ``app`` queries that are POSTs of JSON; by GET only the page that edits queries is shown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one connection on, or refuse it."""
        if scope["type"] != "http" or not scope["path"].rstrip("/").endswith("/graphql"):
            await self._app(scope, receive, send)
        elif scope["method"] != "POST" and parse_qs(scope["query_string"], keep_blank_values=True):
            await refuse(scope, send, "a query is a POST of JSON, not the address of a page", 405)
        elif scope["method"] == "POST" and _media_type(scope) != "application/json":
            await refuse(scope, send, "a query is a POST of application/json", 415)
        else:
            await self._app(scope, receive, send)


def _media_type(scope: Scope) -> str:
    return headers_of(scope).get("content-type", "").partition(";")[0].strip().lower()


def gated(app: ASGIApp, hosts: Collection[str]) -> ASGIApp:
    """Dagster's application behind both gates."""
    return HttpGate(GraphqlGate(app), hosts)


def main(arguments: Sequence[str]) -> None:
    """Run Dagster's own command with its ``arguments`` over the gated application."""
    settings = Settings()
    build = getattr(cli, _FACTORY)

    @functools.wraps(build)
    def build_gated(*args: Any, **options: Any) -> ASGIApp:
        return gated(build(*args, **options), settings.http_hosts)

    setattr(cli, _FACTORY, build_gated)
    is_reading = not (settings.access.webserver_writes or Address(settings.webserver_host, 0).is_loopback)
    sys.argv = ["dagster-webserver", *arguments, *(["--read-only"] if is_reading else [])]
    cli.main()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main(sys.argv[1:])

"""Dagster's webserver, which executes for each user what the role allows, and for each address its share.

The role is asked where Dagster executes a mutation, so that no way to write a request leads past it.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from dagster._core.workspace.context import WorkspaceRequestContext
from dagster._core.workspace.permissions import PermissionResult
from dagster_webserver import cli
from dagster_webserver.webserver import DagsterWebserver
from graphene import Schema
from graphql import GraphQLError, parse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from typing_extensions import override

from sda_platform.fair_share import FairShare, PeerTurns, peer_of
from sda_platform.runtime.query_bounds import MOST_FIELDS, named_fields
from sda_platform.runtime.ui_roles import Role, User, has_permission, may_mutate

USER: Final = "sda.user"
"""The key of a request's scope under which its sender is."""
MOST_QUERIES: Final = 192
"""Queries that wait or are answered, those of senders that have gone included. Of one address at most `AT_ONCE` are
answered at a time; Dagster has 40 threads."""
AT_ONCE: Final = 8
_NOWHERE_ELSE: Final = (
    "img-src 'self' data: blob:; media-src 'self'; font-src 'self' data:; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; frame-ancestors 'self'"
)
"""Of Dagster's pages: whatever a text becomes on one, the browser asks no other server, and no other page shows one."""
_log = logging.getLogger(cli.WEBSERVER_LOGGER_NAME)


class _RoleContext(WorkspaceRequestContext):
    """Dagster's context of a request, with the permissions of a role: by these the UI shows its buttons."""

    def __init__(self, base: WorkspaceRequestContext, role: Role) -> None:
        super().__init__(
            instance=base.instance,
            current_workspace=base.get_current_workspace(),
            process_context=base.process_context,
            version=base.version,
            source=base.source,
            read_only=role is Role.VIEWER,
        )
        self._role = role

    @property
    @override
    def permissions(self) -> Mapping[str, PermissionResult]:
        return self._limited(super().permissions)

    @override
    def permissions_for_location(self, *, location_name: str) -> Mapping[str, PermissionResult]:
        return self._limited(super().permissions_for_location(location_name=location_name))

    def _limited(self, all_permissions: Mapping[str, PermissionResult]) -> Mapping[str, PermissionResult]:
        none = PermissionResult(enabled=False, disabled_reason=f"not for the role {self._role.name.lower()}")
        return {name: each if has_permission(self._role, name) else none for name, each in all_permissions.items()}


class NotForRole(GraphQLError):
    """A mutation that the role of its sender does not include."""


class RoleWebserver(DagsterWebserver[Any, Any]):
    """Dagster's webserver, which executes for each user what the role allows, and for each address its share."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._bound_queries()

    def _bound_queries(self) -> None:
        self._queries, self._turns = FairShare(MOST_QUERIES), PeerTurns(AT_ONCE)

    @override
    async def execute_graphql_request(self, request: Request, *arguments: Any, **query: Any) -> JSONResponse:
        peer = peer_of(request.client)
        if not self._queries.takes(peer):
            return _not_answered("too many queries of this address wait", HTTPStatus.TOO_MANY_REQUESTS)
        try:
            async with self._turns.of(peer):
                return await super().execute_graphql_request(request, *arguments, **query)
        finally:
            self._queries.give_back(peer)

    @override
    async def gen_graphql_response(self, request_context: Any, query: str, *arguments: Any, **more: Any) -> Any:
        try:
            fields = named_fields(parse(query))
        except RecursionError:
            return _not_answered("the query is nested too deeply", HTTPStatus.BAD_REQUEST)
        except GraphQLError:
            fields = 0  # Dagster says what is wrong with it
        if fields > MOST_FIELDS:
            return _not_answered(f"the query has {fields:,} fields, of at most {MOST_FIELDS:,}", HTTPStatus.BAD_REQUEST)
        return await super().gen_graphql_response(request_context, query, *arguments, **more)

    @override
    def build_graphql_schema(self) -> Schema:
        schema = super().build_graphql_schema()
        mutations = schema.graphql_schema.mutation_type
        if mutations is None:
            raise TypeError("Dagster's schema has no type of mutations")
        for name, field in mutations.fields.items():
            field.resolve = _for_roles(name, field.resolve)
        return schema

    @override
    def make_csp_header(self, nonce: str) -> str:
        return f"{super().make_csp_header(nonce).strip().rstrip(';')}; {_NOWHERE_ELSE}"

    @override
    def _make_request_context(self, conn: HTTPConnection) -> WorkspaceRequestContext:
        return _RoleContext(super()._make_request_context(conn), _user_of(conn).role)

    @override
    async def download_notebook(self, request: Request) -> Response:
        # No asset here is a notebook, and Dagster would render any file of that kind which the process can read.
        raise HTTPException(HTTPStatus.NOT_FOUND, "no asset of this platform is a notebook")

    @override
    def _determine_status_code(
        self, resolver_errors: list[GraphQLError] | None, captured_errors: list[Exception]
    ) -> int:
        if any(isinstance(each.original_error, NotForRole) for each in resolver_errors or ()):
            return HTTPStatus.FORBIDDEN
        return super()._determine_status_code(resolver_errors, captured_errors)


def _not_answered(reason: str, status: HTTPStatus) -> JSONResponse:
    return JSONResponse({"errors": [{"message": reason}]}, status)


def _for_roles(name: str, resolve: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the resolver of the mutation ``name``, for those who may execute it."""
    if resolve is None:
        raise TypeError(f"Dagster's mutation {name} has no resolver")

    def judged(root: Any, info: Any, **arguments: Any) -> Any:
        user = _user_of(info.context.source)
        reason = f"the role {user.role.name.lower()} may not {name}"
        if user.role < Role.ADMIN and (part := _of_an_admin(arguments)):
            reason, is_allowed = f"{reason} with {part}", False
        else:
            is_allowed = may_mutate(user.role, name)
        if not is_allowed:
            _log.warning("%s, %s: %s is refused", user.name, user.role.name.lower(), name)
            raise NotForRole(reason)
        _log.info("%s, %s: %s", user.name, user.role.name.lower(), name)
        return resolve(root, info, **arguments)

    return judged


def _of_an_admin(arguments: Any) -> str:
    """Return what in the arguments of a mutation would let a run do something else than its job; empty: nothing.

    A configuration can replace the lake and the subscriber.
    """
    if isinstance(arguments, Mapping) and arguments.get("runConfigData") not in (None, "", "{}", {}):
        return "a configuration of its own"
    parts = arguments.values() if isinstance(arguments, Mapping) else arguments if isinstance(arguments, list) else ()
    return next(filter(None, map(_of_an_admin, parts)), "")


def _user_of(source: Any) -> User:
    user = source.scope[USER]
    if not isinstance(user, User):
        raise TypeError("a request came past the gate")
    return user

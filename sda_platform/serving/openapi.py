"""The OpenAPI document of the endpoint, made of its routes."""

from collections.abc import Mapping
from typing import Any, Final

from sda_platform.serving.answers import Schema, one, schemas
from sda_platform.serving.parameters import Parameter, choice, number
from sda_platform.serving.route import PREDICATES, Audience, Route
from sda_platform.serving.routes import ROUTES
from sda_platform.serving.spacetrack_classes import CLASSES

_LOGIN: Final = "clientToken"
_IN_PATHS: Final = {
    "norad_id": number("Catalogue number.", 1),
    "submission_id": Parameter("The id in the answer to a submission."),
    "name": choice("Class", tuple(CLASSES)),
    PREDICATES: Parameter("class/gp/NORAD_CAT_ID/25544/orderby/EPOCH desc/limit/10/format/json, and such."),
}


def openapi(version: str, rows: Mapping[str, Schema], *, reading_needs_login: bool = False) -> dict[str, Any]:
    """Make the OpenAPI 3.1 document of the routes; ``version`` is the platform's.

    ``rows``: the schemas of table rows by name.
    """
    with_login = set(Audience) - {Audience.EVERYONE} if reading_needs_login else {Audience.CLIENTS}
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, has_login=route.audience in with_login
        )
    about = {"title": "SDA platform catalogue", "version": version, "description": "Read-only, but for POST."}
    login = {"type": "http", "scheme": "bearer", "description": "The token of a client, where clients are declared."}
    components = {"schemas": schemas(rows), "securitySchemes": {_LOGIN: login}}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": components}


def _operation(route: Route, *, has_login: bool) -> dict[str, Any]:
    parameters = [parameter.described(name, "query") for name, parameter in route.query.items()]
    for name, parameter in _IN_PATHS.items():
        if f"{{{name}}}" in route.path:
            parameters.insert(0, {**parameter.described(name, "path"), "required": True})
    kinds: dict[str, Schema] = {"application/json": route.json}
    success = {media: {"schema": kinds.get(media, {"type": "string"})} for media in route.answers}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.handler.__name__,
        "parameters": parameters,
        "responses": {
            **{str(status): {"description": "Success.", "content": success} for status in route.statuses},
            "default": {"description": "What is wrong.", "content": {"application/json": {"schema": one("Error")}}},
        },
    }
    if has_login:
        operation["security"] = [{_LOGIN: []}, {}]  # without declared clients, no login is needed
    if route.method == "POST":
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": {"type": "string"}} for media in route.takes},
        }
    return operation

"""A route of the endpoint: its path, its parameters, what it answers, and who may ask."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sda_platform.serving.answering import answering
from sda_platform.serving.answers import Schema
from sda_platform.serving.parameters import Parameter
from sda_platform.serving.requests import Handler

PREDICATES: Final = "predicates"
"""The parameter of a path that holds slashes."""


class Audience(Enum):
    """Who may ask."""

    EVERYONE = "everyone"
    READERS = "who may read: everyone, unless reading needs a login"
    READERS_OF_SETS = "the same; of element sets each reads those of its sources"
    CLIENTS = "a client by its token, where clients are declared"


@dataclass(frozen=True)
class Route:
    """One path and what it answers: ``json`` is the schema of a success in JSON, ``answers`` has all its media types.

    ``takes``: the media types of a body.
    """

    path: str
    handler: Handler
    summary: str
    json: Schema
    query: Mapping[str, Parameter] = field(default_factory=dict)
    method: str = "GET"
    answers: tuple[str, ...] = ("application/json",)
    statuses: tuple[int, ...] = (200,)
    takes: Mapping[str, str] = field(default_factory=dict)
    audience: Audience = Audience.READERS

    @property
    def answer(self) -> Handler:
        """What answers a request, also a wrong one."""
        return answering(
            self.handler,
            self.query,
            for_readers=self.audience in (Audience.READERS, Audience.READERS_OF_SETS),
            of_every_source=self.audience is not Audience.READERS_OF_SETS,
        )

    @property
    def pattern(self) -> str:
        """The path as the server matches it."""
        return self.path.replace(f"{{{PREDICATES}}}", f"{{{PREDICATES}:path}}")

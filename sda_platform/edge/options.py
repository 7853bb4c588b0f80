"""What the models of the collector's configuration share."""

import os
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from sda_platform.edge.address import Address

HOSTS = "Names with a dot under which it is reached; addresses and other names need no entry."
HostAndPort = Annotated[
    Address,
    BeforeValidator(lambda value: Address.parse(value) if isinstance(value, str) else value),
    PlainSerializer(str),
]


class Options(BaseModel):
    """Options of a part of the file; others are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def require_token(bind: Address, variable: str) -> None:
    """Raise ValueError where a variable has no token, or none is named for an address that other machines reach."""
    if variable and not os.environ.get(variable):
        raise ValueError(f"set the token in the environment variable {variable}")
    if not variable and not bind.is_loopback:
        raise ValueError(f"{bind} can be reached from other machines: name a token_variable")

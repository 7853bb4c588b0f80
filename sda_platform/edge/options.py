"""What the models of the collector's configuration share."""

import os
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from sda_platform.edge.address import Address
from sda_platform.formats.markings import Marking, classification_of

CLASSIFICATION = "Classification of all that comes from here: U, C, S, or another text; none: as each record states."
DATA_MODE = "What all data from here is of; none: as each record states."
HOSTS = "Names with a dot under which it is reached; addresses and other names need no entry."
HostAndPort = Annotated[
    Address,
    BeforeValidator(lambda value: Address.parse(value) if isinstance(value, str) else value),
    PlainSerializer(str),
]


class Options(BaseModel):
    """Options of a part of the file; others are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MarkedOptions(Options):
    """Options of a source; what they state of its data is never lowered by a record."""

    classification: str | None = Field(None, max_length=80, description=CLASSIFICATION)
    data_mode: Literal["REAL", "TEST", "SIMULATED", "EXERCISE"] | None = Field(None, description=DATA_MODE)

    @property
    def marking(self) -> Marking:
        """What is stated of all data of the source."""
        return Marking(classification_of(self.classification), self.data_mode)


def require_token(bind: Address, variable: str) -> None:
    """Raise ValueError where a variable has no token, or none is named for an address that other machines reach."""
    if variable and not os.environ.get(variable):
        raise ValueError(f"set the token in the environment variable {variable}")
    if not variable and not bind.is_loopback:
        raise ValueError(f"{bind} can be reached from other machines: name a token_variable")

"""Clients of the endpoint, each with a token, with what it may do, and with the objects for which it may write.

    [clients.aurora]
    token_variable = "AURORA_TOKEN"
    may = ["read", "write"]
    norad_ids = [25544, 48274]
    rank = 30

    [quota]
    records = 1000000

    [reading]
    needs_login = true
    requests = 60000

Without ``may`` a client may do both; with ``sources`` it reads only element sets that these brought. Without
``norad_ids`` it may write for all objects. At equal epochs its element sets win over those of sources and clients of a
lower ``rank``; without one it is 0. ``quota`` is what each may write in a minute: ``bytes``, ``records``, and records
that are ``refused``; beyond, requests are answered 429 for a while.

Where only this machine can reach the endpoint, everyone reads, and without a file writes. Where others can, reading
needs a login, unless ``reading`` has ``needs_login = false``. It also has what each client may read in a minute.
Secrets are not in the file: it names the environment variables that hold them.
"""

import hmac
import os
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from starlette.requests import Request

from sda_platform.resilience import Quotas
from sda_platform.serving.errors import ServingError
from sda_platform.toml_file import read_toml, require_own

LEAST_TOKEN: Final = 16


class ClientsError(ServingError):
    """The file of clients cannot be used; the text names it, the client and what is wrong."""


class LoginNeeded(Exception):
    """The request has no token of a client."""


class NotAllowed(Exception):
    """The client may not do that; the text says what."""


class Right(StrEnum):
    """What a client may do."""

    READ = "read"
    WRITE = "write"


EVERY_RIGHT: Final = frozenset(Right)


class ClientConfig(BaseModel):
    """One client of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    token_variable: str = Field(min_length=1)
    may: frozenset[Right] = Field(EVERY_RIGHT, min_length=1)
    sources: frozenset[str] | None = Field(None, min_length=1)
    norad_ids: frozenset[PositiveInt] | None = None
    rank: int | None = Field(None, ge=0, le=100)


REFUSED: Final = "refused records"


class QuotaConfig(BaseModel):
    """What one client may write in a minute."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    bytes: int = Field(2**30, gt=0)
    records: int = Field(1_000_000, gt=0)
    refused: int = Field(100_000, gt=0)

    def quotas(self) -> Quotas:
        """Return the accounts of the clients, all empty."""
        return Quotas({"bytes": self.bytes, "records": self.records, REFUSED: self.refused})


class ReadingConfig(BaseModel):
    """Whether reading needs a login, None: where other machines reach it; and what one client may read in a minute."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    needs_login: bool | None = None
    requests: int = Field(60_000, gt=0)
    bytes: int = Field(2**33, gt=0)

    def quotas(self) -> Quotas:
        """Return the accounts of the readers, all empty."""
        return Quotas({"requests": self.requests, "bytes": self.bytes})


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    quota: QuotaConfig = QuotaConfig()
    reading: ReadingConfig = ReadingConfig()
    clients: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")], ClientConfig] = Field(min_length=1)


@dataclass(frozen=True)
class Client:
    """Who sends a request; ``norad_ids`` are the objects for which it may write, None: all.

    ``rank``: of its element sets, None: 0."""

    name: str
    norad_ids: frozenset[int] | None = None
    rank: int | None = None
    may: frozenset[Right] = EVERY_RIGHT
    sources: frozenset[str] | None = None
    """Those whose element sets it may read, None: all."""

    def require_every_source(self) -> None:
        """Raise NotAllowed unless the client may read what every source has brought."""
        if self.sources is not None:
            some = ", ".join(sorted(self.sources))
            raise NotAllowed(
                f"client {self.name} reads element sets of {some} alone, and this answer rests on those of every "
                "source: it is for clients without `sources` in the file of clients"
            )

    def may_write_for(self, norad_id: int) -> bool:
        """Return whether an object is one of the client's."""
        return self.norad_ids is None or norad_id in self.norad_ids

    def require_all_read(self) -> None:
        """Raise NotAllowed unless the client may read, and what every source has brought."""
        self.require_right(Right.READ)
        self.require_every_source()

    def require_right(self, right: Right) -> None:
        """Raise NotAllowed unless the client may do that."""
        if right not in self.may:
            raise NotAllowed(f'client {self.name} may not {right}: add "{right}" to its `may` in the file of clients')

    def require(self, norad_ids: Collection[int | None]) -> None:
        """Raise NotAllowed unless the client may write for these objects."""
        if self.norad_ids is None:
            return
        foreign = sorted({each for each in norad_ids if each is not None} - self.norad_ids)
        if foreign:
            more = f" and {len(foreign) - 1} others" if len(foreign) > 1 else ""
            raise NotAllowed(f"client {self.name} may not write for object {foreign[0]}{more}")


@dataclass(frozen=True)
class KnownClients:
    """The clients by their tokens; ``is_open``: without any, every request may write. ``quota``: of each client."""

    by_token: tuple[tuple[str, Client], ...] = ()
    is_open: bool = True
    quota: QuotaConfig = field(default_factory=QuotaConfig)
    reading: ReadingConfig = field(default_factory=ReadingConfig)

    def reached(self, *, by_others: bool, is_declared_open: bool) -> "KnownClients":
        """Return the clients of an endpoint that this machine alone reaches, or ``by_others`` as well.

        Others log in to read, unless the file or a setting declares that everyone may read, and to write.
        """
        stated = self.reading.needs_login
        needs_login = by_others and not is_declared_open if stated is None else stated
        reading = self.reading.model_copy(update={"needs_login": needs_login})
        return replace(self, is_open=not by_others, reading=reading)

    def with_token(self, token: str) -> Client | None:
        """Return the client that has ``token``, if there is one; the time that this takes reveals no token."""
        sent = token.encode()
        found = [client for known, client in self.by_token if hmac.compare_digest(sent, known.encode())]
        return found[0] if found else None

    def named(self, name: str) -> Client | None:
        """Return the client of this name, if there is one."""
        return next((client for _, client in self.by_token if client.name == name), None)

    def of(self, request: Request) -> Client:
        """Return the client that sends ``request``, to write. Raises LoginNeeded and NotAllowed."""
        if not self.by_token:
            if self.is_open:
                return Client("anyone")
            raise NotAllowed("other machines reach this endpoint: name its clients in SDA_SERVING_CLIENTS, to write")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self.with_token(token) if scheme == "Bearer" else None
        if found is None:
            raise LoginNeeded("a token is needed: Authorization: Bearer <token>")
        return found


ANYONE: Final = KnownClients()
"""Every request may write: for an endpoint that only this machine can reach."""


def load_clients(path: Path) -> KnownClients:
    """Return the clients of the file at ``path``, with the tokens of the environment. Raises ClientsError."""
    found: dict[str, Client] = {}
    file = read_toml(path, _File, ClientsError)
    require_own(path, ClientsError)
    for name, client in file.clients.items():
        token = os.environ.get(client.token_variable, "")
        if len(token) < LEAST_TOKEN:
            what = f"a token of at least {LEAST_TOKEN} characters in the environment variable {client.token_variable}"
            raise ClientsError(f"{path}: clients.{name}: set {what}")
        if token in found:
            raise ClientsError(f"{path}: clients.{name} has the token of {found[token].name}")
        if client.sources is not None and not file.reading.needs_login:
            raise ClientsError(f"{path}: clients.{name}: sources need `needs_login = true` below [reading]")
        found[token] = Client(name, client.norad_ids, client.rank, client.may, client.sources)
    return KnownClients(tuple(found.items()), quota=file.quota, reading=file.reading)

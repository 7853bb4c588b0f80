"""Who may use the UI, and what each may change there: viewers nothing, operators runs and sensors, admins all.

    [users.alice]
    role = "operator"
    token_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

`sda user` makes such a section. A token is random, so its SHA-256 does not reveal it. The file is read again when
it changes: who is removed from it is refused at once.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from sda_platform.http_gate import basic_login
from sda_platform.runtime.errors import PlatformError
from sda_platform.runtime.ui_roles import PROBES, Role, User
from sda_platform.toml_file import read_toml, require_own, state_of

NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}$"
_TOKEN_BYTES: Final = 32


class UsersError(PlatformError):
    """The file of users cannot be used; the text names it, the user and what is wrong."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    role: Literal["viewer", "operator", "admin"]
    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    users: dict[Annotated[str, Field(pattern=NAME)], _Entry] = Field(min_length=1)


class Users:
    """The users of the file at ``path``, and the platform's own probes, whose token is ``probe_token``.

    Raises UsersError for a file that cannot be used.
    """

    def __init__(self, path: Path, probe_token: str) -> None:
        self._path, self._probe = path, digest(probe_token)
        self._read_at, self._entries = state_of(path), _entries(path)

    def of(self, authorization: str) -> User | None:
        """Return who sends the header ``authorization`` (HTTP Basic); None: no known user. Raises UsersError."""
        name, token = basic_login(authorization)
        sent = digest(token)
        if name == PROBES:
            return User(name, Role.VIEWER) if hmac.compare_digest(sent, self._probe) else None
        entry = self._current().get(name)
        if entry is None or not hmac.compare_digest(sent, entry.token_sha256):
            return None
        return User(name, Role[entry.role.upper()])

    def _current(self) -> Mapping[str, _Entry]:
        if (state := state_of(self._path)) != self._read_at:
            self._read_at, self._entries = None, {}  # no user is known until the file can be used
            self._entries, self._read_at = _entries(self._path), state
        return self._entries


def digest(token: str) -> str:
    """Compute the SHA-256 of ``token``, hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_user(name: str, role: str) -> tuple[str, str]:
    """A new random token, and the section of the file of users with its digest. Raises UsersError."""
    if not re.fullmatch(NAME, name) or name == PROBES:
        raise UsersError(f"{name!r} cannot name a user: write small letters, digits and hyphens, not {PROBES}")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    return token, f'[users.{name}]\nrole = "{role}"\ntoken_sha256 = "{digest(token)}"\n'


def _entries(path: Path) -> Mapping[str, _Entry]:
    entries = read_toml(path, _File, UsersError).users
    require_own(path, UsersError)
    if PROBES in entries:
        raise UsersError(f"{path}: users.{PROBES} is the name of the platform's own probes: choose another")
    return entries

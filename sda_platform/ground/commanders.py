"""Who may command stations: the key and the rights of each person or program, and the signatures of requests.

    [commanders.ann]
    key = "ann.pub"    # a public key in PEM (`sda ground commander-key`), beside this file
    issues = ["REPOINT", "SAFE_MODE"]
    confirms = ["SAFE_MODE", "EMERGENCY_ABORT"]

Where a file names commanders, a request counts if one of them signed it. An emergency also needs another one who
confirms it.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sda_platform.formats.ground_events import CONFIRMED, GroundEvent
from sda_platform.ground.commands import EMERGENCY_FROM, PRIORITY
from sda_platform.signing_keys import UnusableKey, is_signed_by, private_key, public_key, raw_key
from sda_platform.toml_file import read_toml, require_own, state_of

_log = logging.getLogger(__name__)
_REQUEST: Final = (
    "station", "command_id", "kind", "issued_time_ns", "expires_time_ns", "azimuth_deg", "elevation_deg",
)  # fmt: skip
_SIGNED: Final = ("event", *_REQUEST, "person")


def _known_kind(kind: str) -> str:
    if kind not in PRIORITY:
        raise ValueError(f"{kind!r} is no kind of command; they are {', '.join(PRIORITY)}")
    return kind


_Kind = Annotated[str, AfterValidator(_known_kind)]


class CommandersError(ValueError):
    """The file of commanders cannot be used, or a person may not do this; the text says why."""


class _Person(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    key: str = Field(min_length=1)
    issues: frozenset[_Kind] = frozenset()
    confirms: frozenset[_Kind] = frozenset()


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    commanders: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], _Person] = Field(min_length=1)


@dataclass(frozen=True)
class Commander:
    """What one person or program may request, by the 32 bytes of its public key."""

    key: bytes
    issues: frozenset[str] = frozenset()
    confirms: frozenset[str] = frozenset()


Commanders = Mapping[str, Commander]
"""By name; empty: requests need no signature, and emergencies no second person."""


def read_commanders(file: str) -> dict[str, Commander]:
    """Read the file of commanders; none where ``file`` is empty. Raises CommandersError, UnusableKey and OSError."""
    if not file:
        return {}
    path = Path(file)
    people = read_toml(path, _File, CommandersError).commanders
    require_own(path, CommandersError)
    found = {}
    for name, each in people.items():
        place = path.parent / each.key
        require_own(place, CommandersError)
        found[name] = Commander(raw_key(public_key(place.read_bytes(), str(place))), each.issues, each.confirms)
    return found


class CommandersOnDisk(Mapping[str, Commander]):
    """The commanders that ``file`` names now: it is read again when it has changed.

    While it cannot be used, such as in the middle of a write, those count that it named last, and the log has the
    reason: a command that is refused is refused for good. Raises as `read_commanders` where it cannot be used to begin
    with.
    """

    def __init__(self, file: str) -> None:
        self._file, self._state = file, state_of(Path(file))
        self._known = read_commanders(file)

    def __getitem__(self, name: str) -> Commander:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> dict[str, Commander]:
        if self._file and (state := state_of(Path(self._file))) != self._state:
            self._state = state
            try:
                self._known = read_commanders(self._file)
            except (CommandersError, UnusableKey, OSError) as error:
                _log.error("commanders are those of before until the file can be used: %s", error)
        return self._known


def needs_confirmation(kind: str, commanders: Commanders) -> bool:
    """Return whether a second person must confirm commands of ``kind``: emergencies, where commanders are named."""
    return bool(commanders) and PRIORITY[kind] >= EMERGENCY_FROM


def issue_refusal(issued: Mapping[str, Any], commanders: Commanders) -> str | None:
    """Return why an issued command is not executed; None: one who may issue it signed it, or none needs to."""
    if not commanders:
        return None
    person = issued["person"]
    if (reason := _unknown(person, commanders)) is not None:
        return reason
    if issued["kind"] not in commanders[person].issues:
        return f"{person} may not issue {issued['kind']}: {_who('issues', issued['kind'], commanders)}"
    return _forged(issued, commanders[person], "")


def confirmation_refusal(confirmed: Mapping[str, Any], issued: Mapping[str, Any], commanders: Commanders) -> str | None:
    """Return why a confirmation does not count; None: another one than the issuer, who may confirm it, signed it."""
    person = confirmed["person"]
    if (reason := issue_refusal(issued, commanders) or _unknown(person, commanders)) is not None:
        return reason
    if person == issued["person"] or commanders[person].key == commanders[issued["person"]].key:
        return f"{person} issued it: another person must confirm it"
    if issued["kind"] not in commanders[person].confirms:
        return f"{person} may not confirm {issued['kind']}: {_who('confirms', issued['kind'], commanders)}"
    if any(confirmed[name] != issued[name] for name in _REQUEST):
        return "it confirms another command than the one that was issued"
    return _forged(confirmed, commanders[person], issued["signature"])


@dataclass(frozen=True)
class CommandAuthority:
    """In whose name this process requests commands, and who may request what."""

    commanders: Commanders = field(default_factory=dict)
    name: str = ""
    key: Ed25519PrivateKey | None = field(default=None, repr=False)

    def issued(self, event: GroundEvent) -> GroundEvent:
        """Return the event that issues a command, signed. Raises CommandersError where it would be refused."""
        made = self._signed(event, "")
        if (reason := issue_refusal(vars(made), self.commanders)) is not None:
            raise CommandersError(reason)
        return made

    def confirmed(self, issued: Mapping[str, Any], at_ns: int) -> GroundEvent:
        """Return the event that confirms an ``issued`` command. Raises CommandersError where it would be refused."""
        if (reason := issue_refusal(issued, self.commanders)) is not None:
            raise CommandersError(f"no uplink sends this command: {reason}")
        if not needs_confirmation(issued["kind"], self.commanders):
            raise CommandersError(f"{issued['kind']} needs no confirmation{'' if self.commanders else _NONE_NAMED}")
        event = GroundEvent(event=CONFIRMED, event_time_ns=at_ns, **{name: issued[name] for name in _REQUEST})
        made = self._signed(event, issued["signature"])
        if (reason := confirmation_refusal(vars(made), issued, self.commanders)) is not None:
            raise CommandersError(reason)
        return made

    def _signed(self, event: GroundEvent, before: str) -> GroundEvent:
        if self.key is None:
            return event
        named = replace(event, person=self.name)
        return replace(named, signature=self.key.sign(_text(vars(named), before)).hex())


_NONE_NAMED: Final = ": SDA_COMMANDERS names no one"
UNSIGNED: Final = CommandAuthority()


def command_authority(file: str, own_key: str) -> CommandAuthority:
    """Return the authority of who has the key in the file ``own_key``, by the ``file`` of commanders.

    Raises CommandersError, UnusableKey and OSError.
    """
    commanders = read_commanders(file)
    if not own_key:
        return CommandAuthority(commanders)
    key = private_key(Path(own_key))
    mine = raw_key(key.public_key())
    name = next((name for name, each in commanders.items() if each.key == mine), None)
    if name is None:
        raise CommandersError(f"{own_key}: this key is of no commander in {file or 'a file: set SDA_COMMANDERS'}")
    return CommandAuthority(commanders, name, key)


def _text(event: Mapping[str, Any], before: str) -> bytes:
    """Return what a signature is of: the request, and of a confirmation the signature ``before`` it."""
    return json.dumps([*(event[name] for name in _SIGNED), before]).encode()


def _forged(event: Mapping[str, Any], commander: Commander, before: str) -> str | None:
    key = Ed25519PublicKey.from_public_bytes(commander.key)
    try:
        signature = bytes.fromhex(event["signature"])
    except ValueError:
        signature = b""
    is_own = is_signed_by(key, signature, _text(event, before))
    return None if is_own else f"the signature is not that of {event['person']}: it was changed, or another one made it"


def _unknown(person: str, commanders: Commanders) -> str | None:
    if not person:
        return "it is not signed: set SDA_COMMANDER_KEY to the key of a commander"
    return None if person in commanders else f"{person} is no commander in SDA_COMMANDERS"


def _who(right: str, kind: str, commanders: Commanders) -> str:
    names = [name for name, each in commanders.items() if kind in getattr(each, right)]
    return f"{', '.join(names)} may" if names else "nobody may"

"""Edits of catalogue objects as lines of JSON, as sites exchange them.

Each attribute of each object has its own version vector: the number of its edits by each site that the editor had
received.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.json_fields import encodable, integer_field, json_object, text_field
from sda_platform.formats.records import RawRecord

Vector = Mapping[str, int]
"""Events seen by origin; an origin that is missing counts 0, so that sites may join at any time."""
NAME: Final = "name"
MERGE: Final = "merged_into"
CORRECTION: Final = "correct_object"
DECAY: Final = "decay"
RELEASE: Final = "released_sets"
IN_ORBIT: Final = "in orbit"
"""The value of a DECAY for an object that has not decayed."""
ATTRIBUTES: Final[Mapping[str, str]] = {
    NAME: "the object's name, in the place of the one that its sources give",
    "tag": "what kind of object it is, or how it is watched",
    MERGE: "the catalogue number of the object that it turned out to be",
    CORRECTION: "sets with a wrong number: segment, record and the right catalogue number of each",
    DECAY: "when the object left its orbit, as an instant, or `in orbit`, whatever sources state",
    RELEASE: "held element sets that are right: segment and record of each",
    "remark": "a remark",
}
"""What an edit may set, and its meaning."""
_SITE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}$")
_MOST_CHARACTERS: Final = 4096
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}$")
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}\Z")
_CORRECTED: Final = re.compile(r"([0-9a-f]{64}):([0-9]{1,18}):([1-9][0-9]{0,17})$")
_SET: Final = re.compile(r"([0-9a-f]{64}):([0-9]{1,18})$")


class BadEdit(ValueError):
    """The edit cannot be used; the text names the field and the reason."""


@dataclass(frozen=True)
class Edit:
    """One edit of one attribute of one object. An empty ``value`` removes what was set.

    ``vector`` counts the edits of this attribute of this object by site, this one included. ``lamport`` orders edits
    for display only. ``edited_time_ns`` is the editor's clock, which decides nothing. ``signature``: that of the site
    below `signed_text` (Ed25519, hexadecimal); empty: it is not signed.
    """

    norad_id: int
    attribute: str
    value: str
    origin: str
    lamport: int
    vector: Vector
    editor: str = ""
    edited_time_ns: int = 0
    signature: str = ""

    def __post_init__(self) -> None:
        if self.attribute not in ATTRIBUTES:
            raise BadEdit(f"attribute is {self.attribute[:80]!r}, must be one of {', '.join(ATTRIBUTES)}")
        if not _SITE.match(self.origin):
            raise BadEdit(f"origin is {self.origin[:80]!r}, must be 1 to 64 letters, digits, '_', '.' or '-'")
        if self.norad_id < 1:
            raise BadEdit(f"norad_id is {self.norad_id}, must be at least 1")
        if any(count < 1 for count in self.vector.values()) or not self.vector.get(self.origin):
            raise BadEdit("vector must count this edit under its origin, and nothing below 1")
        if len(self.value) > _MOST_CHARACTERS:
            raise BadEdit(f"value has {len(self.value)} characters, at most {_MOST_CHARACTERS} are allowed")
        if self.signature and not _SIGNATURE.match(self.signature):
            raise BadEdit(f"signature is {self.signature[:40]!r}…, must be 128 hexadecimal digits")
        if self.attribute == MERGE and self.value and not self._names_another():
            raise BadEdit(f"value is {self.value[:80]!r}, must be the catalogue number of another object")
        if self.attribute in _READERS:
            _READERS[self.attribute](self.value)

    def _names_another(self) -> bool:
        return bool(_NUMBER.match(self.value)) and int(self.value) != self.norad_id

    @property
    def key(self) -> tuple[int, str]:
        """Return the number of the object and the attribute that the edit sets."""
        return self.norad_id, self.attribute

    @property
    def signed_text(self) -> bytes:
        """Return what a site signs: every field but the signature, so that it is of no other edit."""
        facts = {name: value for name, value in asdict(self).items() if name != "signature"}
        return b"edit of a catalogue 1\n" + json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()

    @property
    def edit_id(self) -> str:
        """Compute the hash of the content: a second delivery has the same one."""
        facts = [self.norad_id, self.attribute, self.value, self.origin, sorted(self.vector.items())]
        return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()


def corrections_of(value: str) -> list[tuple[str, int, int]]:
    """Return the sets that a ``correct_object`` names: segment, record and right number of each. Raises BadEdit."""
    found = [_CORRECTED.match(each) for each in value.split()]
    if None in found:
        bad = value.split()[found.index(None)]
        raise BadEdit(f"value has {bad[:120]!r}, must be <SHA-256 of the segment>:<record>:<right catalogue number>")
    return [(each[1], int(each[2]), int(each[3])) for each in found if each]


def released_sets_of(value: str) -> list[tuple[str, int]]:
    """Return the sets that a ``released_sets`` names: segment and record of each. Raises BadEdit."""
    found = [_SET.match(each) for each in value.split()]
    if None in found:
        bad = value.split()[found.index(None)]
        raise BadEdit(f"value has {bad[:120]!r}, must be <SHA-256 of the segment>:<record>")
    return [(each[1], int(each[2])) for each in found if each]


def decided_decay_ns(value: str) -> int | None:
    """Return the decay that a DECAY states, Unix time UTC; None: it states none. Raises BadEdit."""
    if value in ("", IN_ORBIT):
        return None
    try:
        return parse_epoch_ns(value, "value")
    except RecordError as error:
        raise BadEdit(f"{error.text}, or {IN_ORBIT!r}") from None


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    CORRECTION: corrections_of, RELEASE: released_sets_of, DECAY: decided_decay_ns,
}  # fmt: skip


def read_edit(record: RawRecord) -> Edit:
    """Return the edit on one line; raises RecordError."""
    fields = json_object(record.payload)
    value, vector = fields.get("value"), fields.get("vector")
    if not isinstance(value, str):
        raise RecordError("bad_field", f"value is {ascii(value)[:80]}, must be text")
    if not isinstance(vector, dict) or not all(type(count) is int for count in vector.values()):
        raise RecordError("bad_field", f"vector is {ascii(vector)[:80]}, must be an object of integers")
    try:
        return Edit(
            norad_id=integer_field(fields, "norad_id"),
            attribute=text_field(fields, "attribute"),
            value=encodable(value, "value"),
            origin=text_field(fields, "origin"),
            lamport=integer_field(fields, "lamport"),
            vector=vector,
            editor=encodable(str(fields.get("editor") or ""), "editor"),
            edited_time_ns=integer_field(fields, "edited_time_ns") if "edited_time_ns" in fields else 0,
            signature=text_field(fields, "signature") if fields.get("signature") else "",
        )
    except BadEdit as error:
        raise RecordError("bad_field", str(error)) from None


def encode_edits(edits: Iterable[Edit]) -> bytes:
    """Edits as lines of JSON; equal edits give equal bytes."""
    rows = ({name: value for name, value in asdict(edit).items() if name != "signature" or value} for edit in edits)
    return b"".join(json.dumps(row, sort_keys=True).encode() + b"\n" for row in rows)

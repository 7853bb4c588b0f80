"""Edits of catalogue objects that sites make while they are disconnected, and their reconciliation.

Each attribute of each object has its own version vector: the number of its edits by each site that the editor had
received. An edit is superseded by an edit that follows it. The others are current: one is the value, several are a
conflict, which a person resolves by an edit that follows all of them. The order of arrival has no effect.

An edit may claim to have seen only what exists. One that counts edits which have not arrived is held back: it has no
effect and supersedes nothing until they have.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sda_platform.protocols.clocks import Ordering, Vector, compare, merged

MERGE: Final = "merged_into"
CORRECTION: Final = "correct_object"
ATTRIBUTES: Final[Mapping[str, str]] = {
    "name": "the object's name",
    "tag": "what kind of object it is, or how it is watched",
    MERGE: "the catalogue number of the object that it turned out to be",
    CORRECTION: "sets with a wrong number: segment, record and the right catalogue number of each",
    "remark": "a remark",
}
"""What an edit may set, and its meaning."""
_SITE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}$")
_MOST_CHARACTERS: Final = 4096
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}$")
_CORRECTED: Final = re.compile(r"([0-9a-f]{64}):([0-9]{1,18}):([1-9][0-9]{0,17})$")


class BadEdit(ValueError):
    """The edit cannot be used; the text names the field and the reason."""


@dataclass(frozen=True)
class Edit:
    """One edit of one attribute of one object. An empty ``value`` removes what was set.

    ``vector`` counts the edits of this attribute of this object by site, this one included. ``lamport`` orders edits
    for display only. ``edited_time_ns`` is the editor's clock, which decides nothing.
    """

    norad_id: int
    attribute: str
    value: str
    origin: str
    lamport: int
    vector: Vector
    editor: str = ""
    edited_time_ns: int = 0

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
        if self.attribute == MERGE and self.value and not self._names_another():
            raise BadEdit(f"value is {self.value[:80]!r}, must be the catalogue number of another object")
        if self.attribute == CORRECTION:
            corrections_of(self.value)

    def _names_another(self) -> bool:
        return bool(_NUMBER.match(self.value)) and int(self.value) != self.norad_id

    @property
    def key(self) -> tuple[int, str]:
        """What it edits."""
        return self.norad_id, self.attribute

    @property
    def edit_id(self) -> str:
        """Hash of its content: a second delivery has the same one."""
        facts = [self.norad_id, self.attribute, self.value, self.origin, sorted(self.vector.items())]
        return hashlib.sha256(json.dumps(facts, separators=(",", ":")).encode()).hexdigest()


def corrections_of(value: str) -> list[tuple[str, int, int]]:
    """The sets that a ``correct_object`` names: segment, record and right number of each. Raises BadEdit."""
    found = [_CORRECTED.match(each) for each in value.split()]
    if None in found:
        bad = value.split()[found.index(None)]
        raise BadEdit(f"value has {bad[:120]!r}, must be <SHA-256 of the segment>:<record>:<right catalogue number>")
    return [(each[1], int(each[2]), int(each[3])) for each in found if each]


@dataclass(frozen=True)
class EditVerdict:
    """The edits of one attribute of one object, by (lamport, origin): current, superseded, and held back.

    ``arrived`` counts by site the edits that have arrived, without those that are held.
    """

    current: tuple[Edit, ...]
    superseded: tuple[Edit, ...]
    held: tuple[Edit, ...] = ()
    arrived: Vector = field(default_factory=dict)

    @property
    def is_conflict(self) -> bool:
        """Whether the current edits set different values."""
        return len({edit.value for edit in self.current}) > 1


def reconcile(edits: Iterable[Edit]) -> EditVerdict:
    """Find the current edits of one attribute of one object; none is lost, and none wins by its time.

    Two edits with one vector and other values come from a site that was restored from a backup: both are current.
    """
    held = sorted({edit.edit_id: edit for edit in edits}.values(), key=_shown_first)
    arrived: dict[str, int] = {}
    counted: list[Edit] = []
    while following := [edit for edit in held if _is_founded(edit, arrived)]:
        counted += following
        held = [edit for edit in held if edit not in following]
        arrived = merged(arrived, *(edit.vector for edit in following))
    counted.sort(key=_shown_first)
    current = [a for a in counted if not any(compare(a.vector, b.vector) is Ordering.BEFORE for b in counted)]
    superseded = [edit for edit in counted if edit not in current]
    return EditVerdict(tuple(current), tuple(superseded), tuple(held), arrived)


def next_edit(
    known: Iterable[Edit], *, norad_id: int, attribute: str, value: str, origin: str, editor: str, edited_time_ns: int
) -> Edit:
    """The edit that ``origin`` makes after it has seen the ``known`` edits of this attribute; it supersedes them.

    What is held back it has not seen.
    """
    verdict = reconcile(edit for edit in known if edit.key == (norad_id, attribute))
    seen = (*verdict.current, *verdict.superseded)
    vector = merged(*(edit.vector for edit in seen))
    vector[origin] = vector.get(origin, 0) + 1
    lamport = max((edit.lamport for edit in seen), default=0) + 1
    return Edit(norad_id, attribute, value, origin, lamport, vector, editor, edited_time_ns)


def _is_founded(edit: Edit, arrived: Vector) -> bool:
    """Whether all that ``edit`` claims to have seen has arrived; its own site's edits are counted one by one."""
    own = arrived.get(edit.origin, 0) + 1
    return all(count <= (own if site == edit.origin else arrived.get(site, 0)) for site, count in edit.vector.items())


def _shown_first(edit: Edit) -> tuple[int, str, str]:
    return edit.lamport, edit.origin, edit.edit_id

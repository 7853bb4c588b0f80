"""Which object an element set is of, once edits have merged satellites and corrected mis-tags.

An edit ``merged_into`` of object A with value B has every set of A count for B. An edit ``correct_object`` of object A
names sets that were published under A by mistake, each as ``<SHA-256 of the segment>:<record>:<right number>``, divided
by spaces. Edits that contradict each other have no effect until a person decides; nor have merges that form a circle.
A later edit with another value, or an empty one, undoes an earlier one. The order of arrival has no effect.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sda_platform.catalog.edits import settled
from sda_platform.formats.edits import CORRECTION, MERGE, Edit, corrections_of

SetKey = tuple[int, str, int]
"""Published number, segment and record of an element set."""
IDENTIFYING: Final = (MERGE, CORRECTION)
"""The attributes of edits that change which object a set is of."""


@dataclass(frozen=True)
class Identities:
    """``merges``: of each merged number the one that survives. ``corrections``: of single sets the number that counts.

    Both are final: they name no number that is itself merged.
    """

    merges: Mapping[int, int] = field(default_factory=dict)
    corrections: Mapping[SetKey, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.merges or self.corrections)

    def of(self, number: int, segment_sha256: str = "", record: int = -1) -> int:
        """Return the object of a set that was published under ``number``."""
        return self.corrections.get((number, segment_sha256, record), self.merges.get(number, number))

    def sources(self, objects: Iterable[int]) -> set[int]:
        """Return the numbers under which sets of ``objects`` may have been published."""
        wanted = set(objects)
        merged = {number for number, into in self.merges.items() if into in wanted}
        return wanted | merged | {key[0] for key, number in self.corrections.items() if number in wanted}

    def changed(self, before: "Identities") -> set[int]:
        """Return the objects that have gained or lost sets since ``before``."""
        numbers = self.merges.keys() | before.merges.keys()
        keys = [(number, "", -1) for number in numbers] + [*self.corrections.keys(), *before.corrections.keys()]
        found = [(key[0], before.of(*key), self.of(*key)) for key in keys]
        moved = {number for _, old, new in found if old != new for number in (old, new)}
        return moved | {number for number, old, new in found if old != new}

    @property
    def digest(self) -> str:
        """A text that differs for different identities; empty where no edit has an effect."""
        facts = [sorted(self.merges.items()), sorted(self.corrections.items())]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32] if self else ""


NO_IDENTITIES: Final = Identities()


def identities_of(edits: Iterable[Edit]) -> Identities:
    """Derive merged objects and corrected numbers from the current ``edits``; ignore edits of other attributes."""
    merges: dict[int, int] = {}
    corrections: dict[SetKey, int] = {}
    for edit in settled(edit for edit in edits if edit.attribute in IDENTIFYING):
        if edit.attribute == CORRECTION:
            found = corrections_of(edit.value)
            corrections |= {(edit.norad_id, segment, record): right for segment, record, right in found}
        elif edit.value:
            merges[edit.norad_id] = int(edit.value)
    final = {number: _end(number, merges) for number in merges}
    kept = {number: end for number, end in final.items() if end != number}
    return Identities(kept, {key: kept.get(right, right) for key, right in corrections.items()})


def _end(number: int, merges: Mapping[int, int]) -> int:
    """Where the merges of ``number`` lead; a number of a circle stays itself, and ends what leads to it."""
    path = [number]
    while (following := merges.get(path[-1])) is not None:
        if following in path:
            return number if number in path[path.index(following) :] else following
        path.append(following)
    return path[-1]

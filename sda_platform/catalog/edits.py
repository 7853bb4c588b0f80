"""The reconciliation of edits of catalogue objects that sites make while they are disconnected.

An edit is superseded by an edit that follows it. The others are current: one is the value, several are a conflict,
which a person resolves by an edit that follows all of them. Version vectors order edits; the order of arrival and wall
clocks have no effect, so a clock that is wrong cannot choose a winner.

An edit may claim to have seen only what exists. One that counts edits which have not arrived is held back: it has no
effect and supersedes nothing until they have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from sda_platform.formats.edits import Edit, Vector


class Ordering(Enum):
    """The order of two vectors."""

    BEFORE = "before"
    AFTER = "after"
    EQUAL = "equal"
    CONCURRENT = "concurrent"


def compare(a: Vector, b: Vector) -> Ordering:
    """Return the order of ``a`` relative to ``b``: before it, after it, equal, or concurrent with it."""
    below = any(count < b.get(origin, 0) for origin, count in a.items()) or any(
        count > a.get(origin, 0) for origin, count in b.items()
    )
    above = any(count > b.get(origin, 0) for origin, count in a.items())
    if below and above:
        return Ordering.CONCURRENT
    if below:
        return Ordering.BEFORE
    return Ordering.AFTER if above else Ordering.EQUAL


def merged(*vectors: Vector) -> dict[str, int]:
    """Return the least vector that has seen what each of ``vectors`` has: the maximum by origin, without zeros."""
    origins = sorted({origin for vector in vectors for origin in vector})
    greatest = {origin: max(vector.get(origin, 0) for vector in vectors) for origin in origins}
    return {origin: count for origin, count in greatest.items() if count}


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


def settled(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edit that holds of each object and attribute; edits that contradict each other have no effect."""
    verdicts = [reconcile(group) for _, group in groupby(sorted(edits, key=_key), key=_key)]
    return [each.current[0] for each in verdicts if each.current and not each.is_conflict]


def next_edit(
    known: Iterable[Edit], *, norad_id: int, attribute: str, value: str, origin: str, editor: str, edited_time_ns: int
) -> Edit:
    """Return the edit that ``origin`` makes after it has seen the ``known`` edits of this attribute; it supersedes
    them.

    What is held back it has not seen.
    """
    verdict = reconcile(edit for edit in known if edit.key == (norad_id, attribute))
    seen = (*verdict.current, *verdict.superseded)
    vector = merged(*(edit.vector for edit in seen))
    vector[origin] = vector.get(origin, 0) + 1
    lamport = max((edit.lamport for edit in seen), default=0) + 1
    return Edit(norad_id, attribute, value, origin, lamport, vector, editor, edited_time_ns)


def _is_founded(edit: Edit, arrived: Vector) -> bool:
    """Return whether all that ``edit`` claims to have seen has arrived; its own site's edits are counted one by one."""
    own = arrived.get(edit.origin, 0) + 1
    return all(count <= (own if site == edit.origin else arrived.get(site, 0)) for site, count in edit.vector.items())


def _key(edit: Edit) -> tuple[int, str]:
    return edit.key


def _shown_first(edit: Edit) -> tuple[int, str, str]:
    return edit.lamport, edit.origin, edit.edit_id

"""What the satellite catalogue knows of each object, beside its element sets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from typing_extensions import override

from sda_platform.formats.element_set import UNKNOWN, ElementSet
from sda_platform.formats.omm import omm_values
from sda_platform.formats.tle_writing import encode_tles
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.orbits.risk.object_kinds import object_type
from sda_platform.serving.record import StoredElements
from sda_platform.serving.rendering import element_set

Facts = Mapping[str, Any]
"""The facts of one object by the names of `formats.satcat.FACTS`; those that are not known are None or missing."""
_NOTHING: Final[Facts] = {}


@dataclass(frozen=True)
class Satellites:
    """The facts of each object that the satellite catalogue has; ``identity`` differs for each version of it.

    ``sequence``: its commit sequence, and ``written`` that of the commit which wrote each object last.
    ``predictions``: every message that predicts a decay, with ``received_time_ns``. ``names_at``: the names that edits
    give to objects, at a mission time. ``known_at``: what was known at a mission time; None: this is all that is known.
    """

    identity: str = "none"
    by_number: Mapping[int, Facts] = field(default_factory=dict)
    sequence: int = 0
    written: Mapping[int, int] = field(default_factory=dict)
    predictions: Sequence[Facts] = ()
    names_at: Callable[[int], Mapping[int, str]] = lambda _time_ns: {}
    known_at: Callable[[int], "Satellites"] | None = None

    def changed_since(self, sequence: int) -> list[int]:
        """Find the objects that commits after ``sequence`` wrote."""
        return [number for number, written in self.written.items() if written > sequence]

    def at(self, time_ns: int) -> "Satellites":
        """Return what was known at a mission time."""
        return self.known_at(time_ns) if self.known_at else self

    def of(self, norad_id: int) -> Facts:
        """Return the facts of an object, as far as they are known."""
        return self.by_number.get(norad_id, _NOTHING)


NO_SATELLITES: Final = Satellites()


class CataloguedObject:
    """An object as queries see it: a set of it, where it has one, and what is known of it."""

    def __init__(self, norad_id: int, record: StoredElements | None, facts: Facts) -> None:
        self.norad_id, self.record, self.facts = norad_id, record, facts

    @cached_property
    def element(self) -> ElementSet | None:
        """Its set, as formats write it."""
        return None if self.record is None else element_set(self.record)

    @cached_property
    def omm(self) -> Mapping[str, Any]:
        """The values of its set by the keywords of an OMM; none without a set."""
        return _NOTHING if self.element is None else omm_values(self.element)

    @cached_property
    def lines(self) -> tuple[str, str, str] | None:
        """Its name line and the two lines of its set; None where they cannot hold it."""
        if self.element is None:
            return None
        try:
            first, second = encode_tles([self.element]).decode().splitlines()[-2:]
        except ValueError:
            return None
        return f"0 {self.name or UNKNOWN}", first, second

    @property
    def name(self) -> str | None:
        """Its name by its set, or by the satellite catalogue."""
        stated: str | None = self.facts.get("object_name")
        return (self.record.object_name if self.record else None) or stated

    @property
    def designator(self) -> str | None:
        """Its international designator."""
        stated: str | None = self.facts.get("international_designator")
        return (self.record.international_designator if self.record else None) or stated

    @property
    def kind(self) -> str:
        """Its type, as `formats.satcat.OBJECT_TYPES` has it; by its name where no catalogue states it."""
        return self.facts.get("object_type") or object_type(self.name).upper()

    @property
    def decay_ns(self) -> int | None:
        """When it decayed, Unix time UTC; None: it is in orbit, as far as is known."""
        stated: int | None = self.facts.get("decay_time_ns")
        return stated if self.record is None or self.record.decay_time_ns is None else self.record.decay_time_ns

    def is_in_orbit(self, time_ns: int) -> bool:
        """Tell whether it has not decayed at a time."""
        return (self.decay_ns or FOREVER_NS) > time_ns


class PredictedDecay(CataloguedObject):
    """One message that predicts a decay, and its object; whether that has decayed since does not count."""

    @property
    @override
    def decay_ns(self) -> int | None:
        return None

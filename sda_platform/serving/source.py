"""Where the serving index comes from: the catalogue's tables, and what was acknowledged but is not in them yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.serving.index import Binding
from sda_platform.serving.satellites import Satellites

Rows = list[Mapping[str, Any]]
ELEMENT_SETS: Final = "element_sets"
FEEDS: Final = ("alerts", "conjunctions", ELEMENT_SETS, "tracks")
"""What has events, by name."""


@dataclass(frozen=True, eq=False)
class KnownPath:
    """An ephemeris of an object that is better than its element sets. ``origin``: the kind of state that it gives.

    ``is_own``: this platform determined it, without planned manoeuvres.
    """

    origin: str
    ephemeris_id: str
    ephemeris: Ephemeris
    is_own: bool
    marking: Marking = UNMARKED


class CatalogueSource(Protocol):
    """Versions of the catalogue. Tables that it returns have the columns `serving.record.COLUMNS`."""

    def newest(self) -> Binding | None:
        """Return the newest version that may be read; None where there is none yet. Its counts are 0."""

    def holds(self, binding: Binding) -> bool:
        """Return whether the catalogue's log still holds the commit to which an index is bound."""

    def catalogue(self, binding: Binding, *, after_sequence: int = 0) -> pa.Table:
        """Return the rows of the catalogue at ``binding`` that commits after ``after_sequence`` wrote."""

    def element_sets(self, binding: Binding) -> Iterator[pa.Table]:
        """Return the usable sets that ``binding`` had consumed; with IS_HELD.

        They come about by epoch, in tables of bounded size, each read when it is reached.
        """

    def new_element_sets(self, binding: Binding, after_sequence: int) -> pa.Table | None:
        """Return `element_sets` of commits after ``after_sequence``; None where they are too many for one step."""

    def changed_holds(self, binding: Binding, after_sequence: int, new_sets: pa.Table) -> pa.Table:
        """Return the sets that commits of `held_element_sets` after ``after_sequence`` up to ``binding`` have changed.

        With IS_HELD, and without those among ``new_sets``.
        """

    def held_between(self, after_sequence: int, upto_sequence: int) -> Sequence[int]:
        """Return the objects of sets that commits of `held_element_sets` after the first up to the last changed."""

    def received_between(self, binding: Binding, span_ns: tuple[int, int], most: int) -> pa.Table:
        """Return at most so many of the `element_sets` that were received in a span, both ends included."""

    def identified(self, sets: pa.Table) -> pa.Table:
        """Published ``sets`` under the numbers of the objects that they are of, by the newest version's edits."""

    def satellites(self) -> Satellites:
        """Return what the newest satellite catalogue that may be read knows of objects; the same while it does not
        change.
        """

    def unconsumed(self, binding: Binding | None, known: Iterable[str]) -> dict[str, pa.Table]:
        """Read acknowledged micro-segments that the catalogue lacks, by hash, except the ``known`` ones."""

    def row_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the JSON schemas of the rows below, by the names in `serving.answers`."""

    def feed_heads(self) -> Mapping[str, int]:
        """Return the number of the newest commit of each of `FEEDS` that may be read; 0 where there is none."""

    def feed_rows(self, feed: str, sequence: int) -> pa.Table:
        """Return what a commit of a feed wrote, by its key; `ELEMENT_SETS` has the columns of `serving.record`."""

    # The rows below are those of now, or those that were current at a mission time; NotKept: no longer known.

    def conjunctions(self, norad_id: int, as_of_ns: int | None = None) -> Rows:
        """Return the current assessments of an object's conjunctions, by time of closest approach."""

    def alerts(self, as_of_ns: int | None = None) -> Rows:
        """Return the current alerts, highest level first, then Pc, then TCA."""

    def schedule(self, as_of_ns: int | None = None) -> Rows:
        """Return the scheduled observations of `pass_schedule`, by their beginning."""

    def paths(self, norad_id: int, span_ns: tuple[int, int], as_of_ns: int | None = None) -> Sequence[KnownPath]:
        """Return the ephemerides of an object that reach into a span, the best one last."""

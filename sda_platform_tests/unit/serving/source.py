"""A catalogue in memory, as a source of the serving index."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.orbits.element_order import rank
from sda_platform.serving.answers import ALERT, CONJUNCTION, SCHEDULED_OBSERVATION
from sda_platform.serving.index import Binding
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.record import StoredElements
from sda_platform.serving.satellites import NO_SATELLITES, Satellites
from sda_platform.serving.source import ELEMENT_SETS, FEEDS, KnownPath, Rows
from sda_platform_tests.unit.serving.catalogues import bound_to, table


class Seen:
    """What a live catalogue serves, each answer from a view of its own."""

    def __init__(self, live: LiveCatalogue) -> None:
        self._live = live

    def __getattr__(self, name: str) -> Callable[..., list[StoredElements]]:
        def answer(*arguments: Any) -> list[StoredElements]:
            with self._live.view() as view:
                return list(getattr(view, name)(*arguments))

        return answer

    @property
    def identity(self) -> str:
        """That of the view."""
        with self._live.view() as view:
            return view.identity


class MemorySource:
    """Commits of element sets, each of which the catalogue consumes at once."""

    def __init__(self) -> None:
        self.sets: list[dict[str, Any]] = []
        self.waiting: dict[str, pa.Table] = {}
        self.approaches: Rows = []
        self.scheduled: Rows = []
        self.known_paths: dict[int, list[KnownPath]] = {}
        self.commits: dict[str, list[list[dict[str, Any]]]] = {feed: [] for feed in FEEDS}
        self.known = NO_SATELLITES
        self.version = 0
        self.holds_of: list[int] = []
        self.reads: list[str] = []
        self.most = sys.maxsize

    def commit(self, *rows: dict[str, Any]) -> Binding:
        """Consume these sets in a commit of their own."""
        self.version += 1
        self.sets += [{**row, "commit_sequence": self.version} for row in rows]
        return bound_to(self.version)

    def newest(self) -> Binding | None:
        return (
            replace(
                bound_to(self.version),
                sequence=self.version,
                elements_sequence=self.version,
                holds_sequence=len(self.holds_of),
            )
            if self.version
            else None
        )

    def holds(self, binding: Binding) -> bool:
        return binding.manifest_sha256 == bound_to(binding.version).manifest_sha256

    def catalogue(self, binding: Binding, *, after_sequence: int = 0) -> pa.Table:
        self.reads.append(f"catalogue after {after_sequence}")
        best: dict[int, dict[str, Any]] = {}
        for row in sorted(self.sets, key=lambda r: rank(r, binding.as_of_ns)):
            best[row["norad_id"]] = row
        return table([row for row in best.values() if row["commit_sequence"] > after_sequence])

    def element_sets(self, binding: Binding) -> Iterator[pa.Table]:
        yield table(self.sets)

    def new_element_sets(self, binding: Binding, after_sequence: int) -> pa.Table | None:
        found = table(self.sets)
        new = found.filter(pc.greater(found["commit_sequence"], after_sequence))
        return new if new.num_rows < self.most else None

    def changed_holds(self, binding: Binding, after_sequence: int, new_sets: pa.Table) -> pa.Table:
        return table([])

    def held_between(self, after_sequence: int, upto_sequence: int) -> Sequence[int]:
        return self.holds_of[after_sequence:upto_sequence]

    def received_between(self, binding: Binding, span_ns: tuple[int, int], most: int) -> pa.Table:
        first, last = span_ns
        return table([row for row in self.sets if first <= row["received_time_ns"] <= last][:most])

    def identified(self, sets: pa.Table) -> pa.Table:
        return sets

    def satellites(self) -> Satellites:
        return self.known

    def unconsumed(self, binding: Binding | None, known: Iterable[str]) -> dict[str, pa.Table]:
        return {sha256: sets for sha256, sets in self.waiting.items() if sha256 not in set(known)}

    def row_schemas(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: {"type": "object"} for name in (ALERT, CONJUNCTION, SCHEDULED_OBSERVATION)}

    def feed_heads(self) -> Mapping[str, int]:
        return {feed: len(self.commits[feed]) for feed in FEEDS}

    def feed_rows(self, feed: str, sequence: int) -> pa.Table:
        rows = self.commits[feed][sequence - 1]
        return table(rows) if feed == ELEMENT_SETS else pa.Table.from_pylist(rows)

    def conjunctions(self, norad_id: int, as_of_ns: int | None = None) -> Rows:
        return [row for row in self.approaches if norad_id in (row["norad_id_1"], row["norad_id_2"])]

    def alerts(self, as_of_ns: int | None = None) -> Rows:
        return self.approaches

    def schedule(self, as_of_ns: int | None = None) -> Rows:
        return self.scheduled

    def paths(self, norad_id: int, span_ns: tuple[int, int], as_of_ns: int | None = None) -> Sequence[KnownPath]:
        return self.known_paths.get(norad_id, [])

"""The objects of a simulated world and their true states.

The truth is integrated numerically from the published elements at the start of the simulation. Each object is early or
late by its own time: the along-track error of published elements. What SGP4 leaves out of the motion adds to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.motion import Motion
from sda_platform.simulation.randomness import keyed_uniform

_BEFORE_ALL_NS = -(2**62)
_AFTER_ALL_NS = 2**62


@dataclass(frozen=True)
class Sky:
    """n objects; an object exists in [born_time_ns, ended_time_ns)."""

    propagator: Propagator
    norad_id: IntArray
    object_name: tuple[str, ...]
    ahead_ns: IntArray
    born_time_ns: IntArray
    ended_time_ns: IntArray
    start_time_ns: int
    _motion: Motion = field(default_factory=Motion, compare=False)

    @classmethod
    def of_catalogue(
        cls,
        catalogue: pa.Table,
        *,
        objects: Sequence[int] | None,
        seed: int,
        catalogue_error_s: float,
        start_time_ns: int,
    ) -> Self:
        """Return the valid rows of a decoded element-set table, limited to `objects` where given, in that order.

        `catalogue_error_s` is the 1-sigma time by which an object is ahead of its elements.
        """
        good = catalogue.filter(pc.is_null(catalogue["error_kind"]))
        ids = good["norad_id"].to_numpy()
        row_of = {norad_id: row for row, norad_id in enumerate(ids.tolist())}
        wanted = row_of if objects is None else {i: row_of[i] for i in dict.fromkeys(objects) if i in row_of}
        good = good.take(pa.array(list(wanted.values()), pa.int64()))
        columns = {name: good[name].to_numpy() for name in _NUMBERS}
        chosen = list(wanted)
        uniform = np.clip(keyed_uniform(seed, "catalogue error", chosen), 1e-9, 1 - 1e-9)
        return cls(
            propagator=Propagator(ElementSets.from_columns(columns)),
            norad_id=np.array(chosen, dtype=np.int64),
            object_name=tuple(name or "" for name in good["object_name"].to_pylist()),
            ahead_ns=(ndtri(uniform) * catalogue_error_s * 1e9).astype(np.int64),
            born_time_ns=np.full(len(chosen), _BEFORE_ALL_NS, dtype=np.int64),
            ended_time_ns=np.full(len(chosen), _AFTER_ALL_NS, dtype=np.int64),
            start_time_ns=start_time_ns,
        )

    def __len__(self) -> int:
        return len(self.norad_id)

    def with_debris(self, debris: "Sky", parent: int, time_ns: int) -> "Sky":
        """End the object at position `parent` at `time_ns`, and add the debris that is present from then on.

        The debris keeps the parent's own error, so that it starts at the parent's true position.
        """
        ended = self.ended_time_ns.copy()
        ended[parent] = time_ns
        ahead = np.full(len(debris), self.ahead_ns[parent], dtype=np.int64)
        return replace(self, ended_time_ns=ended).joined_by(replace(debris, ahead_ns=ahead), time_ns)

    def joined_by(self, others: "Sky", time_ns: int) -> "Sky":
        """Add the objects of another sky, which are present from `time_ns` on."""
        elements = (self.propagator.elements, others.propagator.elements)
        columns = {name: np.concatenate([getattr(part, name) for part in elements]) for name in _NUMBERS}
        born = np.full(len(others), time_ns, dtype=np.int64)
        return Sky(
            propagator=Propagator(ElementSets.from_columns(columns)),
            norad_id=np.concatenate([self.norad_id, others.norad_id]),
            object_name=self.object_name + others.object_name,
            ahead_ns=np.concatenate([self.ahead_ns, others.ahead_ns]),
            born_time_ns=np.concatenate([self.born_time_ns, born]),
            ended_time_ns=np.concatenate([self.ended_time_ns, others.ended_time_ns]),
            start_time_ns=self.start_time_ns,
        )

    def with_path(self, elements: ElementSets, row: int, time_ns: int) -> "Sky":
        """Let the object at ``row`` follow ``elements`` (1,) exactly from ``time_ns`` on."""
        columns = {
            name: np.append(getattr(self.propagator.elements, name), getattr(elements, name)) for name in _NUMBERS
        }
        columns["norad_id"][-1] = self.norad_id[row]
        ended = np.append(self.ended_time_ns, self.ended_time_ns[row])
        ended[row] = time_ns
        return Sky(
            propagator=Propagator(ElementSets.from_columns(columns)),
            norad_id=np.append(self.norad_id, self.norad_id[row]),
            object_name=(*self.object_name, self.object_name[row]),
            ahead_ns=np.append(self.ahead_ns, 0),
            born_time_ns=np.append(self.born_time_ns, time_ns),
            ended_time_ns=ended,
            start_time_ns=self.start_time_ns,
        )

    def coarse(self, time_ns: IntArray) -> FloatArray:
        """Return positions (n, t, 3) km TEME at common times, without the objects' own errors; NaN where SGP4
        rejects.
        """
        return self.propagator.grid(time_ns)[1]

    def states(self, index: IntArray, time_ns: IntArray) -> tuple[ErrorArray, FloatArray, FloatArray]:
        """True states: error (m,), r_teme_km (m, 3), v_teme_km_s (m, 3); error also where the object does not exist."""
        from_ns = np.maximum(self.start_time_ns, self.born_time_ns)
        error, state = self._motion.states(self.propagator, self.ahead_ns, from_ns, index, time_ns)
        exists = (self.born_time_ns[index] <= time_ns) & (time_ns < self.ended_time_ns[index])
        return np.where(exists, error, np.uint8(255)), state[:, :3], state[:, 3:]


_NUMBERS = tuple(ElementSets.__dataclass_fields__)

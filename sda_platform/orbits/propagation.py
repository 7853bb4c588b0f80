"""SGP4 over many objects and times (WGS72, TEME), with rejections as codes and as text.

Object ids are never passed to SGP4, because real ids exceed its field.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from sgp4.api import SGP4_ERRORS as _LIBRARY_ERRORS
from sgp4.api import WGS72, Satrec, SatrecArray

from sda_platform.arrays import ErrorArray, FloatArray, IntArray
from sda_platform.orbits.elements import SGP4_DAY_ZERO_JD, ElementSets
from sda_platform.orbits.sgp4_time import elapsed, julian, leap_days
from sda_platform.orbits.usable_spans import IMPOSSIBLE, STATED_DECAY, UsableSpans

NOT_FINITE = 7
SGP4_ERRORS: Mapping[int, str] = MappingProxyType(
    {
        **_LIBRARY_ERRORS,
        NOT_FINITE: "the elements or the propagated state are not finite numbers",
        STATED_DECAY: "the object has decayed, as the source of the set states",
        IMPOSSIBLE: "the elements lead through the Earth, or the radius or speed is beyond what they allow",
    }
)
"""Why a set has no state at a time: the errors of the SGP4 library, and those of `usable_spans`."""

# Rows of one object worth one array call instead of a loop of scalar calls.
_ARRAY_CALL_PAYS_FROM = 6
# A larger share of the sets is initialised with all of them.
_FEW = 0.1
_ERROR_SCALE, _DIFFERENCES = "error_scale", "history_differences"


class Propagator:
    """SGP4 for a fixed list of element sets; rows are addressed by position in ``elements``.

    SGP4 is initialised once for each set, on first use: for few sets alone, else for all. A pickle contains only the
    elements; a process that unpickles the same elements again gets its already initialised propagator.
    """

    def __init__(
        self,
        elements: ElementSets,
        error_scale: FloatArray | None = None,
        history_differences: IntArray | None = None,
    ) -> None:
        """
        Args:
            elements: the sets (n,).
            error_scale: (n, 3) radial, in-track and cross-track: how much larger the errors of the sets' objects are
                than those of their regime (`element_errors`); ones if not given.
            history_differences: (n,) how many differences between sets of the object the scale rests on; none if not
                given.
        """
        self.elements = elements
        self.error_scale = np.ones((len(elements), 3)) if error_scale is None else error_scale
        none = np.zeros(len(elements), np.int64)
        self.history_differences = none if history_differences is None else history_differences

    def __len__(self) -> int:
        return len(self.elements)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = {field.name: getattr(self.elements, field.name) for field in dataclasses.fields(self.elements)}
        return _rebuild, (
            _Columns({**columns, _ERROR_SCALE: self.error_scale, _DIFFERENCES: self.history_differences}),
        )

    @cached_property
    def _usable(self) -> npt.NDArray[np.bool_]:
        numbers = [
            getattr(self.elements, field.name)
            for field in dataclasses.fields(self.elements)
            if field.type == "FloatArray"
        ]
        return np.asarray(np.all(np.isfinite(numbers), axis=0))

    @cached_property
    def _satrecs(self) -> list[Satrec]:
        return _initialise(self.elements, self._usable)

    @cached_property
    def _some(self) -> dict[int, Satrec]:
        return {}

    def _initialised(self, rows: IntArray) -> list[Satrec] | dict[int, Satrec]:
        """SGP4 of at least the different ``rows``, by row."""
        if "_satrecs" in self.__dict__ or len(rows) > _FEW * len(self):
            return self._satrecs
        fresh = [row for row in rows.tolist() if row not in self._some]
        if fresh:
            self._some.update(zip(fresh, _initialise(self.elements.take(fresh), self._usable[fresh]), strict=True))
        return self._some

    @cached_property
    def _spans(self) -> UsableSpans:
        return UsableSpans(self.elements)

    @cached_property
    def _source(self) -> tuple[Propagator, IntArray]:
        """The propagator that this one was taken from, which remembers what is known of each set, and rows there."""
        return self, np.arange(len(self))

    def usable_parts(self, start_ns: int, end_ns: int) -> tuple[IntArray, IntArray, ErrorArray]:
        """Return the part [from, until] (n,) of the span in which each set is usable, and what ends it
        (``SGP4_ERRORS``, 0).

        A set that is usable at no time of it has an empty part.
        """
        source, rows = self._source
        from_ns, until_ns, code = source._spans.ends(source._satrec, rows, start_ns, end_ns)
        until_ns = np.where(self._usable, until_ns, from_ns)
        return from_ns, until_ns, np.where(self._usable, code, np.uint8(NOT_FINITE))

    def _satrec(self, row: int) -> Satrec:
        return self._initialised(np.array([row]))[row]

    @cached_property
    def _array(self) -> SatrecArray:
        return SatrecArray(self._satrecs)

    def grid(self, time_ns: npt.ArrayLike) -> tuple[ErrorArray, FloatArray, FloatArray]:
        """Propagate every object to every time.

        Args:
            time_ns: (t,) nanoseconds since the Unix epoch, UTC.

        Returns:
            error (n, t): 0 or a key of ``SGP4_ERRORS``; r_teme_km (n, t, 3); v_teme_km_s (n, t, 3), NaN on
            error.
        """
        times: IntArray = np.atleast_1d(np.asarray(time_ns, dtype=np.int64))
        day, fraction = elapsed(times)
        if not len(self.elements):
            return np.zeros((0, len(day)), np.uint8), np.zeros((0, len(day), 3)), np.zeros((0, len(day), 3))
        error, r_teme_km, v_teme_km_s = self._array.sgp4(day, fraction)
        if len(times):
            rows = np.arange(len(self))
            is_doubtful = self._doubtful(rows, times.min()) | self._doubtful(rows, times.max())
            # Together: the proofs of one set cost as much as those of hundreds.
            rows = rows[self._usable & is_doubtful]
            states = error[rows].ravel(), r_teme_km[rows].reshape(-1, 3), v_teme_km_s[rows].reshape(-1, 3)
            judged = self._judged(np.repeat(rows, len(times)), np.tile(times, len(rows)), *states)
            error[rows] = judged.reshape(len(rows), len(times))
        return _mark_unusable(error, r_teme_km, v_teme_km_s, self._usable[:, None])

    def at(self, index: npt.ArrayLike, time_ns: npt.ArrayLike) -> tuple[ErrorArray, FloatArray, FloatArray]:
        """Propagate object ``index[k]`` to ``time_ns[k]``.

        Args:
            index: (m,) positions in ``elements``.
            time_ns: (m,) or scalar nanoseconds since the Unix epoch, UTC.

        Returns:
            error (m,), r_teme_km (m, 3), v_teme_km_s (m, 3); NaN on error.
        """
        rows: IntArray = np.atleast_1d(np.asarray(index, dtype=np.int64))
        times: IntArray = np.broadcast_to(np.asarray(time_ns, dtype=np.int64), rows.shape)
        day, fraction = elapsed(times)
        error = np.zeros(len(rows), np.uint8)
        r_teme_km, v_teme_km_s = np.empty((len(rows), 3)), np.empty((len(rows), 3))
        order = np.argsort(rows, kind="stable")
        objects, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
        repeated = counts >= _ARRAY_CALL_PAYS_FROM
        satrecs = self._initialised(objects)
        for row, start, count in zip(
            objects[repeated].tolist(), starts[repeated].tolist(), counts[repeated].tolist(), strict=True
        ):
            span = order[start : start + count]
            error[span], r_teme_km[span], v_teme_km_s[span] = satrecs[row].sgp4_array(day[span], fraction[span])
        single = order[~np.repeat(repeated, counts)]
        if len(single):
            arguments = zip(rows[single].tolist(), day[single].tolist(), fraction[single].tolist(), strict=True)
            states = [satrecs[row].sgp4(jd, fr) for row, jd, fr in arguments]
            codes, positions, velocities = zip(*states, strict=True)
            error[single], r_teme_km[single], v_teme_km_s[single] = codes, positions, velocities
        asked = np.flatnonzero(self._usable[rows] & self._doubtful(rows, times))
        if len(asked):
            error[asked] = self._judged(rows[asked], times[asked], error[asked], r_teme_km[asked], v_teme_km_s[asked])
        return _mark_unusable(error, r_teme_km, v_teme_km_s, self._usable[rows])

    def take(self, index: npt.ArrayLike) -> Propagator:
        """A propagator of the chosen rows that shares this one's initialised objects."""
        chosen = np.asarray(index)
        part = Propagator(self.elements.take(chosen), self.error_scale[chosen], self.history_differences[chosen])
        rows = np.arange(len(self))[chosen]
        satrecs = self._initialised(np.unique(rows))
        part.__dict__["_satrecs"] = [satrecs[row] for row in rows.tolist()]
        source, found = self._source
        part.__dict__["_source"] = source, found[rows]
        return part

    def _doubtful(self, rows: IntArray, time_ns: IntArray | np.int64) -> npt.NDArray[np.bool_]:
        source, found = self._source
        return source._spans.doubtful(found[rows], time_ns)

    def _judged(
        self, rows: IntArray, time_ns: IntArray, error: ErrorArray, r_km: FloatArray, v_km_s: FloatArray
    ) -> ErrorArray:
        source, found = self._source
        return source._spans.judged(source._satrec, found[rows], time_ns, error, r_km, v_km_s)


def refusal_reasons(elements: ElementSets, time_ns: int | None = None) -> list[str | None]:
    """State why each element set cannot be used, or None where it can; length n.

    An element set can be used if it propagates at its own epoch and, if given, up to ``time_ns`` (`usable_spans`).
    """
    propagator = Propagator(elements)
    rows = np.arange(len(elements))
    if not len(rows):
        return []
    at_epoch = propagator.at(rows, elements.epoch_time_ns)[0]
    reasons = [_refusal(code, "at its epoch") for code in at_epoch.tolist()]
    if time_ns is not None:
        later = propagator.at(rows, time_ns)[0].tolist()
        instant = f"at {np.datetime64(time_ns, 'ns')}Z"
        reasons = [reason or _refusal(code, instant) for reason, code in zip(reasons, later, strict=True)]
    return reasons


def _refusal(code: int, when: str) -> str | None:
    return f"SGP4 error {code} {when}: {SGP4_ERRORS.get(code, 'unknown')}" if code else None


def _initialise(elements: ElementSets, usable: npt.NDArray[np.bool_]) -> list[Satrec]:
    # An unusable row still needs a place in the array; the fill never reaches a caller (see _mark_unusable).
    # Required: with a NaN SGP4's deep-space integrator may never end.
    def column(values: FloatArray, fill: float = 0.0) -> list[float]:
        filled: list[float] = np.where(usable, values, fill).tolist()
        return filled

    day, fraction_days = julian(elements.epoch_time_ns)
    elapsed_from = fraction_days + leap_days(elements.epoch_time_ns)
    # The published verification states come from an epoch summed into one double before the lunar-solar terms
    # use it. Doing the same reproduces them; the rounding (40 us) is otherwise without meaning.
    epoch_days = (day + fraction_days) - SGP4_DAY_ZERO_JD
    parameters = zip(
        epoch_days.tolist(),
        column(elements.bstar_per_earth_radius),
        column(elements.eccentricity),
        column(np.radians(elements.arg_of_pericenter_deg)),
        column(np.radians(elements.inclination_deg)),
        column(np.radians(elements.mean_anomaly_deg)),
        column(elements.mean_motion_rev_per_day * (np.pi / 720.0), fill=0.06),
        column(np.radians(elements.raan_deg)),
        elapsed_from.tolist(),
        strict=True,
    )
    satrecs = []
    for epoch, bstar, eccentricity, perigee, inclination, anomaly, motion, node, fraction_day in parameters:
        satrec = Satrec()
        satrec.sgp4init(
            WGS72, "i", 0, epoch, bstar, 0.0, 0.0, eccentricity, perigee, inclination, anomaly, motion, node
        )
        # Time since epoch is exact to a nanosecond: 40 us of orbit are 30 cm.
        satrec.jdsatepochF = fraction_day
        satrecs.append(satrec)
    return satrecs


def _mark_unusable(
    error: ErrorArray, r_teme_km: FloatArray, v_teme_km_s: FloatArray, usable: npt.NDArray[np.bool_]
) -> tuple[ErrorArray, FloatArray, FloatArray]:
    finite = usable & np.isfinite(r_teme_km).all(axis=-1) & np.isfinite(v_teme_km_s).all(axis=-1)
    error = np.where((error == 0) & ~finite | ~usable, np.uint8(NOT_FINITE), error)
    failed = error != 0
    if failed.any():
        r_teme_km[failed] = np.nan
        v_teme_km_s[failed] = np.nan
    return error, r_teme_km, v_teme_km_s


class _Columns:
    """The element columns, hashable by content, so that unpickling can find a propagator already built."""

    def __init__(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        self.columns = columns

    @cached_property
    def _digest(self) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for name, column in self.columns.items():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Columns) and self._digest == other._digest


# Two: a worker uses the current catalogue and, around an update, the one before it.
@lru_cache(maxsize=2)
def _rebuild(columns: _Columns) -> Propagator:
    known = dict(columns.columns)
    errors = known.pop(_ERROR_SCALE), known.pop(_DIFFERENCES)
    return Propagator(ElementSets(**known), *errors)

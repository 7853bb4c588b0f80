"""Our own ephemerides of tracked objects as states of an assessment, below those of operators.

They contain no planned manoeuvre. Each therefore ends with a suspected one, and where another set comes into force.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import iso
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.markings import MARKS, Marking
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.ephemerides import Ephemeris

REFINED_EPHEMERIS: Final = "refined_ephemeris"
MOST_SCREENED: Final = 50
"""Members of the fleet that are screened on them, those first whose sets are worst: a path takes 0.1 s to prepare."""
_ARRAYS: Final = ("state_time_ns", "state", "covariance_time_ns", "covariance")
_COLUMNS: Final = ("norad_id", "epoch_time_ns", "usable_from_ns", "usable_until_ns", *_ARRAYS)
_SIGMAS: Final = ("position_sigma_m", "published_sigma_m")
REFINED_COLUMNS: Final = (*_COLUMNS, *_SIGMAS, *MARKS)


def refined_read(store: Lake, plan: Plan) -> pa.Table:
    """Return the rows of `refined_ephemerides` that the plan has consumed and that reach beyond its ``as_of``.

    At most as many as `orbit_determination` holds. None where the plan repeats a commit that did not consume them.
    """
    window = next((each for each in plan.windows if each.table == REFINED_EPHEMERIDES.name), None)
    columns = list(REFINED_COLUMNS)
    if window is None or not window.upto_sequence:
        return REFINED_EPHEMERIDES.arrow_schema.empty_table().select(columns)
    is_usable = ds.field("usable_until_ns") > plan.as_of_ns
    return store.log(REFINED_EPHEMERIDES).rows(columns, is_usable, version=window.upto_version).sort_by("norad_id")


def objects_with_new_refined(store: Lake, plan: Plan) -> list[int]:
    """Return the objects of our ephemerides in the plan's window."""
    if not any(each.table == REFINED_EPHEMERIDES.name for each in plan.windows):
        return []
    return sorted(store.new_rows(plan, REFINED_EPHEMERIDES, ["norad_id"]).column("norad_id").to_pylist())


def of_fleet(rows: pa.Table, fleet: npt.ArrayLike) -> pa.Table:
    """Return the ephemerides on which the fleet is screened: at most MOST_SCREENED, the largest gains over sets
    first.
    """
    own = rows.filter(pa.array(np.isin(rows["norad_id"].to_numpy(), np.asarray(fleet, dtype=np.int64))))
    gain = own["published_sigma_m"].to_numpy() / np.maximum(own["position_sigma_m"].to_numpy(), 1e-3)
    return own.take(pa.array(np.sort(np.argsort(-gain, kind="stable")[:MOST_SCREENED])))


def refined_ephemerides(
    rows: pa.Table, catalogue: Catalogue | None, tracks: pa.Table, as_of_ns: int
) -> OperatorEphemerides:
    """Return rows of `refined_ephemerides` as ephemerides that may be used.

    Objects that are not in the catalogue are left out. So are those that ``tracks`` (columns norad_id and
    manoeuvre_time_ns) suspect of a manoeuvre at the ephemeris' epoch or later. One ends where a set with a later epoch
    comes into force, as of a planned manoeuvre. Without a catalogue the caller bounds them.
    """
    moved = {row["norad_id"]: row["manoeuvre_time_ns"] or 0 for row in tracks.to_pylist()}
    pairs = zip(rows["norad_id"].to_pylist(), rows["epoch_time_ns"].to_pylist(), strict=True)
    is_valid = np.array([moved.get(number, 0) < epoch_ns for number, epoch_ns in pairs], np.bool_)
    if catalogue is not None:
        is_valid &= np.isin(rows["norad_id"].to_numpy(), catalogue.norad_id)
    used = rows.filter(pa.array(is_valid))
    numbers, epochs_ns = used["norad_id"].to_numpy(), used["epoch_time_ns"].to_numpy()
    until_ns = used["usable_until_ns"].to_numpy()
    if catalogue is not None and catalogue.terms is not None and len(numbers):
        in_force = catalogue.rows_in_force(numbers, np.full(len(numbers), as_of_ns))
        until_ns = np.minimum(until_ns, catalogue.terms.until_ns[in_force] - 1)
    names = zip(numbers.tolist(), epochs_ns.tolist(), strict=True)
    return OperatorEphemerides(
        numbers,
        epochs_ns,
        tuple(f"{OWN_ORIGINATOR}:{number}:{iso(epoch_ns)}" for number, epoch_ns in names),
        tuple(_ephemeris(used, row, int(end_ns)) for row, end_ns in enumerate(until_ns)),
        (REFINED_EPHEMERIS,) * len(numbers),
        tuple(map(Marking.of, used.select(MARKS).to_pylist())),
    )


def _ephemeris(rows: pa.Table, row: int, until_ns: int) -> Ephemeris:
    found = {name: rows[name][row].values.to_numpy(zero_copy_only=False) for name in _ARRAYS}
    return Ephemeris.from_row(
        {**found, "usable_from_ns": rows["usable_from_ns"][row].as_py(), "usable_until_ns": until_ns}
    )

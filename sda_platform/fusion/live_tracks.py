"""Current state of every tracked object: its window fits, filtered, and its track state. Arrow in, Arrow out.

A track is filtered from windows of at most TRACK_MEMORY_NS. The memory moves on in steps. Between two steps a track
begins with the same window, and its filter continues from the orbit that its row keeps.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import IntArray
from sda_platform.formats.markings import MARKS, Marking, of_groups
from sda_platform.fusion.tables import STATE_COLUMNS, TRACK_MEMORY_NS, TRACKS, covariance_from_lower, lower_triangles
from sda_platform.fusion.track_states import LOST, Life, LifeRules, life_of, passed
from sda_platform.lake.arrow import arrays, flat
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.kept_orbits import BASIS_DTYPE, KeptOrbits
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits, WindowHalves
from sda_platform.units import SECOND_NS

FIT_COLUMNS = ("norad_id", "epoch_time_ns", *STATE_COLUMNS, "covariance", "predicted_state", "predicted_covariance")
WINDOW_COLUMNS = (*FIT_COLUMNS, "half_fits", *MARKS)
CHANGE_COLUMNS = ("norad_id", "epoch_time_ns")
KEPT_COLUMNS = ("kept_time_ns", "kept_orbit", "kept_unexplained", "kept_basis")
TRACK_SCHEMA = TRACKS.content_schema
_RULES = LifeRules()
# Steps of the memory. Those of objects with successive numbers are half a minute apart, so that few objects are
# filtered anew in one run.
_STEP_NS, _APART_NS = 900 * SECOND_NS, 30 * SECOND_NS


def live_tracks(
    windows: pa.Table,
    changes: pa.Table,
    previous: pa.Table,
    propagator: Propagator,
    as_of_ns: int,
    dynamics: Dynamics = CONSTANT_DYNAMICS,
) -> pa.Table:
    """Return the rows of `tracks` that change: objects with changed windows, and objects whose track state changes with
    time.

    Args:
        windows: current fits of the objects with changes, with ``fit_id`` and WINDOW_COLUMNS.
        changes: CHANGE_COLUMNS of the windows that were inserted or retracted since ``previous``.
        previous: the current rows.
        propagator: the catalogue.
        as_of_ns: mission time of the commit.
        dynamics: the numerical model between windows.
    """
    before = _lives(previous)
    kept = _kept(previous, changes)
    moved = dict(zip(*(previous[name].to_pylist() for name in ("norad_id", "last_manoeuvre_ns")), strict=True))
    filtered_rows = _filtered_rows(_remembered(windows, as_of_ns), before, moved, kept, propagator, as_of_ns, dynamics)
    others = before.keys() - set(filtered_rows.column("norad_id").to_pylist())
    observed = set(changes["norad_id"].to_pylist())
    after = {number: _aged(before[number], number in observed, as_of_ns) for number in others}
    changed = {number: life for number, life in after.items() if life != before[number] or number in observed}
    return pa.concat_tables([filtered_rows, _with_lives(previous, changed, observed, as_of_ns)]).sort_by("norad_id")


def _remembered(windows: pa.Table, as_of_ns: int) -> pa.Table:
    """Return the windows within the memory."""
    since_ns = as_of_ns - TRACK_MEMORY_NS
    phase_ns = windows["norad_id"].to_numpy() * _APART_NS - since_ns
    return windows.filter(pa.array(windows["epoch_time_ns"].to_numpy() >= since_ns + phase_ns % _STEP_NS))


def _kept(previous: pa.Table, changes: pa.Table) -> pa.Table:
    """Return the rows with a kept orbit that comes before all changes of its object's windows."""
    first = changes.group_by("norad_id").aggregate([("epoch_time_ns", "min")])
    rows = previous.filter(previous["kept_time_ns"].is_valid())
    rows = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    both = rows.select(["norad_id", "kept_time_ns", "row"]).join(first, "norad_id", join_type="inner")
    holds = pc.less(both["kept_time_ns"], both["epoch_time_ns_min"])
    return rows.take(both.filter(holds)["row"])


def _filtered_rows(
    windows: pa.Table,
    before: Mapping[int, Life],
    moved: Mapping[int, int | None],
    kept: pa.Table,
    propagator: Propagator,
    as_of_ns: int,
    dynamics: Dynamics,
) -> pa.Table:
    """Return rows of the objects with windows, without objects that left the catalogue."""
    is_known = pc.is_in(windows["norad_id"], pa.array(propagator.elements.norad_id))
    usable = pc.and_(windows["predicted_covariance"].is_valid(), is_known)
    rows = windows.filter(usable).sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
    if not rows.num_rows:
        return TRACK_SCHEMA.empty_table()
    numbers = np.unique(rows["norad_id"].to_numpy())
    order = np.argsort(propagator.elements.norad_id, kind="stable")
    index = order[np.searchsorted(propagator.elements.norad_id, numbers, sorter=order)]
    fits = window_fits(rows)
    filtered = filter_tracks(fits, propagator, index, dynamics, _kept_orbits(kept, numbers), _halves(rows))
    last = np.append(np.flatnonzero(np.diff(fits.group)), len(fits.group) - 1)
    seen_ns = [each.tolist() for each in np.split(fits.epoch_ns, last[:-1] + 1)]
    lives = [
        life_of(seen, as_of_ns, _earlier(before.get(number), seen[0]))
        for number, seen in zip(numbers.tolist(), seen_ns, strict=True)
    ]
    ids = rows["fit_id"].take(pa.array(last)).to_pylist()
    last_ns = [
        now_ns or _forgotten(moved.get(number), seen[0])
        for number, seen, now_ns in zip(numbers.tolist(), seen_ns, filtered.manoeuvre_ns.tolist(), strict=True)
    ]
    markings = of_groups(rows, fits.group, len(numbers))
    found = _rows(numbers.tolist(), lives, np.bincount(fits.group).tolist(), ids, filtered, last_ns, markings, as_of_ns)
    return found.filter(pa.array(np.isfinite(filtered.state).all(axis=1)))


def _kept_orbits(kept: pa.Table, numbers: IntArray) -> KeptOrbits:
    """Return the kept orbits of these objects (g,), ascending."""
    found = KeptOrbits.none(np.full(len(numbers), "", dtype=BASIS_DTYPE))
    of_object = kept["norad_id"].to_numpy()
    rows = np.flatnonzero(np.isin(of_object, numbers))
    chosen = kept.take(pa.array(rows))
    state, areas, lower = np.split(flat(chosen["kept_orbit"]).reshape(len(rows), 44), [6, 8], axis=1)
    time_ns = chosen["kept_time_ns"].to_numpy()
    places = np.searchsorted(numbers, of_object[rows])
    orbits = UncertainOrbits(time_ns, state, areas, covariance_from_lower(lower, size=8))
    found.put(places, orbits, chosen["kept_unexplained"].to_numpy())
    found.basis[places] = chosen["kept_basis"].to_pylist()
    return found


def window_fits(rows: pa.Table) -> WindowFits:
    """Return rows with FIT_COLUMNS, in order of object and time, as arrays."""
    columns = arrays(rows, ("epoch_time_ns", *STATE_COLUMNS))
    _, group = np.unique(rows["norad_id"].to_numpy(), return_inverse=True)
    return WindowFits(
        group=group.astype(np.int64),
        epoch_ns=columns["epoch_time_ns"],
        state=np.stack([columns[name] for name in STATE_COLUMNS], axis=1),
        covariance=covariance_from_lower(flat(rows["covariance"])),
        predicted=flat(rows["predicted_state"]).reshape(-1, len(STATE_COLUMNS)),
        prior_covariance=covariance_from_lower(flat(rows["predicted_covariance"])),
    )


def _lives(rows: pa.Table) -> dict[int, Life]:
    """Return the state of each track by its object."""
    columns = ("norad_id", "state", "state_since_ns", "last_seen_ns", "streak")
    facts = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return {number: Life(*life) for number, *life in facts}


def _halves(rows: pa.Table) -> WindowHalves:
    """Return the column `half_fits` of these rows as arrays."""
    column = rows["half_fits"]
    window = np.flatnonzero(column.is_valid().to_numpy())
    terms = flat(column.take(pa.array(window))).reshape(len(window), 2, 27)
    return WindowHalves(window, terms[:, :, :6], covariance_from_lower(terms[:, :, 6:]).reshape(-1, 2, 6, 6))


def _earlier(life: Life | None, first_ns: int) -> Life | None:
    """Return the track's state before these windows; None if its last window is one of them, because it is then
    recomputed.
    """
    return None if life is None or life.last_seen_ns >= first_ns else life


def _forgotten(manoeuvre_ns: int | None, first_ns: int) -> int | None:
    """Return a manoeuvre before these windows; None for one that they would show, and do not any more."""
    return None if manoeuvre_ns is None or manoeuvre_ns >= first_ns else manoeuvre_ns


def _aged(life: Life, is_touched: bool, as_of_ns: int) -> Life:
    """Return the state after time alone; lost if all windows of the track were retracted."""
    is_gone = is_touched and life.state != LOST
    return Life(LOST, as_of_ns, life.last_seen_ns, 0) if is_gone else passed(life, as_of_ns, _RULES)


def _with_lives(rows: pa.Table, lives: Mapping[int, Life], changed: Container[int], as_of_ns: int) -> pa.Table:
    """Return the rows of these objects with these states; those of ``changed`` windows keep no orbit."""
    chosen = rows.filter(pc.is_in(rows["norad_id"], pa.array(list(lives), pa.int64())))
    made = [
        {
            **row,
            "state": life.state,
            "state_since_ns": life.since_ns,
            "streak": life.streak,
            "as_of_ns": as_of_ns,
            **(dict.fromkeys(KEPT_COLUMNS) if row["norad_id"] in changed else {}),
        }
        for row in chosen.to_pylist()
        for life in [lives[row["norad_id"]]]
    ]
    return pa.Table.from_pylist(made, TRACK_SCHEMA)


def _rows(
    norad_id: list[int],
    lives: list[Life],
    windows: list[int],
    track_id: list[str],
    filtered: FilteredStates,
    last_manoeuvre_ns: list[int | None],
    markings: list[Marking],
    as_of_ns: int,
) -> pa.Table:
    suspected, has_speed, kept = filtered.manoeuvre_ns > 0, np.isfinite(filtered.manoeuvre_km_s), filtered.kept
    is_kept, kept_lower = kept.orbits.epoch_ns > 0, lower_triangles(kept.orbits.covariance)
    sigma_km = np.sqrt(np.einsum("gii->g", filtered.covariance[:, :3, :3]))
    area_sigma = np.sqrt(np.einsum("gii->gi", filtered.joint_covariance)[:, 6:])
    columns: dict[str, Any] = {
        "norad_id": norad_id,
        "state": [life.state for life in lives],
        "state_since_ns": [life.since_ns for life in lives],
        "last_seen_ns": [life.last_seen_ns for life in lives],
        "streak": [life.streak for life in lives],
        "windows": windows,
        "track_id": track_id,
        "epoch_time_ns": filtered.epoch_ns,
        **{name: filtered.state[:, axis] for axis, name in enumerate(STATE_COLUMNS)},
        "covariance": lower_triangles(filtered.covariance).tolist(),
        "position_sigma_m": sigma_km * 1e3,
        "drag_area_m2_kg": filtered.coefficients[:, 0],
        "drag_area_sigma_m2_kg": area_sigma[:, 0],
        "reflective_area_m2_kg": filtered.coefficients[:, 1],
        "reflective_area_sigma_m2_kg": area_sigma[:, 1],
        "joint_covariance": lower_triangles(filtered.joint_covariance).tolist(),
        "innovation": _where(np.isfinite(filtered.innovation), filtered.innovation),
        "innovation_size": filtered.innovation_size,
        "unexplained_windows": filtered.unexplained,
        "manoeuvre_time_ns": _where(suspected, filtered.manoeuvre_ns),
        "last_manoeuvre_ns": last_manoeuvre_ns,
        "manoeuvre_speed_m_s": _where(has_speed, filtered.manoeuvre_km_s * 1e3),
        "manoeuvre_sigma_m_s": _where(has_speed, filtered.manoeuvre_sigma_km_s * 1e3),
        "kept_time_ns": _where(is_kept, kept.orbits.epoch_ns),
        "kept_orbit": _where(is_kept, np.hstack([kept.orbits.state, kept.orbits.coefficients, kept_lower])),
        "kept_unexplained": _where(is_kept, kept.unexplained),
        "kept_basis": _where(is_kept, kept.basis),
        **dict(zip(MARKS, zip(*markings, strict=True), strict=True)),
        "as_of_ns": [as_of_ns] * len(norad_id),
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in TRACK_SCHEMA})


def _where(known: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> list[Any]:
    """Return the values where known; None elsewhere."""
    return [value if is_known else None for value, is_known in zip(values.tolist(), known.tolist(), strict=True)]

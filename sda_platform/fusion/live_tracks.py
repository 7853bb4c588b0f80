"""Current state of every tracked object: its window fits, filtered, and its track state. Arrow in, Arrow out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import STATE_COLUMNS, TRACKS, covariance_from_lower, lower_triangles
from sda_platform.fusion.track_states import LOST, Life, LifeRules, life_of, passed
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import FilteredStates, filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits

WINDOW_COLUMNS = ("norad_id", "epoch_time_ns", *STATE_COLUMNS, "covariance", "predicted_state", "predicted_covariance")
TRACK_SCHEMA = TRACKS.content_schema
_RULES = LifeRules()


def live_tracks(
    windows: pa.Table,
    touched: pa.Array,
    previous: pa.Table,
    propagator: Propagator,
    as_of_ns: int,
    dynamics: Dynamics = CONSTANT_DYNAMICS,
) -> pa.Table:
    """The rows of `tracks` that change: objects with changed windows, and objects whose track state changes with
    time.

    Args:
        windows: current fits of the ``touched`` objects, with ``fit_id`` and WINDOW_COLUMNS.
        touched: catalogue numbers with an inserted or retracted window.
        previous: the current rows.
        propagator: the catalogue.
        as_of_ns: mission time of the commit.
        dynamics: the numerical model between windows.
    """
    before = {row["norad_id"]: row for row in previous.to_pylist()}
    filtered_rows = _filtered_rows(windows, before, propagator, as_of_ns, dynamics)
    known = set(filtered_rows.column("norad_id").to_pylist())
    others = [_aged(row, set(touched.to_pylist()), as_of_ns) for number, row in before.items() if number not in known]
    aged = pa.Table.from_pylist([row for row in others if row is not None], TRACK_SCHEMA)
    return pa.concat_tables([filtered_rows, aged]).sort_by("norad_id")


def _filtered_rows(
    windows: pa.Table,
    before: Mapping[int, Mapping[str, Any]],
    propagator: Propagator,
    as_of_ns: int,
    dynamics: Dynamics,
) -> pa.Table:
    """Rows of the objects with windows, without objects that left the catalogue."""
    is_known = pc.is_in(windows["norad_id"], pa.array(propagator.elements.norad_id))
    usable = pc.and_(windows["predicted_covariance"].is_valid(), is_known)
    rows = windows.filter(usable).sort_by([("norad_id", "ascending"), ("epoch_time_ns", "ascending")])
    if not rows.num_rows:
        return TRACK_SCHEMA.empty_table()
    numbers = np.unique(rows["norad_id"].to_numpy())
    order = np.argsort(propagator.elements.norad_id, kind="stable")
    index = order[np.searchsorted(propagator.elements.norad_id, numbers, sorter=order)]
    fits = window_fits(rows)
    filtered = filter_tracks(fits, propagator, index, dynamics)
    last = np.append(np.flatnonzero(np.diff(fits.group)), len(fits.group) - 1)
    lives = [
        life_of(
            fits.epoch_ns[fits.group == g].tolist(),
            as_of_ns,
            _earlier(before.get(number), fits.epoch_ns[fits.group == g][0]),
        )
        for g, number in enumerate(numbers.tolist())
    ]
    ids = rows["fit_id"].take(pa.array(last)).to_pylist()
    found = _rows(numbers.tolist(), lives, np.bincount(fits.group).tolist(), ids, filtered, as_of_ns)
    return found.filter(pa.array(np.isfinite(filtered.state).all(axis=1)))


def window_fits(rows: pa.Table) -> WindowFits:
    """Rows with WINDOW_COLUMNS, in order of object and time, as arrays."""
    columns = arrays(rows, ("epoch_time_ns", *STATE_COLUMNS))
    _, group = np.unique(rows["norad_id"].to_numpy(), return_inverse=True)
    return WindowFits(
        group=group.astype(np.int64),
        epoch_ns=columns["epoch_time_ns"],
        state=np.stack([columns[name] for name in STATE_COLUMNS], axis=1),
        covariance=covariance_from_lower(rows["covariance"].to_pylist()),
        predicted=np.asarray(rows["predicted_state"].to_pylist()),
        prior_covariance=covariance_from_lower(rows["predicted_covariance"].to_pylist()),
    )


def _earlier(row: Mapping[str, Any] | None, first_ns: int) -> Life | None:
    """The track's state before these windows; None if its last window is one of them, because it is then recomputed."""
    if row is None or row["last_seen_ns"] >= first_ns:
        return None
    return _life(row)


def _life(row: Mapping[str, Any]) -> Life:
    return Life(row["state"], row["state_since_ns"], row["last_seen_ns"], row["streak"])


def _aged(row: Mapping[str, Any], touched: set[int], as_of_ns: int) -> dict[str, Any] | None:
    """The row with its state changed by time, or None if unchanged; lost if all its windows were retracted."""
    life = _life(row)
    gone = row["norad_id"] in touched and life.state != LOST
    after = Life(LOST, as_of_ns, life.last_seen_ns, 0) if gone else passed(life, as_of_ns, _RULES)
    if after == life:
        return None
    return {**row, "state": after.state, "state_since_ns": after.since_ns, "streak": after.streak, "as_of_ns": as_of_ns}


def _rows(
    norad_id: list[int],
    lives: list[Life],
    windows: list[int],
    track_id: list[str],
    filtered: FilteredStates,
    as_of_ns: int,
) -> pa.Table:
    suspected = filtered.manoeuvre_ns > 0
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
        "manoeuvre_speed_m_s": _where(suspected, filtered.manoeuvre_km_s * 1e3),
        "manoeuvre_sigma_m_s": _where(suspected, filtered.manoeuvre_sigma_km_s * 1e3),
        "as_of_ns": [as_of_ns] * len(norad_id),
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in TRACK_SCHEMA})


def _where(known: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> list[Any]:
    """The values where known; None elsewhere."""
    return [value if is_known else None for value, is_known in zip(values.tolist(), known.tolist(), strict=True)]

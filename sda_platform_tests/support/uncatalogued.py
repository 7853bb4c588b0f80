"""Uncatalogued objects on orbits of an independent implementation (satkit), seen by the registered sensors.

Radars follow low objects for three minutes of each pass; telescopes follow the others for an hour in each two and a
half. Every twenty minutes the uncorrelated observations are processed as the asset does, and no later pass is
associated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.orbit_determination.recognition import REACH_NS, earlier_sets
from sda_platform.orbit_determination.tracklets import tracklets
from sda_platform.orbit_determination.uncorrelated_tracks import (
    ANGLES_ONLY_MEMORY_NS,
    MEMORY_NS,
    PROVISIONAL_SCHEMA,
    discovered,
)
from sda_platform.orbits import frames
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.earth_orientation import gcrf_of_teme
from sda_platform.orbits.equinoctial import equinoctial_covariance
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import EPOCH_NS, HOUR_NS, random_start
from sda_platform_tests.support.scenes import SECOND_NS, observe, place
from sda_platform_tests.support.skyfield_frames import teme_of_gcrf
from sda_platform_tests.support.windows import WINDOW_NS, as_rows

STEP_NS = 1_200 * SECOND_NS
# Seconds of a pass, between observations, and from pass to pass of one object at least.
_RADAR, _TELESCOPE = (180, 3, 0), (3_600, 10, 9_000)
_ROUNDS, _WHOLE_STEPS, _CONVERGED = 30, 6, 1e-3


@dataclass(frozen=True, eq=False)
class Body:
    """One true object."""

    start: FloatArray
    areas: satkit_truth.Areas

    @classmethod
    def random(cls, regime: str, rng: np.random.Generator) -> "Body":
        """An object of the regime."""
        start, drag, reflective = random_start(regime, rng), rng.uniform(0.005, 0.03), rng.uniform(0.01, 0.03)
        return cls(start, satkit_truth.Areas(float(drag), float(reflective)))

    def states(self, time_ns: IntArray) -> FloatArray:
        """States (n, 6), TEME of date, at ascending times."""
        return teme_of_gcrf(satkit_truth.propagated(self.start, EPOCH_NS, time_ns, areas=self.areas), time_ns)


@dataclass
class Counts:
    """What became of passes."""

    confirmed: set[int] = field(default_factory=set)
    mixed: int = 0
    kept: int = 0
    again: int = 0
    wrong: int = 0
    due: int = 0


def observed(bodies: list[Body], regime: str, hours: int, rng: np.random.Generator) -> Iterator[pa.Table]:
    """The observations of each object, with its number in their ids."""
    for number, body in enumerate(bodies):
        grid_ns = EPOCH_NS + np.arange(30, hours * 3600, 30, dtype=np.int64) * SECOND_NS
        seen = list(_passes(body.states(grid_ns), grid_ns, regime, rng))
        if not seen:
            continue
        time_ns = np.concatenate([when for _, when in seen])
        source = np.concatenate([np.full(len(when), name) for name, when in seen])
        track = np.concatenate([np.full(len(when), f"{number}-{n}") for n, (_, when) in enumerate(seen)])
        states = body.states(time_ns)
        rows = as_rows(observe(source, time_ns, states[:, :3], states[:, 3:], rng)).drop_columns("observation_id")
        ids = [f"{number}-{at}" for at in time_ns.tolist()]
        rows = rows.append_column("observation_id", pa.array(ids)).append_column("native_track_id", pa.array(track))
        yield rows.select(OBSERVATION_COLUMNS)


def processed(observations: pa.Table, hours: int, dynamics: Dynamics) -> tuple[dict[int, dict[str, Any]], Counts]:
    """The first row of each object, and what became of all passes."""
    known, counts = PROVISIONAL_SCHEMA.empty_table(), Counts()
    first: dict[int, dict[str, Any]] = {}
    numbers: dict[int, set[int]] = {}
    for end_ns in range(EPOCH_NS + STEP_NS, EPOCH_NS + hours * HOUR_NS + 1, STEP_NS):
        time_ns = observations["sensor_time_ns"]
        is_optical = pc.equal(observations["source_kind"], "optical")
        since_ns = pc.if_else(is_optical, end_ns - ANGLES_ONLY_MEMORY_NS, end_ns - MEMORY_NS)
        rows = observations.filter(pc.and_(pc.less(time_ns, end_ns), pc.greater_equal(time_ns, since_ns)))
        if not rows.num_rows:
            continue
        reach_ns = pc.min(rows["sensor_time_ns"]).as_py() - REACH_NS
        recent = known.filter(pc.greater_equal(known["epoch_time_ns"], reach_ns))
        found = list(tracklets(rows))
        new = discovered(found, recent, known["norad_id"].to_pylist(), frozenset(), WINDOW_NS, end_ns, dynamics)
        used = {name for row in known["observation_ids"].to_pylist() for name in row}
        for row in new.to_pylist():
            owners = {int(name.partition("-")[0]) for name in row["observation_ids"]}
            counts.mixed += len(owners) > 1
            (owner, *_) = sorted(owners)
            counts.confirmed.add(owner)
            first.setdefault(owner, row)
            had = numbers.setdefault(owner, set())
            is_due = any(
                earlier["norad_id"] in had and earlier["epoch_time_ns"] >= row["epoch_time_ns"] - REACH_NS
                for earlier in recent.to_pylist()
            )
            if used.isdisjoint(row["observation_ids"]) and is_due:
                others = set().union(*(of for other, of in numbers.items() if other != owner))
                counts.due += 1
                counts.kept += row["norad_id"] in had
                counts.wrong += row["norad_id"] in others
                counts.again += row["norad_id"] not in had | others
            had.add(row["norad_id"])
        known = pa.concat_tables([known, new])
    return first, counts


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of one orbit at times ahead (k,)."""

    square: FloatArray
    """(k,) normalised squared error, of which six is expected."""
    off_km: FloatArray
    along_sigma_km: FloatArray
    """(k,) sigma along the track."""


def errors(body: Body, row: dict[str, Any], time_ns: IntArray, dynamics: Dynamics) -> Errors:
    """Errors of a row's orbit at ``time_ns`` (k,), the first of which is its epoch."""
    ((one,),) = earlier_sets(pa.Table.from_pylist([row], PROVISIONAL_SCHEMA)).values()
    return errors_of(one.orbit, body.states(time_ns), time_ns, dynamics)


def errors_of(orbit: UncertainOrbits, truth: FloatArray, time_ns: IntArray, dynamics: Dynamics) -> Errors:
    """Errors of an orbit (1) against true states (k, 6), TEME, at ``time_ns`` (k,), the first of which is its epoch.

    An orbit that is hundreds of kilometres off after half a day is uncertain along a curve, and no normal distribution
    of states then. Its unknowns at the epoch are normal. The squared error is therefore the least square of a deviation
    of these, with process noise, that leads to the true state. It is linearised about that deviation, not about the
    orbit.

    Source: Bell & Cathey 1993, The iterated Kalman filter update as a Gauss-Newton method.
    """
    in_gcrf = gcrf_of_teme(truth, time_ns)
    states, covariances = orbit.at(dynamics, time_ns, np.zeros(len(time_ns), np.int64)).in_teme()
    _, in_equinoctial = equinoctial_covariance(states, covariances[:, :6, :6])
    start = np.append(in_gcrf[0], orbit.coefficients[0])
    return Errors(
        square=np.array([
            _least_square(orbit, start, state, int(at_ns), dynamics)
            for state, at_ns in zip(in_gcrf, time_ns.tolist(), strict=True)
        ]),
        off_km=np.linalg.norm(states[:, :3] - truth[:, :3], axis=1),
        along_sigma_km=np.linalg.norm(states[:, :3], axis=1) * np.sqrt(in_equinoctial[:, 5, 5]),
    )  # fmt: skip


def _least_square(
    orbit: UncertainOrbits, start: FloatArray, state: FloatArray, at_ns: int, dynamics: Dynamics
) -> float:
    """The least square by Gauss-Newton from the unknowns ``start`` (8,); ``state`` (6,) is true at ``at_ns``, GCRF.

    Raises ArithmeticError where it does not converge.
    """
    claimed, unknowns, square = np.append(orbit.state[0], orbit.coefficients[0]), start, np.inf
    for number in range(_ROUNDS):
        here = UncertainOrbits(orbit.epoch_ns, unknowns[None, :6], unknowns[None, 6:], np.zeros((1, 8, 8)))
        reached, partials = dynamics.transitions(
            here.state, here.coefficients, here.epoch_ns, np.array([0]), np.array([at_ns])
        )
        noise = here.at(dynamics, np.array([at_ns])).covariance[0, :6, :6]
        # At the epoch, where the parts of the covariance are of like size.
        back = np.linalg.inv(partials[0, :, :6])
        design = np.hstack([np.eye(6), back @ partials[0, :, 6:]])
        gap = back @ (state - reached[0]) - design @ (claimed - unknowns)
        spread = design @ orbit.covariance[0] @ design.T + back @ noise @ back.T
        unit = 1 / np.sqrt(np.diag(spread))
        weighted = unit * np.linalg.solve(spread * np.outer(unit, unit), unit * gap)
        before, square = square, float(gap @ weighted)
        if abs(square - before) < _CONVERGED:
            return square
        step = claimed + orbit.covariance[0] @ design.T @ weighted - unknowns
        unknowns = unknowns + (step if number < _WHOLE_STEPS else step / 2)
    raise ArithmeticError("the least square does not converge")


def _passes(
    states: FloatArray, grid_ns: IntArray, regime: str, rng: np.random.Generator
) -> Iterator[tuple[str, IntArray]]:
    """Sensor and times of each pass; one sensor at a time."""
    kind, (length_s, step_s, apart_s) = ("radar", _RADAR) if regime == "low" else ("optical", _TELESCOPE)
    sensors = [sensor for sensor in sensor_registry().values() if sensor.kind == kind]
    up = np.array([_is_seen(sensor, states, grid_ns) for sensor in sensors])
    busy_ns, last = 0, ""
    for row, at_ns in enumerate(grid_ns.tolist()):
        able = np.flatnonzero(up[:, row])
        if at_ns < busy_ns or not len(able):
            continue
        chosen = int(rng.choice(able))
        name = sensors[chosen].source_id
        if kind == "radar" and last == name and up[chosen, row - 1]:
            continue  # one track a pass
        ends = np.flatnonzero(~up[chosen, row:])
        seconds = min(length_s, 30 * int(ends[0]) if len(ends) else length_s)
        if seconds < 90:
            continue
        yield name, at_ns + np.arange(0, min(seconds, (len(grid_ns) - row) * 30), step_s, dtype=np.int64) * SECOND_NS
        busy_ns, last = at_ns + max(seconds + 30, apart_s) * SECOND_NS, name


def _is_seen(sensor: Sensor, states: FloatArray, time_ns: IntArray) -> np.ndarray:
    _, elevation, distance, _ = frames.topocentric(states[:, :3], states[:, 3:], *place(sensor), time_ns)
    up = elevation > np.radians(sensor.min_elevation_deg + 5)
    if sensor.kind == "radar":
        return np.asarray(up & (distance < sensor.max_range_km))
    up &= frames.site_is_dark(sensor.latitude_deg, sensor.longitude_deg, time_ns)
    return np.asarray(up & (frames.sunlit_fraction(states[:, :3], frames.sun_teme_km(time_ns)) >= 1.0))

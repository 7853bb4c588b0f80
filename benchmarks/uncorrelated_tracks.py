"""Whether provisional orbits predict as accurately as they claim, and whether their objects are recognised again.

    python benchmarks/uncorrelated_tracks.py [--objects 16] [--hours 8] [--regimes low medium geostationary eccentric]

Needs satkit (`pip install satkit==0.24.1 satkit-data`): its orbits are the truth. No object is in the catalogue. Radars
follow low objects for three minutes of each pass; telescopes follow the others for an hour in each two and a half.
Every twenty minutes the uncorrelated observations are processed as the asset does, and no later pass is associated.
Printed for the first set of each object: errors of position and normalised squared errors of the orbit (6 expected),
with their 95 % bounds. Then: later passes that keep their object's number, get another, or the number of another.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import chi2

from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbit_determination.recognition import REACH_NS
from sda_platform.orbit_determination.tracklets import tracklets
from sda_platform.orbit_determination.uncorrelated_tracks import (
    ANGLES_ONLY_MEMORY_NS,
    MEMORY_NS,
    PROVISIONAL_SCHEMA,
    discovered,
)
from sda_platform.orbits import frames
from sda_platform.orbits.determination.differential_correction import UncertainElements
from sda_platform.orbits.determination.linking import propagated
from sda_platform.orbits.elements import ElementSets, FloatArray, IntArray
from sda_platform.orbits.equinoctial import equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform_tests.support import satkit_truth
from sda_platform_tests.support.observed_truth import EPOCH_NS, HOUR_NS, REGIMES, random_start
from sda_platform_tests.support.scenes import SECOND_NS, observe, place
from sda_platform_tests.support.windows import WINDOW_NS, as_rows

AHEAD_S = (0, 1_800, 7_200, 43_200)
STEP_NS = 1_200 * SECOND_NS
# Seconds of a pass, between observations, and from pass to pass of one object at least.
RADAR, TELESCOPE = (180, 3, 0), (3_600, 10, 9_000)


@dataclass(frozen=True, eq=False)
class Body:
    """One true object."""

    start: FloatArray
    areas: satkit_truth.Areas

    def states(self, time_ns: IntArray) -> FloatArray:
        """States (n, 6), the platform's TEME, at ascending times."""
        return satkit_truth.in_teme(satkit_truth.propagated(self.start, EPOCH_NS, time_ns, areas=self.areas), time_ns)


@dataclass
class Counts:
    """What became of passes."""

    confirmed: set[int] = field(default_factory=set)
    mixed: int = 0
    kept: int = 0
    again: int = 0
    wrong: int = 0
    due: int = 0


def main() -> None:
    """Print the figures of each regime."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--hours", type=int, default=8)
    parser.add_argument("--regimes", nargs="*", default=list(REGIMES))
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    if not satkit_truth.AVAILABLE:
        parser.error(satkit_truth.WHY_NOT)
    for regime in options.regimes:
        rng = np.random.default_rng([options.seed, REGIMES.index(regime)])
        bodies = [
            Body(
                random_start(regime, rng),
                satkit_truth.Areas(float(rng.uniform(0.005, 0.03)), float(rng.uniform(0.01, 0.03))),
            )
            for _ in range(options.objects)
        ]
        observations = pa.concat_tables(_observed(bodies, regime, options.hours, rng))
        first, counts = _processed(observations, options.hours)
        print(f"{regime}: {len(bodies)} objects, {observations.num_rows} observations", flush=True)
        print(_stated(counts))
        print(_accuracy([(bodies[number], row) for number, row in sorted(first.items())]), flush=True)


def _observed(bodies: list[Body], regime: str, hours: int, rng: np.random.Generator) -> Iterator[pa.Table]:
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


def _passes(
    states: FloatArray, grid_ns: IntArray, regime: str, rng: np.random.Generator
) -> Iterator[tuple[str, IntArray]]:
    """Sensor and times of each pass; one sensor at a time."""
    kind, (length_s, step_s, apart_s) = ("radar", RADAR) if regime == "low" else ("optical", TELESCOPE)
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


def _processed(observations: pa.Table, hours: int) -> tuple[dict[int, dict[str, Any]], Counts]:
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
        new = discovered(found, recent, known["norad_id"].to_pylist(), frozenset(), WINDOW_NS, end_ns)
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


def _stated(counts: Counts) -> str:
    return (
        f"  confirmed {len(counts.confirmed)}, mixed {counts.mixed}; {counts.due} later passes within reach: "
        f"{counts.kept} keep their number, {counts.again} get another, {counts.wrong} that of another object"
    )


def _accuracy(sets: list[tuple[Body, dict[str, Any]]]) -> str:
    """Errors of the first sets, ahead in time."""
    lines = []
    figures = np.array([_errors(body, row) for body, row in sets])
    for n, ahead_s in enumerate(AHEAD_S):
        square, error, sigma, of_set = figures[:, n].T
        low, high = chi2.ppf([0.025, 0.975], 6 * len(square)) / len(square)
        lines.append(
            f"  {ahead_s / 3600:4.1f} h ahead: normalised squared error {square.mean():.1f} (median "
            f"{np.median(square):.1f}) [{low:.1f}, {high:.1f}]; error {np.median(error) * 1e3:,.0f} m, "
            f"sigma along the track {np.median(sigma) * 1e3:,.0f} m, element set {np.median(of_set) * 1e3:,.0f} m"
        )
    return "\n".join(lines)


def _errors(body: Body, row: dict[str, Any]) -> list[list[float]]:
    """Squared normalised error, error, sigma along the track, error of the element set (km), each at AHEAD_S."""
    time_ns = row["epoch_time_ns"] + np.array(AHEAD_S, dtype=np.int64) * SECOND_NS
    truth = body.states(time_ns)
    elements = ElementSets.from_columns({name: [value] for name, value in row.items()})
    _, r, v = Propagator(elements).at(np.zeros(len(time_ns), np.int64), time_ns)
    found = []
    for n, at_ns in enumerate(time_ns.tolist()):
        one = propagated(UncertainElements(elements, covariance_from_lower(row["covariance"])[0]), at_ns)
        gap = (equinoctial(truth[n : n + 1, :3], truth[n : n + 1, 3:]) - equinoctial(r[n], v[n]))[0]
        gap[5] = (gap[5] + np.pi) % (2 * np.pi) - np.pi
        scale = np.sqrt(np.diag(one.covariance))
        square = (gap / scale) @ np.linalg.solve(one.covariance / np.outer(scale, scale), gap / scale)
        off = float(np.linalg.norm(r[n] - truth[n, :3]))
        found.append([float(square), off, float(np.linalg.norm(r[n])) * scale[5], off])
    return found


if __name__ == "__main__":
    main()

"""How much sooner are red alerts decided when sensors observe what was scheduled?

    python benchmarks/tasking_loop.py [--primaries 600] [--hours 30] [--seed 1] [--seeds 5]

A day of the shipped catalogue: seeded payloads are screened against all objects. Each alert that is red at the start
and whose TCA is at least ``--least-lead`` hours ahead is followed to its deadline, two hours before TCA, in two worlds.
In both, sensors survey: each radar follows 100 and each telescope 20 of the objects that it can see. In one of them
they also observe what `tasking` schedules for the alerts, planned anew every ten minutes. Simulated frames are decoded,
fitted in windows of 30 s, filtered and assessed as in the platform; only the association is given. An alert is decided
when its risk is no longer red, or when one sigma of the miss is at most 100 m in every direction of the encounter
plane. What is undecided at the deadline counts with the hours to the deadline.
"""

import argparse
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.best_states import Tracks
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.in_force import terms_in_force
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.encounter import encounter_plane
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import REFERENCE_TIME_NS, reference_catalogue
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.visibility import ScheduledTime, surveyed_pairs
from sda_platform.simulation.world import SimulatedSegment, simulate
from sda_platform.tasking import demand, planning, windows
from sda_platform.tasking.resource import TaskingResource
from sda_platform.tasking.tables import SCHEDULED
from sda_platform_tests.support.segments import catalogue_of

HOUR_NS, MINUTE_NS, WINDOW_NS = 3_600_000_000_000, 60_000_000_000, 30_000_000_000
STEP_NS = 10 * MINUTE_NS
DECISION_LEAD_NS = 2 * HOUR_NS
DECIDED_SIGMA_KM = 0.1
_NEVER_NS = 2**62
console = Console(highlight=False, soft_wrap=True)


@dataclass
class World:
    """One world: the catalogue, what was observed so far, and when each alert was decided."""

    catalogue: Catalogue
    candidates: pa.Table
    seed: int
    is_tasked: bool
    fits: dict[int, list[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]] = field(default_factory=dict)
    decided_ns: dict[str, int] = field(default_factory=dict)
    schedule: list[dict[str, Any]] = field(default_factory=list)
    observed_s: int = 0

    def assessed(self) -> pa.Table:
        """What is known of the alerts now."""
        return assess_candidates(
            self.candidates,
            self.catalogue,
            self._tracks(),
            OperatorEphemerides.none(),
            Volume.sphere(5.0),
            ObjectSizes(),
        )

    def decide(self, now_ns: int) -> pa.Table:
        """Note which alerts are decided now; returns the assessment of the others."""
        rows = self.assessed()
        for row, sigma_km in zip(rows.to_pylist(), _greatest_sigma_km(rows), strict=True):
            if row["risk"] != "red" or sigma_km <= DECIDED_SIGMA_KM:
                self.decided_ns.setdefault(row["event_id"], now_ns)
        waiting = ~np.isin(rows.column("event_id").to_pylist(), list(self.decided_ns))
        ahead = rows.column("tca_time_ns").to_numpy() - DECISION_LEAD_NS > now_ns
        return rows.filter(pa.array(waiting & ahead))

    def plan(self, now_ns: int, waiting: pa.Table, found: list[dict[str, Any]], tasking: TaskingResource) -> None:
        """Schedule observations of the alerts that wait."""
        nothing = pa.table({name: [] for name in demand.TRACK_COLUMNS})
        known = pa.table({"norad_id": pa.array([], pa.int64())})
        asked = demand.requests(waiting, nothing, known, tasking.owners(), {}, now_ns, demand.DemandRules())
        _, rows = planning.planned(
            asked,
            [each for each in found if each["los_time_ns"] > now_ns],
            self.schedule,
            tasking.antennas(),
            {sensor.source_id: sensor.min_elevation_deg for sensor in tasking.network().values()},
            as_of_ns=now_ns,
            observation_ns=round(tasking.observation_s * 1e9),
            rules=tasking.rules(),
        )
        under_way = [each for each in self.schedule if each["start_time_ns"] <= now_ns < each["end_time_ns"]]
        planned = [each for each in rows if each["status"] == SCHEDULED]
        names = {each["request_id"] for each in planned}
        self.schedule = planned + [each for each in under_way if each["request_id"] not in names]

    def observe(self, start_ns: int, surveyed: Iterable[ScheduledTime], catalogue: bytes) -> None:
        """Simulate ten minutes of the sensors, and fit what they report."""
        booked = [ScheduledTime(*(each[name] for name in ScheduledTime.__dataclass_fields__)) for each in self.schedule]
        chosen = [*surveyed, *(booked if self.is_tasked else [])]
        chosen = [each for each in chosen if each.start_time_ns < start_ns + STEP_NS and each.end_time_ns > start_ns]
        if not chosen:
            return
        plan = ObservingPlan(isl_satellites=0, radar_capacity=0, optical_capacity=0, scheduled=tuple(chosen))
        segments = list(
            simulate(
                "nominal", start_time_ns=start_ns, duration_s=STEP_NS / 1e9, seed=self.seed, catalogue=catalogue,
                plan=plan,
            )
        )  # fmt: skip
        if segments:
            self._fit(segments)

    def _fit(self, segments: list[SimulatedSegment]) -> None:
        rows = decode_segments([(each.data, each.meta) for each in segments])
        rows = rows.filter(pc.is_null(rows["error_kind"]))
        truth = pa.concat_tables([each.truth for each in segments])
        of_object = dict(zip(truth["observation_id"].to_pylist(), truth["norad_id"].to_pylist(), strict=True))
        unique = dict(zip(rows["observation_id"].to_pylist(), range(rows.num_rows), strict=True))
        rows = rows.take(sorted(unique.values()))
        observations = ObservationArrays.from_columns(arrays(rows))
        norad_id = np.array([of_object[each] for each in rows["observation_id"].to_pylist()])
        window = observations.sensor_time_ns // WINDOW_NS
        keys, group = np.unique(np.stack([norad_id, window]), axis=1, return_inverse=True)
        index = np.searchsorted(self.catalogue.norad_id, keys[0])
        middle_ns = keys[1] * WINDOW_NS + WINDOW_NS // 2
        found = fit_windows(observations, group.ravel(), self.catalogue.propagator, index, middle_ns)
        for n in np.flatnonzero(found.converged & (found.radar_count + found.optical_count >= 3)):
            state = np.hstack([found.r_teme_km[n], found.v_teme_km_s[n]])
            predicted = np.hstack([found.predicted_r_teme_km[n], found.predicted_v_teme_km_s[n]])
            fit = (int(middle_ns[n]), state, found.covariance_teme[n], predicted, found.prior_covariance_teme[n])
            self.fits.setdefault(int(index[n]), []).append(fit)
        self.observed_s += len(observations)

    def _tracks(self) -> Tracks:
        index = np.array(sorted(self.fits), dtype=np.int64)
        if not len(index):
            nothing = np.zeros(0, dtype=np.int64)
            return Tracks(
                nothing, np.zeros(0, str), nothing, np.zeros((0, 6)), np.zeros((0, 2)), np.zeros((0, 8, 8)), nothing
            )
        every = [(n, *fit) for n, row in enumerate(index) for fit in sorted(self.fits[row], key=lambda each: each[0])]
        group = np.array([each[0] for each in every])
        fits = WindowFits(
            group=group,
            epoch_ns=np.array([each[1] for each in every]),
            state=np.stack([each[2] for each in every]),
            covariance=np.stack([each[3] for each in every]),
            predicted=np.stack([each[4] for each in every]),
            prior_covariance=np.stack([each[5] for each in every]),
        )
        held = filter_tracks(fits, self.catalogue.propagator, index)
        names = np.array([f"track-{row}" for row in index])
        return Tracks(
            self.catalogue.norad_id[index],
            names,
            held.epoch_ns,
            held.state,
            held.coefficients,
            held.joint_covariance,
            held.manoeuvre_ns,
        )


def _greatest_sigma_km(rows: pa.Table) -> np.ndarray:
    states = [np.array(rows[f"state_{side}"].to_pylist()) for side in (1, 2)]
    first, second = (covariance_from_lower(rows[f"covariance_{side}"].to_pylist()) for side in (1, 2))
    relative = states[1] - states[0]
    plane = encounter_plane(relative[:, :3], relative[:, 3:], (first + second)[:, :3, :3])
    return np.maximum(plane.sigma_x_km, plane.sigma_y_km)


@dataclass(frozen=True)
class Followed:
    """An alert in one world: hours from the first alert to its decision, or to the deadline where none was made."""

    hours: float
    is_decided: bool


def main() -> int:
    """Run both worlds for each seed, print the hours, and fail where tasking does not decide sooner."""
    options = _options()
    catalogue = _catalogue()
    followed: dict[str, list[Followed]] = {}
    for seed in range(options.seed, options.seed + options.seeds):
        for name, found in _one_seed(catalogue, seed, options).items():
            followed.setdefault(name, []).extend(found)
    if not followed:
        console.print("no alert is red at the start: ask for more --primaries")
        return 1
    for name, found in followed.items():
        hours = [each.hours for each in found]
        console.print(
            f"{name}, {options.seeds} seeds: hours from first alert to decision: "
            f"median {statistics.median(hours):.1f}, mean {statistics.mean(hours):.1f}; decided before the deadline: "
            f"{sum(each.is_decided for each in found)} of {len(found)}"
        )
    alone, tasked = followed.values()
    sooner = [one.hours - other.hours for one, other in zip(alone, tasked, strict=True)]
    console.print(
        f"tasking decides [bold]{statistics.mean(sooner):.1f} h[/bold] sooner on average: sooner for "
        f"{sum(each > 0 for each in sooner)}, later for {sum(each < 0 for each in sooner)} of {len(sooner)} alerts"
    )
    return 0 if statistics.mean(sooner) > 0 else 1


def _one_seed(catalogue: Catalogue, seed: int, options: argparse.Namespace) -> dict[str, list[Followed]]:
    """Both worlds with the payloads, the survey and the noise of one seed; nothing where no alert is red."""
    candidates = _red_alerts(catalogue, seed, options)
    if not candidates.num_rows:
        return {}
    interest = sorted({*candidates["norad_id_1"].to_pylist(), *candidates["norad_id_2"].to_pylist()})
    until_ns = max(candidates["tca_time_ns"].to_pylist()) - DECISION_LEAD_NS
    surveyed = _survey(interest, until_ns, seed)
    console.print(
        f"seed {seed}: {candidates.num_rows} red alerts, {len(interest)} objects, {len(surveyed)} minutes of survey of "
        "them"
    )
    tasking = TaskingResource()
    rows = catalogue.positions(interest)
    search = windows.searcher(
        catalogue.propagator.take(rows), list(tasking.network().values()), REFERENCE_TIME_NS - HOUR_NS,
        until_ns + HOUR_NS, least_s=tasking.least_window_s,
    )  # fmt: skip
    firsts = [pa.record_batch({"first": range(0, len(rows), windows.OBJECTS_PER_TASK)})]
    found = [row for batch in search(firsts) for row in batch.to_pylist()]
    data = catalogue_of(interest)
    worlds = {}
    for name, is_tasked in (("survey", False), ("survey and tasking", True)):
        world = worlds[name] = World(catalogue, candidates, seed, is_tasked)
        for now_ns in range(REFERENCE_TIME_NS, until_ns, STEP_NS):
            waiting = world.decide(now_ns)
            if not waiting.num_rows and len(world.decided_ns) == candidates.num_rows:
                break
            if is_tasked:
                world.plan(now_ns, waiting, found, tasking)
            world.observe(now_ns, surveyed, data)
    return _shown(candidates, worlds)


def _shown(candidates: pa.Table, worlds: dict[str, World]) -> dict[str, list[Followed]]:
    """Print a line for each alert of a seed; what became of them in each world."""
    grid = Table("objects", "TCA, h", *(f"{name}: decided, h" for name in worlds), "risk then", box=None)
    found: dict[str, list[Followed]] = {name: [] for name in worlds}
    finals = {name: {row["event_id"]: row for row in world.assessed().to_pylist()} for name, world in worlds.items()}
    for event in candidates.to_pylist():
        cells = []
        deadline_ns = event["tca_time_ns"] - DECISION_LEAD_NS
        for name, world in worlds.items():
            decided_ns = world.decided_ns.get(event["event_id"], _NEVER_NS)
            is_decided = decided_ns <= deadline_ns
            hours = ((decided_ns if is_decided else deadline_ns) - REFERENCE_TIME_NS) / HOUR_NS
            found[name].append(Followed(hours, is_decided))
            cells.append(f"{hours:.1f}" if is_decided else "not")
        pair = f"{event['norad_id_1']} {event['norad_id_2']}"
        lead_h = (event["tca_time_ns"] - REFERENCE_TIME_NS) / HOUR_NS
        grid.add_row(
            pair, f"{lead_h:.1f}", *cells, " / ".join(each[event["event_id"]]["risk"] for each in finals.values())
        )
    console.print(grid)
    counts = (f"{name}: {world.observed_s:,} observations of their objects" for name, world in worlds.items())
    console.print("; ".join(counts))
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--primaries", type=int, default=600)
    parser.add_argument("--hours", type=float, default=30.0, help="span of the screening")
    parser.add_argument("--least-lead", type=float, default=6.0, help="hours to TCA at the start, at least")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, default=1)
    return parser.parse_args()


def _catalogue() -> Catalogue:
    rows = decode_element_sets(reference_catalogue(), segment_format="omm-csv").sort_by("norad_id")
    elements = ElementSets.from_columns(arrays(rows, list(ElementSets.__dataclass_fields__)))
    return Catalogue(Propagator(elements), tuple(name or "" for name in rows["object_name"].to_pylist()))


def _red_alerts(catalogue: Catalogue, seed: int, options: argparse.Namespace) -> pa.Table:
    """The events of the screening that are red at the start, from catalogue states alone."""
    elements, random = catalogue.propagator.elements, np.random.default_rng(seed)
    payloads = np.flatnonzero([" DEB" not in name and " R/B" not in name for name in catalogue.object_names])
    chosen = np.sort(random.choice(payloads, min(options.primaries, len(payloads)), replace=False))
    end_ns = REFERENCE_TIME_NS + round(options.hours * HOUR_NS)
    terms = terms_in_force(elements.norad_id, elements.epoch_time_ns, [], REFERENCE_TIME_NS, end_ns)
    found = screen_elements(
        elements, terms, [(Volume.sphere(1.5), chosen)], np.arange(len(elements)), REFERENCE_TIME_NS, end_ns,
        processes=1, report=lambda *_: None,
    ).events  # fmt: skip
    candidates = pa.table(
        {
            "event_id": [f"event-{number}" for number in range(len(found))],
            "norad_id_1": elements.norad_id[found.lo],
            "norad_id_2": elements.norad_id[found.hi],
            "tca_time_ns": found.tca_time_ns,
        }
    )
    red = np.array(World(catalogue, candidates, 0, False).assessed().column("risk").to_pylist()) == "red"
    late = found.tca_time_ns >= REFERENCE_TIME_NS + round(options.least_lead * HOUR_NS)
    console.print(f"{len(found)} approaches within 1.5 km of {len(chosen)} payloads; red at the start: {red.sum()}")
    return candidates.filter(pa.array(red & late))


def _survey(interest: list[int], until_ns: int, seed: int) -> list[ScheduledTime]:
    """When the survey of each sensor takes in one of these objects, minute by minute."""
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    sky = Sky.of_catalogue(table, objects=None, seed=seed, catalogue_error_s=0.0, start_time_ns=REFERENCE_TIME_NS)
    plan, rows = ObservingPlan(), np.flatnonzero(np.isin(sky.norad_id, interest))
    found = []
    for begin_ns in range(REFERENCE_TIME_NS, until_ns, STEP_NS):
        for kind, capacity in (("radar", plan.radar_capacity), ("optical", plan.optical_capacity)):
            sensors = plan.sensors.of_kind(kind)
            middle_ns = begin_ns + STEP_NS // 2
            sensor, index = surveyed_pairs(sky, sensors, middle_ns, middle_ns + 1, capacity, seed)
            for number, row in zip(sensor, index, strict=True):
                if row in rows:
                    place = sensors[number].source_id, int(sky.norad_id[row])
                    found.append(ScheduledTime(*place, begin_ns, begin_ns + STEP_NS))
    return found


if __name__ == "__main__":
    sys.exit(main())

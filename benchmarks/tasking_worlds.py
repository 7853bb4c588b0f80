"""What sensors see of red conjunctions in a simulated world, and what is known of them by it (for `tasking_loop.py`).

Simulated frames are decoded, fitted in windows of 30 s, filtered and assessed as in the platform. Only the association
is given.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.orbits import Catalogue
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.tracked_states import Tracks
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.screening.encounter import encounter_plane
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform.simulation.corruption import FaultRates, deliveries
from sda_platform.simulation.observers import Observers, ObservingPlan
from sda_platform.simulation.randomness import stream
from sda_platform.simulation.segments import SegmentCollector, SimulatedSegment
from sda_platform.simulation.simulated_observations import SimulatedObservations
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.visibility import ScheduledTime
from sda_platform.tasking import demand, planning
from sda_platform.tasking.resource import TaskingResource
from sda_platform.tasking.tables import SCHEDULED
from sda_platform.units import MINUTE_NS, SECOND_NS

WINDOW_NS = 30 * SECOND_NS
STEP_NS = 10 * MINUTE_NS
SEGMENT_NS = 5 * SECOND_NS


@dataclass
class World:
    """One world: the catalogue, what is scheduled, and what was observed so far."""

    catalogue: Catalogue
    candidates: pa.Table
    seed: int
    is_tasked: bool
    fits: dict[int, list[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]] = field(default_factory=dict)
    schedule: list[dict[str, Any]] = field(default_factory=list)
    observations: int = 0

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

    def observe(self, start_ns: int, surveyed: Iterable[ScheduledTime], sky: Sky) -> None:
        """Simulate ten minutes of the sensors under the true ``sky``, and fit what they report."""
        booked = [ScheduledTime(*(each[name] for name in ScheduledTime.__dataclass_fields__)) for each in self.schedule]
        chosen = [*surveyed, *(booked if self.is_tasked else [])]
        chosen = [each for each in chosen if each.start_time_ns < start_ns + STEP_NS and each.end_time_ns > start_ns]
        if not chosen:
            return
        plan = ObservingPlan(isl_satellites=0, radar_capacity=0, optical_capacity=0, scheduled=tuple(chosen))
        observers, segments = Observers(sky, plan, self.seed), list[SimulatedSegment]()
        for feed in ("optical", "radar"):
            collector = SegmentCollector(feed, start_ns, SEGMENT_NS)
            for begin_ns in range(start_ns, start_ns + STEP_NS, MINUTE_NS):
                found: SimulatedObservations = getattr(observers, feed)(begin_ns, begin_ns + MINUTE_NS)
                collector.receive(found, deliveries(found, FaultRates(), stream(self.seed, "faults", feed, begin_ns)))
            segments += collector.seal_until(None)
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
        self.observations += len(observations)

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


def greatest_sigma_km(rows: pa.Table) -> np.ndarray:
    """Return the larger semi-axis of the one-sigma ellipse in the encounter plane, of each assessment."""
    states = [np.array(rows[f"state_{side}"].to_pylist()) for side in (1, 2)]
    first, second = (covariance_from_lower(rows[f"covariance_{side}"].to_pylist()) for side in (1, 2))
    relative = states[1] - states[0]
    plane = encounter_plane(relative[:, :3], relative[:, 3:], (first + second)[:, :3, :3])
    return np.maximum(plane.sigma_x_km, plane.sigma_y_km)

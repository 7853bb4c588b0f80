"""A third party that manoeuvres five hours before it passes a satellite of the fleet, as observers in orbit see it."""

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.alert_policy import LEVEL_COLUMNS, AlertPolicy
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.manoeuvred_paths import paths_by_tracks
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.screen import sweeps
from sda_platform.conjunction.screening_tasks import EVENT, searcher
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.conjunction.stated_paths import StatedPaths
from sda_platform.conjunction.tables import TRACK_REACH_NS
from sda_platform.conjunction.tracked_states import TRACK_COLUMNS, Tracks
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.fleet import protected_fleet
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.fuse import TRACK_SCHEMA as FIT_SCHEMA
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.tables import ALIVE
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.object_kinds import object_type
from sda_platform.orbits.screening.search import screen, spans
from sda_platform.orbits.screening.uncertain_approaches import miss_in_sigmas
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.setting_sections import AlertSettings, ScreeningSettings
from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.scenarios import Incidents, Manoeuvre, with_manoeuvre
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import simulate
from sda_platform.units import SECOND_NS

START_NS = parse_iso_ns("2024-11-01T00:00:00Z")
HOUR_NS = 3600 * SECOND_NS
WINDOW_NS, STEP_NS = 30 * SECOND_NS, 10 * SECOND_NS
BEFORE_TCA_NS = 5 * HOUR_NS
WANTED_KM = 0.06
SAME_EVENT_NS = 600 * SECOND_NS
WAIT_S = 600.0
"""Longest time from the burn to the first observation that follows it."""
SCREENING, POLICY = ScreeningSettings(), AlertPolicy(AlertSettings())
SCREENED = Volume.sphere(SCREENING.threshold_km)
# Larger fields and a larger reach make up for the observers and objects that are left out: two dozen observers see the
# third party as often as thousands see each of tens of thousands of objects.
AROUND = Constellation(rate_per_s=1, half_field_deg=60.0, reach_km=2500.0)
ERROR_S = 0.05


@dataclass(frozen=True)
class Approach:
    """A pair of rows of the catalogue, and its TCA by element sets."""

    fleet: int
    third: int
    tca_ns: int


def catalogue_table() -> pa.Table:
    """The shipped catalogue."""
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    return table.filter(table["error_kind"].is_null()).sort_by("norad_id")


def propagator_of(table: pa.Table) -> Propagator:
    names = ElementSets.__dataclass_fields__
    return Propagator(ElementSets.from_columns({name: table[name].to_numpy() for name in names}))


def approaches(table: pa.Table, propagator: Propagator, begin_ns: int, end_ns: int) -> list[Approach]:
    """Approaches of the fleet and others' payloads at 8 to 10 km, within four sigmas, in low orbits; by TCA."""
    payloads = np.array([object_type(name) == "payload" for name in table["object_name"].to_pylist()])
    ids = propagator.elements.norad_id
    fleet = np.flatnonzero(np.isin(ids, [member.norad_id for member in protected_fleet()]))
    found = screen(propagator, fleet, np.arange(len(ids)), begin_ns, end_ns, 10.0, is_fast_only=True).events
    sigmas = miss_in_sigmas(propagator, found.lo, found.hi, found.tca_time_ns)
    usual = payloads & (propagator.elements.mean_motion_rev_per_day > 14.0)
    chosen = (found.miss_distance_km > 8.0) & (sigmas < 4.0) & usual[found.lo] & usual[found.hi]
    chosen &= np.isin(found.lo, fleet) != np.isin(found.hi, fleet)
    return [
        Approach(*((lo, hi) if lo in fleet else (hi, lo)), tca)
        for lo, hi, tca in zip(found.lo[chosen].tolist(), found.hi[chosen].tolist(), found.tca_time_ns[chosen].tolist(),
                               strict=True)
    ]  # fmt: skip


def pass_of(sky: Sky, tca_ns: int, guess_ns: int | None = None) -> tuple[np.ndarray, int]:
    """Where the third party (the last row) passes the fleet's (row 0): relative position, and TCA, by the truth."""
    at_ns = tca_ns if guess_ns is None else guess_ns
    for _ in range(6):
        _, r, v = sky.states(np.array([0, len(sky) - 1]), np.array([at_ns, at_ns]))
        dr, dv = r[1] - r[0], v[1] - v[0]
        at_ns += round(-float(dr @ dv) / float(dv @ dv) * 1e9)
    return dr - dv * (dr @ dv) / (dv @ dv), at_ns


def burn_to(
    pair: Sky, norad_id: int, burn_ns: int, tca_ns: int, size_m_s: float, *, is_along_normal: bool = True
) -> tuple[Manoeuvre, float, float]:
    """The burn that brings the pass to WANTED_KM: the smallest, or one of ``size_m_s``; with the misses around it.

    Two burns of that size do, one along the orbit's normal and one against it.
    """
    before, at_ns = pass_of(pair, tca_ns)

    def after(dv: np.ndarray) -> np.ndarray:
        return pass_of(with_manoeuvre(pair, _burn(norad_id, burn_ns, dv)), tca_ns, at_ns)[0]

    dv, step = np.zeros(3), 0.05
    wanted = WANTED_KM * before / np.linalg.norm(before)
    for _ in range(8):
        here = after(dv) if dv.any() else before
        slope = np.stack([(after(dv + step * axis) - here) / step for axis in np.eye(3)], axis=1)
        dv = dv + np.linalg.pinv(slope, rcond=1e-3) @ (wanted - here)
        free = np.linalg.svd(slope)[2][-1]
        free = free if (free[2] > 0.0) == is_along_normal else -free
        if size_m_s > np.linalg.norm(dv):
            along = float(dv @ free)
            rest = size_m_s**2 - float(dv @ dv) + along**2
            dv = dv - along * free + np.sqrt(max(rest, 0.0)) * free
    miss_km = float(np.linalg.norm(after(dv)))
    return _burn(norad_id, burn_ns, dv), float(np.linalg.norm(before)), miss_km


def _burn(norad_id: int, time_ns: int, dv_m_s: np.ndarray) -> Manoeuvre:
    radial, transverse, normal = dv_m_s.tolist()
    return Manoeuvre(norad_id, time_ns, (radial, transverse, normal))


@dataclass
class Timeline:
    """When, in seconds since the first observation after the burn, the pipeline showed what; None: not yet."""

    first_s_after_burn: float | None = None
    suspected_s: float | None = None
    candidate_s: float | None = None
    yellow_s: float | None = None
    red_s: float | None = None
    observations: int = 0
    """Of the third party after the burn, until the end."""
    pc: float = 0.0
    miss_km: float = 0.0
    rule: str = ""
    """Of the event when it became yellow."""
    candidates: int = 0
    other_alerts: int = 0
    """The most candidates of the third party and the fleet at a time, and alerts of other events among them."""
    suspected_others: int = 0
    """Objects that did not manoeuvre, and are suspected at the end."""
    objects: int = 0
    screening_s: float = 0.0
    """The longest screening of the third party's path."""


def around(table: pa.Table, pair: list[int], at_ns: int, observers: int) -> list[int]:
    """The pair, and the satellites of the constellation that are nearest to the third party then."""
    stars = table.filter(pc.starts_with(table["object_name"], AROUND.name))
    places = propagator_of(stars).grid(np.array([at_ns]))[1][:, 0]
    third = propagator_of(table.filter(pc.equal(table["norad_id"], pair[1]))).grid(np.array([at_ns]))[1][0, 0]
    order = np.argsort(np.nan_to_num(np.linalg.norm(places - third, axis=1), nan=1e9))
    near = stars["norad_id"].to_numpy()[order[: observers + 1]].tolist()
    return [*pair, *[number for number in near if number not in pair][:observers]]


@dataclass(frozen=True, eq=False)
class Play:
    """A pair, the burn of its third party or none, and who observes."""

    table: pa.Table
    pair: list[int]
    tca_ns: int
    burn_ns: int
    burns: list[Manoeuvre]
    objects: list[int]
    seen_by: Constellation = AROUND
    seed: int = 1

    def run(self, *, before_s: float, after_s: float) -> Timeline:
        """Simulate and process the time around the burn; ends when the event is red, or ``after_s`` after the first
        observation that follows it. Without one in WAIT_S it ends then.

        Windows, tracks, candidates, assessments and levels are those of the platform's functions, every 10 s.
        """
        segments = simulate(
            "constellation", start_time_ns=self.burn_ns - round(before_s * 1e9), duration_s=before_s + WAIT_S + after_s,
            seed=self.seed, objects=self.objects, truth_from_ns=START_NS,
            incidents=Incidents(manoeuvres=tuple(self.burns)), segment_seconds=10.0,
            plan=ObservingPlan(catalogue_error_s=ERROR_S, constellation=self.seen_by),
        )  # fmt: skip
        fleet = [member.norad_id for member in protected_fleet()]
        known = self.table.filter(pc.is_in(self.table["norad_id"], pa.array([*self.objects, *fleet])))
        propagator = propagator_of(known)
        catalogue = Catalogue(propagator, tuple(name or "" for name in known["object_name"].to_pylist()))
        fuse, third = window_fuser(propagator, WINDOW_NS), self.pair[1]
        rows, fits, tracks = pa.table({}), dict[int, pa.Table](), TRACK_SCHEMA.empty_table()
        line, first_ns = Timeline(objects=len(self.objects)), None
        for segment in segments:
            now_ns = segment.available_time_ns
            if now_ns > (self.burn_ns + WAIT_S * 1e9 if first_ns is None else first_ns + after_s * 1e9):
                break
            fresh = decode_segments([(segment.data, segment.meta)])
            fresh = fresh.filter(fresh["error_kind"].is_null()).drop_columns(["payload", "segment"])
            truth = segment.truth.filter(pc.equal(segment.truth["norad_id"], third))
            seen_ns = [at for at in truth["true_time_ns"].to_pylist() if at >= self.burn_ns]
            line.observations += len(seen_ns)
            if seen_ns and first_ns is None:
                first_ns = min(seen_ns)
                line.first_s_after_burn = (first_ns - self.burn_ns) / 1e9
            rows = pa.concat_tables([rows, fresh]) if rows.num_rows else fresh
            starts = rows["sensor_time_ns"].to_numpy() // WINDOW_NS * WINDOW_NS
            keyed = rows.append_column("window_start_ns", pa.array(starts))
            seen = set[int]()
            for start in np.unique(fresh["sensor_time_ns"].to_numpy() // WINDOW_NS * WINDOW_NS).tolist():
                fits[start] = fuse(keyed.filter(pa.array(starts == start)))
                seen |= set(fits[start]["norad_id"].to_pylist())
            rows = rows.filter(pa.array(starts >= now_ns - 3 * WINDOW_NS))
            if first_ns is None or third not in seen:
                continue
            tracks = self._tracks(fits, [third], tracks, propagator, now_ns)
            self._look(line, catalogue, tracks, now_ns, (now_ns - first_ns) / 1e9)
            if line.red_s is not None:
                break
        everyone = self._tracks(fits, self.objects, TRACK_SCHEMA.empty_table(), propagator, now_ns)
        # Others are off their element sets by kilometres: suspected as well, but of no speed.
        suspected = everyone.filter(everyone["manoeuvre_speed_m_s"].is_valid())["norad_id"].to_pylist()
        line.suspected_others = len(set(suspected) - {burn.norad_id for burn in self.burns})
        return line

    def _tracks(
        self, fits: dict[int, pa.Table], numbers: list[int], tracks: pa.Table, propagator: Propagator, now_ns: int
    ) -> pa.Table:
        wanted = pa.array(sorted(numbers), pa.int64())
        found = pa.concat_tables([FIT_SCHEMA.empty_table(), *fits.values()])
        found = found.filter(pc.is_in(found["norad_id"], wanted))
        return live_tracks(found, found.select(CHANGE_COLUMNS), tracks, propagator, now_ns)

    def _look(self, line: Timeline, catalogue: Catalogue, tracks: pa.Table, now_ns: int, since_s: float) -> None:
        """Screen the third party and the fleet, if it is suspected, and judge what is found."""
        alive = tracks.filter(pc.is_in(tracks["state"], pa.array(ALIVE))).select(TRACK_COLUMNS)
        suspected = alive.filter(alive["manoeuvre_time_ns"].is_valid())
        if not suspected.num_rows:
            return
        line.suspected_s = since_s if line.suspected_s is None else line.suspected_s
        began = time.perf_counter()
        found = self._candidates(catalogue, suspected, now_ns)
        line.screening_s = max(line.screening_s, time.perf_counter() - began)
        line.candidates = max(line.candidates, found.num_rows)
        if not found.num_rows:
            return
        assessed = assess_candidates(
            found, catalogue, Tracks.of(alive), OperatorEphemerides.none(), SCREENED, ObjectSizes({})
        )
        columns = {name: assessed.column(name).to_numpy(zero_copy_only=False) for name in LEVEL_COLUMNS}
        levels = POLICY.levels(columns, np.zeros(len(assessed), np.int64), now_ns)
        rules = POLICY.rule(columns, levels, now_ns)
        ours = 0
        for row, level, rule in zip(assessed.to_pylist(), levels.tolist(), rules, strict=True):
            is_it = row["norad_id_1"] == self.pair[0] and abs(row["tca_time_ns"] - self.tca_ns) < SAME_EVENT_NS
            if not is_it:
                continue
            line.candidate_s = since_s if line.candidate_s is None else line.candidate_s
            line.pc, line.miss_km, ours = row["collision_probability"], row["miss_distance_km"], int(level > 0)
            if level >= 1 and line.yellow_s is None:
                line.yellow_s, line.rule = since_s, rule
            if level >= 2 and line.red_s is None:
                line.red_s = since_s
        line.other_alerts = max(line.other_alerts, int((levels > 0).sum()) - ours)

    def _candidates(self, catalogue: Catalogue, suspected: pa.Table, now_ns: int) -> pa.Table:
        none = OperatorEphemerides.none()
        by_tracks = paths_by_tracks(suspected, catalogue, none, CONSTANT_DYNAMICS, now_ns)
        paths = StatedPaths.of(catalogue, none, by_tracks)
        fleet = [member.norad_id for member in protected_fleet()]
        work = sweeps(
            paths, fleet, frozenset(self.pair[1:]), scope="fleet", volumes=SCREENED, objects_per_task=30_000,
            manoeuvre_sigmas=SCREENING.manoeuvre_sigmas, reach_km=SCREENING.reach_km,
        )  # fmt: skip
        search = searcher(paths, np.array(fleet), work, fleet_internal=True)
        spanned = spans(now_ns, now_ns + TRACK_REACH_NS)
        tasks = [{"sweep": n, "start_ns": begin, "end_ns": end} for n in range(len(work)) for begin, end in spanned]
        found = pa.Table.from_batches(search([pa.RecordBatch.from_pylist(tasks)]))
        found = found.filter(pc.equal(found["kind"], EVENT))
        names = [f"{number}" for number in range(found.num_rows)]
        return found.append_column("event_id", pa.array(names, pa.string()))

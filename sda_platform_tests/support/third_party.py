"""A third party that manoeuvres five hours before it passes a satellite of the fleet, as observers in orbit see it."""

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import NANOSECONDS_PER_SECOND, parse_iso_ns
from sda_platform.conjunction.alert_policy import LEVEL_COLUMNS, AlertPolicy
from sda_platform.conjunction.assess import assess_candidates
from sda_platform.conjunction.best_states import TRACK_COLUMNS, Tracks
from sda_platform.conjunction.fleet import protected_fleet
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.sizes import ObjectSizes
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.observations import decode_segments
from sda_platform.fusion.fuse import TRACK_SCHEMA as FIT_SCHEMA
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import TRACK_SCHEMA, live_tracks
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.probability import object_type
from sda_platform.orbits.screening.search import screen
from sda_platform.orbits.screening.uncertain_approaches import miss_in_sigmas
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.setting_sections import AlertSettings
from sda_platform.simulation.constellation import Constellation
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.scenarios import Manoeuvre, with_manoeuvre
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import simulate

START_NS = parse_iso_ns("2024-11-01T00:00:00Z")
HOUR_NS = 3600 * NANOSECONDS_PER_SECOND
WINDOW_NS, STEP_NS = 30 * NANOSECONDS_PER_SECOND, 10 * NANOSECONDS_PER_SECOND
BEFORE_TCA_NS = 5 * HOUR_NS
WANTED_KM = 0.06
SCREENED = Volume.sphere(5.0, sigmas=3.0, reach_km=20.0)
# Larger fields and a larger reach make up for the observers and objects that are left out.
THINNED = Constellation(half_field_deg=45.0, reach_km=1500.0)
RATE_PER_OBJECT = 30e6 / 86_400 / 26_834
NO_TRACKS = pa.schema([TRACK_SCHEMA.field(name) for name in TRACK_COLUMNS]).empty_table()


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
    """Approaches of the fleet and others' payloads at 8 to 10 km, within three sigmas, in low orbits; by TCA."""
    payloads = np.array([object_type(name) == "payload" for name in table["object_name"].to_pylist()])
    ids = propagator.elements.norad_id
    fleet = np.flatnonzero(np.isin(ids, [member.norad_id for member in protected_fleet()]))
    found = screen(propagator, fleet, np.arange(len(ids)), begin_ns, end_ns, 10.0, is_fast_only=True).events
    sigmas = miss_in_sigmas(propagator, found.lo, found.hi, found.tca_time_ns)
    usual = payloads & (propagator.elements.mean_motion_rev_per_day > 14.0)
    chosen = (found.miss_distance_km > 8.0) & (sigmas < SCREENED.sigmas) & usual[found.lo] & usual[found.hi]
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


def burn_to(pair: Sky, norad_id: int, burn_ns: int, tca_ns: int, size_m_s: float) -> tuple[Manoeuvre, float, float]:
    """The burn that brings the pass to WANTED_KM: the smallest, or one of ``size_m_s``; with the misses around it."""
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
        if size_m_s > np.linalg.norm(dv):
            along = float(dv @ free)
            rest = size_m_s**2 - float(dv @ dv) + along**2
            dv = dv - along * free + np.sqrt(max(rest, 0.0)) * free * (np.sign(along) or 1.0)
    miss_km = float(np.linalg.norm(after(dv)))
    return _burn(norad_id, burn_ns, dv), float(np.linalg.norm(before)), miss_km


def _burn(norad_id: int, time_ns: int, dv_m_s: np.ndarray) -> Manoeuvre:
    radial, transverse, normal = dv_m_s.tolist()
    return Manoeuvre(norad_id, time_ns, (radial, transverse, normal))


@dataclass
class Timeline:
    """When, in seconds since the first observation after the burn, the pipeline showed what; None: not yet."""

    first_s_after_burn: float | None = None
    manoeuvre_s: float | None = None
    yellow_s: float | None = None
    red_s: float | None = None
    observations: int = 0
    step_s: float = 0.0
    pc: float = 0.0
    miss_km: float = 0.0


def a_part_of(table: pa.Table, pair: list[int], part: int) -> list[int]:
    """The pair, and every so many-th satellite of the constellation and of the others."""
    ids = table["norad_id"].to_numpy()
    names = np.array([name or "" for name in table["object_name"].to_pylist()])
    is_star = np.char.startswith(names, "STARLINK")
    return list(dict.fromkeys([*pair, *ids[is_star][::part].tolist(), *ids[~is_star][::part].tolist()]))


def play(
    table: pa.Table,
    pair: list[int],
    tca_ns: int,
    burn: Manoeuvre,
    objects: list[int],
    seen_by: Constellation,
    *,
    before_s: float,
    after_s: float,
    seed: int,
) -> Timeline:
    """Simulate and process the time around the burn; ends when the event is red, or ``after_s`` after the burn.

    ``table``: the catalogue that observations are associated with; ``objects`` are simulated, of the shipped one.
    """
    names = np.array([name or "" for name in table["object_name"].to_pylist()])
    plan = ObservingPlan(catalogue_error_s=0.05, constellation=seen_by)
    begin_ns = burn.time_ns - round(before_s * 1e9)
    segments = simulate(
        "constellation", start_time_ns=begin_ns, duration_s=before_s + after_s, seed=seed, objects=objects, plan=plan,
        truth_from_ns=START_NS, manoeuvres=[burn], segment_seconds=10.0,
    )  # fmt: skip
    propagator = propagator_of(table)
    catalogue = Catalogue(propagator, tuple(names.tolist()))
    fuse = window_fuser(propagator, WINDOW_NS)
    event = pa.table({"event_id": ["event"], "norad_id_1": pair[:1], "norad_id_2": pair[1:], "tca_time_ns": [tca_ns]})
    policy = AlertPolicy(AlertSettings())
    rows, fits = pa.table({}), {}
    tracks = TRACK_SCHEMA.empty_table()
    line, first_ns, seconds, recent = Timeline(), None, [], set[int]()
    for segment in segments:
        if segment.available_time_ns > burn.time_ns + after_s * 1e9:
            break
        began = time.perf_counter()
        fresh = decode_segments([(segment.data, segment.meta)])
        fresh = fresh.filter(fresh["error_kind"].is_null()).drop_columns(["payload", "segment"])
        truth = segment.truth.filter(pa.compute.equal(segment.truth["norad_id"], pair[1]))
        seen_ns = [at for at in truth["true_time_ns"].to_pylist() if at >= burn.time_ns]
        line.observations += len(seen_ns)
        if seen_ns and first_ns is None:
            first_ns = min(seen_ns)
            line.first_s_after_burn = (first_ns - burn.time_ns) / 1e9
        rows = pa.concat_tables([rows, fresh]) if rows.num_rows else fresh
        starts = rows["sensor_time_ns"].to_numpy() // WINDOW_NS * WINDOW_NS
        keyed = rows.append_column("window_start_ns", pa.array(starts))
        for start in np.unique(fresh["sensor_time_ns"].to_numpy() // WINDOW_NS * WINDOW_NS).tolist():
            fits[start] = fuse(keyed.filter(pa.array(starts == start)))
            recent |= set(fits[start]["norad_id"].to_pylist())
        rows = rows.filter(pa.array(starts >= segment.available_time_ns - 3 * WINDOW_NS))
        of_pair = pa.concat_tables([FIT_SCHEMA.empty_table(), *fits.values()])
        of_pair = of_pair.filter(pa.compute.is_in(of_pair["norad_id"], pa.array(pair)))
        if segment.available_time_ns < burn.time_ns:
            continue
        numbers, recent = pa.array(sorted(recent & set(pair)), pa.int64()), set()
        changed = live_tracks(
            of_pair.filter(pa.compute.is_in(of_pair["norad_id"], numbers)), numbers, tracks, propagator,
            segment.available_time_ns,
        )  # fmt: skip
        kept = tracks.filter(pa.compute.invert(pa.compute.is_in(tracks["norad_id"], changed["norad_id"])))
        tracks = pa.concat_tables([kept, changed])
        alive = tracks.filter(pa.compute.is_in(tracks["state"], pa.array(["confirmed", "coasting"])))
        known = Tracks.of(alive.select(TRACK_COLUMNS)) if alive.num_rows else Tracks.of(NO_TRACKS)
        found = assess_candidates(event, catalogue, known, OperatorEphemerides.none(), SCREENED, ObjectSizes({}))
        columns = {name: found.column(name).to_numpy(zero_copy_only=False) for name in LEVEL_COLUMNS}
        level = int(policy.levels(columns, [0], segment.available_time_ns)[0])
        seconds.append(time.perf_counter() - began)
        if first_ns is None:
            continue
        since_s = (segment.available_time_ns - first_ns) / 1e9
        third = tracks.filter(pa.compute.equal(tracks["norad_id"], pair[1])).to_pylist()
        line.pc, line.miss_km = found["collision_probability"][0].as_py(), found["miss_distance_km"][0].as_py()
        if third and third[0]["manoeuvre_time_ns"] and third[0]["manoeuvre_time_ns"] > burn.time_ns - WINDOW_NS:
            line.manoeuvre_s = since_s if line.manoeuvre_s is None else line.manoeuvre_s
        if line.manoeuvre_s is not None and level >= 1 and line.yellow_s is None:
            line.yellow_s = since_s
        if line.manoeuvre_s is not None and level >= 2:
            line.red_s = since_s
            break
    line.step_s = float(np.mean(seconds))
    return line

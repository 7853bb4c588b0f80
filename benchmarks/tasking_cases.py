"""Red conjunctions of seeded days and of real weeks, with the orbits that their objects truly follow (for
`tasking_loop.py`).
"""

import argparse
import dataclasses
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from tasking_worlds import STEP_NS, World

from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import iso
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.in_force import terms_in_force
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.simulation.motion import Motion
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import REFERENCE_TIME_NS, reference_catalogue
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.visibility import ScheduledTime, surveyed_pairs
from sda_platform.units import DAY_NS, HOUR_NS

EVENTS = Path(__file__).parents[1] / "sda_platform_tests/data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"
_OLDEST_NS = 7 * DAY_NS
_EACH = 20
_CLOSE_KM = 1.5
_FITTED_TIMES, _FITS = 100, 6
_COLUMNS = list(ElementSets.__dataclass_fields__)
_SET = [field.name for field in dataclasses.fields(ElementSet)]


@dataclass(frozen=True)
class Case:
    """Conjunctions that are red at ``begin_ns``, and the element sets that their objects truly follow (OMM CSV)."""

    name: str
    seed: int
    begin_ns: int
    catalogue: Catalogue
    candidates: pa.Table
    truth: bytes
    truth_error_s: float

    def true_sky(self) -> Sky:
        """The objects as they truly are: integrated numerically, and as near to their sets as such an orbit can be."""
        table = decode_element_sets(self.truth, segment_format="omm-csv")
        sky = Sky.of_catalogue(
            table, objects=None, seed=self.seed, catalogue_error_s=self.truth_error_s, start_time_ns=self.begin_ns
        )
        until_ns = max(self.candidates["tca_time_ns"].to_pylist())
        return dataclasses.replace(sky, _motion=_fitted_motion(sky, self.begin_ns, until_ns))


def _fitted_motion(sky: Sky, begin_ns: int, until_ns: int) -> Motion:
    """Orbits of the numerical model with the least squares of the distances to the element sets meanwhile."""
    count, motion = len(sky), Motion()
    times_ns = np.linspace(begin_ns, until_ns, _FITTED_TIMES).astype(np.int64)
    of, time_ns = np.repeat(np.arange(count), _FITTED_TIMES), np.tile(times_ns, count)
    _, r, v = sky.propagator.at(of, time_ns + sky.ahead_ns[of])
    wanted = gcrf_of_teme(np.hstack([r, v]), time_ns)
    state = wanted[::_FITTED_TIMES].copy()
    areas = first_coefficients(sky.propagator.elements.bstar_per_earth_radius)[0]
    for _ in range(_FITS):
        found, partials = motion.dynamics.transitions(state, areas, np.full(count, begin_ns), of, time_ns)
        for row in range(count):
            own = of == row
            away = (wanted[own, :3] - found[own, :3]).ravel()
            state[row] += np.linalg.lstsq(partials[own][:, :3, :6].reshape(-1, 6), away)[0]
    kept = {(row, 0): state[row] for row in range(count)}
    return Motion(kept=kept, newest=dict.fromkeys(range(count), 0))


def true_encounters(case: Case, sky: Sky) -> np.ndarray:
    """Relative positions (n, 3) at the true TCA of each conjunction, TEME km."""
    rows = {norad_id: row for row, norad_id in enumerate(sky.norad_id.tolist())}
    sides = [np.array([rows[n] for n in case.candidates[f"norad_id_{side}"].to_pylist()]) for side in (1, 2)]
    tca_ns = case.candidates["tca_time_ns"].to_numpy().copy()
    for _ in range(8):
        (_, r1, v1), (_, r2, v2) = (sky.states(side, tca_ns) for side in sides)
        r, v = r2 - r1, v2 - v1
        tca_ns -= np.rint((r * v).sum(axis=1) / (v * v).sum(axis=1) * 1e9).astype(np.int64)
    return r


def survey(case: Case, interest: list[int], until_ns: int) -> list[ScheduledTime]:
    """When the survey of each sensor takes in one of these objects, which share it with the shipped catalogue."""
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    others = table.filter(pc.invert(pc.is_in(table["norad_id"], pa.array(interest))))
    others = others.take(np.arange(0, others.num_rows, _EACH))
    epochs = pc.add(others["epoch_time_ns"], case.begin_ns - REFERENCE_TIME_NS)
    others = others.set_column(others.column_names.index("epoch_time_ns"), "epoch_time_ns", epochs)
    filler = Sky.of_catalogue(others, objects=None, seed=case.seed, catalogue_error_s=0.0, start_time_ns=case.begin_ns)
    sky = filler.joined_by(case.true_sky(), case.begin_ns)
    plan, wanted = ObservingPlan(), set(np.flatnonzero(np.isin(sky.norad_id, interest)).tolist())
    found = []
    for begin_ns in range(case.begin_ns, until_ns, STEP_NS):
        for kind, capacity in (("radar", plan.radar_capacity), ("optical", plan.optical_capacity)):
            sensors, middle_ns = plan.sensors.of_kind(kind), begin_ns + STEP_NS // 2
            pairs = surveyed_pairs(sky, sensors, middle_ns, middle_ns + 1, capacity // _EACH, case.seed)
            for number, row in zip(*(each.tolist() for each in pairs), strict=True):
                if row in wanted:
                    place = sensors[number].source_id, int(sky.norad_id[row])
                    found.append(ScheduledTime(*place, begin_ns, begin_ns + STEP_NS))
    return found


def of_seeds(options: argparse.Namespace) -> Iterator[Case]:
    """Red conjunctions of the shipped catalogue's day, of which each seed draws some."""
    if not options.seeds:
        return
    rows = decode_element_sets(reference_catalogue(), segment_format="omm-csv").sort_by("norad_id")
    catalogue = _catalogue(rows)
    known = csv.read_csv(EVENTS)  # each approach of that day within 5 km
    from_ns = REFERENCE_TIME_NS + round(options.least_lead * HOUR_NS)
    tca_ns = known["tca_utc"].cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_numpy()
    close = (known["miss_km"].to_numpy() <= _CLOSE_KM) & (tca_ns >= from_ns)
    close &= tca_ns <= REFERENCE_TIME_NS + round(options.hours * HOUR_NS)
    first, second = (known[name].to_numpy()[close] for name in ("norad_lo", "norad_hi"))
    candidates = _candidates(REFERENCE_TIME_NS, first, second, tca_ns[close])
    red = _red_of(catalogue, candidates)
    for seed in range(1, options.seeds + 1):
        drawn = np.random.default_rng(seed).choice(red.num_rows, min(options.each, red.num_rows), replace=False)
        for event in drawn.tolist():
            yield from _case(f"seed {seed}", seed, REFERENCE_TIME_NS, catalogue, red.slice(event, 1), rows)


def of_weeks(options: argparse.Namespace) -> Iterator[Case]:
    """The conjunctions of each day of a real history."""
    if options.no_history:
        return
    data = options.history.read_bytes()
    data = gzip.decompress(data) if options.history.suffix == ".gz" else data
    rows = decode_element_sets(data, segment_format="tle")
    rows = rows.filter(pc.is_null(rows["error_kind"])).sort_by(
        [("norad_id", "ascending"), ("epoch_time_ns", "ascending")]
    )
    epoch_ns = rows["epoch_time_ns"].to_numpy()
    for begin_ns in range((int(epoch_ns.min()) // DAY_NS + 1) * DAY_NS, int(epoch_ns.max()), DAY_NS):
        known = rows.filter(pa.array((epoch_ns <= begin_ns) & (epoch_ns > begin_ns - _OLDEST_NS)))
        ids = known["norad_id"].to_numpy()
        known = known.take(np.flatnonzero(np.append(ids[1:] != ids[:-1], len(ids) > 0)))
        if known.num_rows < 2:
            continue
        catalogue = _catalogue(known)
        red = _red(catalogue, np.arange(len(catalogue)), begin_ns, options)
        for event in range(red.num_rows):
            one = red.slice(event, 1)
            later = _later_sets(rows, one, begin_ns)
            if later is not None:
                name = f"{iso(begin_ns)[:10]} to {iso(begin_ns + DAY_NS)[:10]}"
                yield from _case(name, 1, begin_ns, catalogue, one, later, truth_error_s=0.0)


def _later_sets(rows: pa.Table, event: pa.Table, begin_ns: int) -> pa.Table | None:
    """The sets of both objects that were found after the alert, with the epoch nearest to TCA; None: one has none."""
    tca_ns = event["tca_time_ns"][0].as_py()
    found = []
    for side in (1, 2):
        own = rows.filter(pc.equal(rows["norad_id"], event[f"norad_id_{side}"][0]))
        own = own.filter(pc.greater(own["epoch_time_ns"], begin_ns))
        if not own.num_rows:
            return None
        found.append(own.slice(int(np.argmin(np.abs(own["epoch_time_ns"].to_numpy() - tca_ns))), 1))
    return pa.concat_tables(found)


def _case(
    name: str,
    seed: int,
    begin_ns: int,
    catalogue: Catalogue,
    candidates: pa.Table,
    sets: pa.Table,
    truth_error_s: float = ObservingPlan.catalogue_error_s,
) -> Iterator[Case]:
    if candidates.num_rows:
        interest = pa.array({*candidates["norad_id_1"].to_pylist(), *candidates["norad_id_2"].to_pylist()})
        followed_sets = sets.filter(pc.is_in(sets["norad_id"], interest)).to_pylist()
        truth = encode_omm_csv(ElementSet(**{name: row[name] for name in _SET if name in row}) for row in followed_sets)
        yield Case(name, seed, begin_ns, catalogue, candidates, truth, truth_error_s)


def _catalogue(rows: pa.Table) -> Catalogue:
    elements = ElementSets.from_columns(arrays(rows, _COLUMNS))
    return Catalogue(Propagator(elements), tuple(name or "" for name in rows["object_name"].to_pylist()))


def _red(catalogue: Catalogue, primaries: np.ndarray, begin_ns: int, options: argparse.Namespace) -> pa.Table:
    """The conjunctions that are red at ``begin_ns`` by what is known of element sets alone."""
    elements, end_ns = catalogue.propagator.elements, begin_ns + round(options.hours * HOUR_NS)
    from_ns = begin_ns + round(options.least_lead * HOUR_NS)
    terms = terms_in_force(elements.norad_id, elements.epoch_time_ns, [], from_ns, end_ns)
    found = screen_elements(
        elements, terms, [(Volume.sphere(_CLOSE_KM), np.sort(primaries))], np.arange(len(elements)), from_ns, end_ns,
        processes=1, report=lambda *_: None,
    ).events  # fmt: skip
    candidates = _candidates(begin_ns, elements.norad_id[found.lo], elements.norad_id[found.hi], found.tca_time_ns)
    return _red_of(catalogue, candidates)


def _candidates(begin_ns: int, first: np.ndarray, second: np.ndarray, tca_time_ns: np.ndarray) -> pa.Table:
    names = [f"event-{begin_ns}-{number}" for number in range(len(first))]
    return pa.table({"event_id": names, "norad_id_1": first, "norad_id_2": second, "tca_time_ns": tca_time_ns})


def _red_of(catalogue: Catalogue, candidates: pa.Table) -> pa.Table:
    risk = np.array(World(catalogue, candidates, 0, False).assessed()["risk"].to_pylist(), dtype=str)
    return candidates.filter(pa.array(risk == "red"))

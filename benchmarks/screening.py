"""All-against-all screening of a real catalogue: complete? and how much faster than brute force?

    python benchmarks/screening.py [--hours 24] [--slice-hours 4] [--repeats 3] [--processes 2]

The catalogue is CelesTrak's of 2024-11-01 (26,834 objects). The whole day is compared with the published truth of that
day (computed by brute force, see sda_platform_tests/data/screening). The peer is that brute force, written here in the
usual way: python-sgp4 at every 8 s step, a scipy k-d tree of 68 km, Newton's method on r·v = 0. Ours and the peer
take turns on a slice of the day, on as many processes each; both have started, imported and compiled before the clock
does, and no time is printed unless their events are equal. Then 1,800 new fragments of a broken rocket stage against
the catalogue, and a week of 18,000 of the objects; these times are those of `sda screen`, its start included.
"""

import argparse
import cProfile
import csv
import gzip
import itertools
import pstats
import resource
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table as Grid
from scipy.spatial import cKDTree

import sda_platform
from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.clock import parse_iso_ns
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.in_force import terms_in_force
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S, Seeds, refine
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.search import ScreeningResult, screen
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.simulation.breakup import Breakup
from sda_platform.simulation.reference import reference_catalogue
from sda_platform.simulation.scenarios import parent_of, with_breakup
from sda_platform.simulation.sky import Sky
from sda_platform.units import SECOND_NS

CATALOGUE = Path(sda_platform.__file__).parent / "simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"
TRUTH = Path(__file__).parents[1] / "sda_platform_tests/data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"
START_NS = parse_iso_ns("2024-11-01T00:00:00Z")
THRESHOLD_KM = 5.0
HOUR_NS = 3600 * SECOND_NS
# Events this near to the threshold may fall on either side of it.
EDGE_KM = 0.001
# A process that fails before it is ready would else be awaited for ever.
READY_WITHIN_S = 600
SAME_NS = SECOND_NS
PEER_STEP_S, PEER_RADIUS_KM, PEER_CHUNK_S = 8, 68.0, 600
GROWTH = (5_000, 10_000, 20_000)
WEEK_H, WEEK_OBJECTS = 168.0, 18_000
FRAGMENTS = Breakup(fragments=1_800)

Pair = tuple[int, int]
Found = list[tuple[Pair, int, float]]
Work = tuple[ElementSets, int, int]
Part = Callable[[Work], Found]
Rows = npt.NDArray[np.int64]
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Agreement:
    """How two lists of events compare: what each lacks, and how far the common ones differ."""

    common: int
    missing: int
    extra: int
    tca_ms: float
    miss_m: float


def main() -> int:
    """Run, print, and fail where the events are not the truth's or the peer's."""
    options = _options()
    elements = read_elements(CATALOGUE, START_NS, START_NS + 1).elements
    _screen(elements, 0.02, 1)  # compile before anything is timed
    ok = _against_truth(elements, options.hours, options.processes)
    ok &= _against_peer(elements, options.slice_hours, options.repeats, options.processes)
    _growth(elements, options.slice_hours)
    _debris(elements, options.hours, options.processes)
    _where_time_goes(elements, min(2.0, options.slice_hours))
    _week(elements, options.processes)
    return 0 if ok else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0, help="span that is compared with the truth, at most 24")
    parser.add_argument("--slice-hours", type=float, default=4.0, help="span that the peer screens too")
    parser.add_argument("--repeats", type=int, default=3, help="turns that each takes on the slice")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def _against_truth(elements: ElementSets, hours: float, processes: int) -> bool:
    began = time.perf_counter()
    found = _screen(elements, hours, processes)
    seconds = time.perf_counter() - began
    truth = _truth(hours)
    agreement = compare(truth, fast_events(elements, found))
    pairs = len(elements) * (len(elements) - 1) / 2
    console.print(
        f"{len(elements):,} objects, {hours:g} h, {processes} processes: {seconds:.1f} s, "
        f"{pairs * hours / 24 / seconds / 1e6:.1f} million pair-days/s, largest process {_peak_gib():.2f} GiB"
    )
    console.print(
        f"  truth {len(truth):,}: {agreement.missing} missing, {agreement.extra} extra; recall "
        f"{agreement.common / max(1, agreement.common + agreement.missing):.4%}, precision "
        f"{agreement.common / max(1, agreement.common + agreement.extra):.4%}; 95th percentile of the difference: TCA "
        f"{agreement.tca_ms:.2f} ms, miss {agreement.miss_m:.3f} m; {len(found.colocated.lo)} co-located pairs"
    )
    return agreement.missing == agreement.extra == 0


def _against_peer(elements: ElementSets, hours: float, repeats: int, processes: int) -> bool:
    times: dict[str, list[float]] = defaultdict(list)
    worked: dict[str, list[float]] = defaultdict(list)
    for _ in range(repeats):
        for name, search in (("ours", _our_part), ("brute force", _peer_part)):
            events, seconds, busy_s = _in_turn(search, elements, hours, processes)
            times[name].append(seconds)
            worked[name].append(busy_s)
            if name == "ours":
                mine = events
        agreement = compare(events, mine)
        if agreement.missing or agreement.extra:
            console.print(f"not equal to brute force: {agreement}: no time is worth printing")
            return False
    ours, peer = (statistics.median(times[name]) for name in ("ours", "brute force"))
    our_work, peer_work = (statistics.median(worked[name]) for name in ("ours", "brute force"))
    console.print(
        f"{hours:g} h in turns, {repeats} each, {len(events):,} equal events: ours {ours:.1f} s, "
        f"brute force {peer:.1f} s, [bold]{peer / ours:.1f} times faster[/bold]; processor time, which a busy machine "
        f"changes less: {our_work:.1f} s and {peer_work:.1f} s, {peer_work / our_work:.1f} times"
    )
    return True


def _growth(elements: ElementSets, hours: float) -> None:
    """In this process, so that no start of another one levels the growth."""
    grid = Grid("objects", "seconds", "events", "growth of time for that of objects", box=None)
    order = np.random.default_rng(1).permutation(len(elements))
    last: tuple[int, float] | None = None
    for size in (*GROWTH, len(elements)):
        began = time.perf_counter()
        part = elements.take(np.sort(order[:size]))
        found = _screen(part, hours, 1)
        seconds = time.perf_counter() - began
        exponent = "" if last is None else f"n^{np.log(seconds / last[1]) / np.log(size / last[0]):.2f}"
        grid.add_row(f"{size:,}", f"{seconds:.1f}", f"{len(found.events):,}", exponent)
        last = (size, seconds)
    console.print(grid)


def _debris(elements: ElementSets, hours: float, processes: int) -> None:
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    sky = Sky.of_catalogue(table, objects=None, seed=1, catalogue_error_s=0.0, start_time_ns=START_NS)
    parent = parent_of(FRAGMENTS, table, START_NS, 1)
    everything = with_breakup(sky, parent, FRAGMENTS, START_NS, 1)[0].propagator.elements
    catalogue, fragments = np.split(np.arange(len(everything)), [len(elements)])
    for others, what in ((catalogue, f"the {len(catalogue):,} of the catalogue"), (fragments, "each other")):
        began = time.perf_counter()
        found = _screen(everything, hours, processes, fragments, others)
        console.print(
            f"{len(fragments):,} fragments of {parent} against {what}, {hours:g} h: "
            f"{len(found.events):,} candidates in {time.perf_counter() - began:.1f} s"
        )


def _week(elements: ElementSets, processes: int) -> None:
    chosen = np.random.default_rng(2).permutation(len(elements))[:WEEK_OBJECTS]
    began = time.perf_counter()
    found = _screen(elements.take(np.sort(chosen)), WEEK_H, processes)
    console.print(
        f"{WEEK_OBJECTS:,} objects, {WEEK_H / 24:g} days: {len(found.events):,} events in "
        f"{time.perf_counter() - began:.1f} s, largest process {_peak_gib():.2f} GiB"
    )


def _where_time_goes(elements: ElementSets, hours: float) -> None:
    propagator, rows = Propagator(elements), np.arange(len(elements))
    propagator.at(rows, START_NS)
    profile = cProfile.Profile()
    profile.runcall(screen, propagator, rows, rows, START_NS, START_NS + round(hours * HOUR_NS), THRESHOLD_KM)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in stats.values())
    wanted = {"propagate": "SGP4 at the knots", "error_bounds_km": "error bounds", "find_nearby": "cell list",
              "seed": "linear passes", "refine": "Newton with SGP4"}  # fmt: skip
    shares = {wanted[name]: entry[3] / total for (_, _, name), entry in stats.items() if name in wanted}
    console.print("one process: " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items()))


def _screen(
    elements: ElementSets, hours: float, processes: int, primaries: Rows | None = None, secondaries: Rows | None = None
) -> ScreeningResult:
    everything = np.arange(len(elements))
    return screen_elements(
        elements,
        terms_in_force(elements.norad_id, elements.epoch_time_ns, [], START_NS, START_NS + 1),
        [(Volume.sphere(THRESHOLD_KM), everything if primaries is None else primaries)],
        everything if secondaries is None else secondaries,
        START_NS,
        START_NS + round(hours * HOUR_NS),
        processes=processes,
        report=lambda _done, _total: None,
    )


def _in_turn(part: Part, elements: ElementSets, hours: float, processes: int) -> tuple[Found, float, float]:
    """The events of a slice, the seconds by the clock, and those of the processors, once every process is ready."""
    # As many spans as processes, which a slice shorter than the platform's own spans would not give.
    edges = np.linspace(START_NS, START_NS + hours * HOUR_NS, processes + 1).astype(np.int64).tolist()
    context = get_context("spawn")
    ready = context.Barrier(processes + 1)
    with ProcessPoolExecutor(processes, context, _warm_up, (part, elements, ready)) as pool:
        work = [(elements, start_ns, end_ns) for start_ns, end_ns in itertools.pairwise(edges)]
        turns = [pool.submit(_worked, part, each) for each in work]
        ready.wait(READY_WITHIN_S)
        began = time.perf_counter()
        found = [turn.result() for turn in turns]
        seconds = time.perf_counter() - began
    return [event for events, _ in found for event in events], seconds, sum(busy_s for _, busy_s in found)


def _warm_up(part: Part, elements: ElementSets, ready: Barrier) -> None:
    part((elements.take(np.arange(2000)), START_NS, START_NS + SECOND_NS))
    ready.wait()


def _worked(part: Part, work: Work) -> tuple[Found, float]:
    busy_s = time.process_time()
    found = part(work)
    return found, time.process_time() - busy_s


def _our_part(work: Work) -> Found:
    elements, start_ns, end_ns = work
    rows = np.arange(len(elements))
    return fast_events(elements, screen(Propagator(elements), rows, rows, start_ns, end_ns, THRESHOLD_KM))


def _peer_part(work: Work) -> Found:
    elements, start_ns, end_ns = work
    propagator = Propagator(elements)
    seeds = []
    step_ns = PEER_STEP_S * SECOND_NS
    for chunk_ns in range(start_ns - step_ns, end_ns + step_ns, PEER_CHUNK_S * SECOND_NS):
        times = np.arange(chunk_ns, min(chunk_ns + PEER_CHUNK_S * SECOND_NS, end_ns + step_ns), step_ns)
        error, position, velocity = propagator.grid(times)
        for column, time_ns in enumerate(times.tolist()):
            rows = np.flatnonzero(error[:, column] == 0)
            pairs = rows[cKDTree(position[rows, column]).query_pairs(PEER_RADIUS_KM, output_type="ndarray")]
            dr = position[pairs[:, 1], column] - position[pairs[:, 0], column]
            dv = velocity[pairs[:, 1], column] - velocity[pairs[:, 0], column]
            speed2 = np.maximum(np.einsum("ij,ij->i", dv, dv), 1e-8)
            offset_s = np.clip(-np.einsum("ij,ij->i", dr, dv) / speed2, -PEER_STEP_S, PEER_STEP_S)
            near = np.flatnonzero(np.linalg.norm(dr + dv * offset_s[:, None], axis=1) <= THRESHOLD_KM + 1.0)
            guess = time_ns + (offset_s[near] * SECOND_NS).astype(np.int64)
            seeds.append((pairs[near, 0], pairs[near, 1], guess))
    passes = refine(propagator, Seeds(*(np.concatenate(column) for column in zip(*seeds, strict=True))))
    good = passes.is_minimum & (passes.distance_km <= THRESHOLD_KM) & (passes.speed_km_s >= SLOWEST_EVENT_KM_S)
    good &= (passes.time_ns >= start_ns) & (passes.time_ns < end_ns) & (passes.error == 0)
    ids = np.sort(np.stack([elements.norad_id[passes.first], elements.norad_id[passes.second]], axis=1), axis=1)
    unique: dict[tuple[int, int, int], float] = {}
    for row in np.flatnonzero(good).tolist():
        at_ms = round(passes.time_ns[row] / 1e6)
        unique.setdefault((int(ids[row, 0]), int(ids[row, 1]), at_ms), float(passes.distance_km[row]))
    return [((a, b), ms * 1_000_000, miss) for (a, b, ms), miss in unique.items()]


def fast_events(elements: ElementSets, found: ScreeningResult) -> Found:
    """The events, but slow approaches, which neither the truth nor the peer has."""
    events, norad_id = found.events, elements.norad_id
    events = events.take(np.asarray(events.relative_speed_km_s >= SLOWEST_EVENT_KM_S))
    pairs = zip(norad_id[events.lo].tolist(), norad_id[events.hi].tolist(), strict=True)
    return list(zip(pairs, events.tca_time_ns.tolist(), events.miss_distance_km.tolist(), strict=True))


def _truth(hours: float) -> Found:
    with gzip.open(TRUTH, "rt") as file:
        rows = [
            ((int(row["norad_lo"]), int(row["norad_hi"])), parse_iso_ns(row["tca_utc"]), float(row["miss_km"]))
            for row in csv.DictReader(file)
        ]
    return [row for row in rows if row[1] < START_NS + hours * HOUR_NS]


def compare(expected: Found, found: Found) -> Agreement:
    by_pair: dict[Pair, list[tuple[int, float]]] = defaultdict(list)
    for pair, time_ns, miss_km in found:
        by_pair[pair].append((time_ns, miss_km))
    tca_ms, miss_m, missing = [], [], 0
    for pair, time_ns, miss_km in expected:
        match = min(by_pair.get(pair, []), key=lambda event: abs(event[0] - time_ns), default=None)
        if match is not None and abs(match[0] - time_ns) < SAME_NS:
            by_pair[pair].remove(match)
            tca_ms.append(abs(match[0] - time_ns) / 1e6)
            miss_m.append(abs(match[1] - miss_km) * 1e3)
        else:
            missing += miss_km < THRESHOLD_KM - EDGE_KM
    extra = sum(miss < THRESHOLD_KM - EDGE_KM for events in by_pair.values() for _, miss in events)
    worst = [float(np.percentile(values, 95)) if values else 0.0 for values in (tca_ms, miss_m)]
    return Agreement(len(tca_ms), missing, extra, worst[0], worst[1])


def _peak_gib() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in who) / 2**20


if __name__ == "__main__":
    sys.exit(main())

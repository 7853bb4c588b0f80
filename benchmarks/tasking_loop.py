"""How long before the encounter is the level of a red conjunction the true one, with tasking and without?

    python benchmarks/tasking_loop.py [--seeds 10] [--history FILE.3le[.gz] | --no-history] [--json FILE]

Red conjunctions are followed to their deadline, two hours before TCA, in two worlds: sensors
survey, or they also observe what `tasking` schedules, planned anew every ten minutes. There are two kinds:

- seeds: a day of the shipped catalogue, of which each seed draws a red conjunction. Each object is ahead of its element
  set by a seeded time (1 sigma: 0.05 s).
- weeks: a history of real element sets, each day at 00:00 UTC. The platform knows the newest set of each object then,
  and gets no newer one. The object follows the set with the epoch nearest to TCA among later ones: what the publisher
  found afterwards.

So the truth is made by no part of the estimator. A conjunction is decided from the first step on since which, up to the
deadline, it is not red or is known to 100 m (one sigma in each direction), and the miss is within 300 m of the true
one: a wrong decision is none. What is not decided by then counts with the deadline. Simulated: the observations, their
noise, and the survey, which the shipped catalogue fills (moved in time; each twentieth object for that part of the
capacity).
"""

import argparse
import dataclasses
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.console import Console
from tasking_cases import Case, of_seeds, of_weeks, survey, true_encounters
from tasking_worlds import STEP_NS, World, greatest_sigma_km

from sda_platform.clock import iso
from sda_platform.tasking import windows
from sda_platform.tasking.resource import TaskingResource
from sda_platform.units import HOUR_NS

SHIPPED = Path(__file__).parents[1] / "sda_platform_tests/data/history/sets_of_red_conjunctions_2013-10.3le.gz"
WORLDS = ("survey", "survey and tasking")
DECISION_LEAD_NS = 2 * HOUR_NS
KNOWN_SIGMA_KM, RIGHT_KM = 0.1, 0.3
console = Console(highlight=False, soft_wrap=True)


class Step(NamedTuple):
    """What is known of a conjunction so many hours before TCA: level, greatest sigma, and its true error."""

    hours: float
    level: str
    sigma_km: float
    error_km: float

    @property
    def is_decided(self) -> bool:
        """Whether a person would decide, and rightly."""
        return (self.level != "red" or self.sigma_km <= KNOWN_SIGMA_KM) and self.error_km <= RIGHT_KM


@dataclass(frozen=True)
class Decided:
    """What became of one conjunction in both worlds; hours before TCA."""

    case: str
    objects: tuple[int, int]
    tca: str
    first_hours: float
    true_miss_km: float
    hours: dict[str, float | None]
    steps: dict[str, list[Step]]


def main() -> int:
    """Follow all conjunctions, print medians and ranges, and fail where tasking decides later."""
    options = _options()
    found: dict[str, list[Decided]] = {}
    for kind, cases in (("seeds", of_seeds(options)), ("weeks", of_weeks(options))):
        for case in cases:
            for each in followed(case):
                found.setdefault(kind, []).append(each)
                hours = " / ".join("not" if h is None else f"{h:.1f} h" for h in each.hours.values())
                console.print(
                    f"{case.name}: {each.objects[0]} {each.objects[1]}, red {each.first_hours:.1f} h before TCA; true "
                    f"miss {each.true_miss_km:.2f} km; decided before TCA: {hours}"
                )
                if options.json:
                    events = {name: [dataclasses.asdict(row) for row in rows] for name, rows in found.items()}
                    summaries = {name: summary(rows) for name, rows in found.items()}
                    options.json.write_text(json.dumps({"summary": summaries, "events": events}))
    summaries = {kind: summary(rows) for kind, rows in found.items()}
    for kind, figures in summaries.items():
        console.print(f"[bold]{kind}[/bold]: {figures}")
    return 0 if found and all(each["mean_hours_sooner"] >= 0 for each in summaries.values()) else 1


def summary(rows: list[Decided]) -> dict[str, Any]:
    """Median and range of the hours before TCA in both worlds; what is undecided counts with the deadline."""
    deadline_h = DECISION_LEAD_NS / HOUR_NS
    made: dict[str, Any] = {"conjunctions": len(rows)}
    hours = {name: [row.hours[name] or deadline_h for row in rows] for name in WORLDS}
    for name, each in hours.items():
        made[name] = {
            "median_hours_before_tca": round(statistics.median(each), 1),
            "range_hours": [round(min(each), 1), round(max(each), 1)],
            "decided": sum(row.hours[name] is not None for row in rows),
            "wrongly_not_red": sum(_is_wrong(row.steps[name][-1]) for row in rows),
            "median_error_km": round(statistics.median(row.steps[name][-1].error_km for row in rows), 3),
        }
    sooner = [tasked - alone for alone, tasked in zip(*hours.values(), strict=True)]
    made["mean_hours_sooner"] = round(statistics.mean(sooner), 1)
    made["sooner"], made["later"] = sum(each > 0 for each in sooner), sum(each < 0 for each in sooner)
    return made


def followed(case: Case) -> list[Decided]:
    """Both worlds of a case, step by step to the deadline of its last conjunction."""
    sky = case.true_sky()
    true_km = true_encounters(case, sky)
    interest = sorted({*case.candidates["norad_id_1"].to_pylist(), *case.candidates["norad_id_2"].to_pylist()})
    until_ns = max(case.candidates["tca_time_ns"].to_pylist()) - DECISION_LEAD_NS
    surveyed, tasking = survey(case, interest, until_ns), TaskingResource()
    rows = case.catalogue.positions(interest)
    search = windows.searcher(
        case.catalogue.propagator.take(rows), list(tasking.network().values()), case.begin_ns - HOUR_NS,
        until_ns + HOUR_NS, least_s=tasking.least_window_s,
    )  # fmt: skip
    firsts = [pa.record_batch({"first": range(0, len(rows), windows.OBJECTS_PER_TASK)})]
    found = [row for batch in search(firsts) for row in batch.to_pylist()]
    steps: dict[str, list[list[Step]]] = {}
    tca_ns = case.candidates["tca_time_ns"].to_numpy()
    for name in WORLDS:
        world = World(case.catalogue, case.candidates, case.seed, is_tasked=name != "survey")
        seen = steps[name] = [[] for _ in tca_ns]
        known, judged = world.assessed(), 0
        for now_ns in range(case.begin_ns, until_ns + 1, STEP_NS):
            # Without new observations nothing is known that was not.
            known, judged = (world.assessed() if world.observations != judged else known), world.observations
            ahead, sigma_km = tca_ns - DECISION_LEAD_NS >= now_ns, greatest_sigma_km(known)
            for event, row in enumerate(known.to_pylist()):
                if ahead[event]:
                    error_km = float(np.linalg.norm(_miss_km(row) - true_km[event]))
                    hours = (int(tca_ns[event]) - now_ns) / HOUR_NS
                    seen[event].append(Step(hours, row["risk"], float(sigma_km[event]), error_km))
            if world.is_tasked:
                world.plan(now_ns, known.filter(pa.array(ahead)), found, tasking)
            world.observe(now_ns, surveyed, sky)
    return [
        Decided(
            case.name,
            (row["norad_id_1"], row["norad_id_2"]),
            iso(row["tca_time_ns"]),
            (row["tca_time_ns"] - case.begin_ns) / HOUR_NS,
            float(np.linalg.norm(true_km[event])),
            {name: settled(steps[name][event]) for name in WORLDS},
            {name: steps[name][event] for name in WORLDS},
        )
        for event, row in enumerate(case.candidates.to_pylist())
    ]


def settled(steps: list[Step]) -> float | None:
    """Hours before TCA from which on it stayed decided; None where it was not so at last."""
    found = None
    for step in reversed(steps):
        if not step.is_decided:
            break
        found = step.hours
    return found


def _is_wrong(step: Step) -> bool:
    return step.level != "red" and step.error_km > RIGHT_KM


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--each", type=int, default=1, help="conjunctions of a seed")
    parser.add_argument("--hours", type=float, default=30.0, help="span of a screening")
    parser.add_argument("--least-lead", type=float, default=6.0, help="hours to TCA at the start, at least")
    parser.add_argument("--history", type=Path, default=SHIPPED, help="element sets, two or three lines each")
    parser.add_argument("--no-history", action="store_true", help="the seeds alone")
    parser.add_argument("--json", type=Path, help="where to write all figures")
    return parser.parse_args()


def _miss_km(row: dict[str, Any]) -> np.ndarray:
    first, second = (np.array(row[f"state_{side}"][:3]) for side in (1, 2))
    miss_km: np.ndarray = second - first
    return miss_km


if __name__ == "__main__":
    sys.exit(main())

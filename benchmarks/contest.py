"""A contest: entries that do the same work, interleaved in one process, reported as ratios.

Speed and load differ between machines. So entries take turns, round by round, after one
round that is not counted, and only the ratio of their medians is held against a bound.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid


@dataclass(frozen=True)
class Entry:
    """One way to do the work. ``run`` is given the round, and returns the seconds that count."""

    name: str
    run: Callable[[int], float]


@dataclass(frozen=True)
class Gate:
    """A figure and its bound."""

    name: str
    value: float
    bound: float
    at_least: bool

    @property
    def holds(self) -> bool:
        """Whether the figure is within its bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "[green]holds[/]" if self.holds else "[bold red]missed[/]"
        return f"{self.name}: {self.value:.3g} (bound {sign} {self.bound:.3g}) {verdict}"


@dataclass(frozen=True)
class Result:
    """What a contest found; ``seconds`` are those of the counted rounds, by entry."""

    title: str
    work: Mapping[str, float]
    seconds: Mapping[str, Sequence[float]]
    gates: Sequence[Gate] = ()

    def as_json(self) -> dict[str, Any]:
        """For a machine to read."""
        gates = [{"name": g.name, "value": g.value, "bound": g.bound, "holds": g.holds} for g in self.gates]
        return {"title": self.title, "work": dict(self.work), "seconds": dict(self.seconds), "gates": gates}


def contest(entries: Sequence[Entry], rounds: int) -> dict[str, list[float]]:
    """Seconds of every counted round, by entry; round 0 warms up."""
    seconds: dict[str, list[float]] = {entry.name: [] for entry in entries}
    for number in range(rounds + 1):
        for entry in entries:
            taken = entry.run(number)
            seconds[entry.name] += [taken] if number else []
    return seconds


def timed(work: Callable[[], object]) -> float:
    """Seconds that ``work`` took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratio(seconds: Mapping[str, Sequence[float]], one: str, other: str) -> float:
    """How many times faster ``one`` is than ``other``, by medians."""
    return statistics.median(seconds[other]) / statistics.median(seconds[one])


def report(console: Console, results: Iterable[Result], json_path: Path | None) -> int:
    """Print each result, as it comes, as a table with its gates, and write all as JSON; 0 when every gate holds."""
    told = []
    for result in results:
        told.append(result)
        grid = Grid("entry", "median s", "min s", "max s", *(f"{unit}/s" for unit in result.work), title=result.title)
        for name, taken in result.seconds.items():
            median = statistics.median(taken)
            rates = [f"{amount / median:,.0f}" for amount in result.work.values()]
            grid.add_row(name, f"{median:.3f}", f"{min(taken):.3f}", f"{max(taken):.3f}", *rates)
        console.print(grid)
        for gate in result.gates:
            console.print(f"  {gate}")
    if json_path is not None:
        json_path.write_text(json.dumps([result.as_json() for result in told], indent=2))
    return 0 if all(gate.holds for result in told for gate in result.gates) else 1

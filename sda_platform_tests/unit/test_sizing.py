"""The page on sizing: its cores follow from its rates and loads, and its loads from what this repository ships."""

from pathlib import Path

import pytest

from sda_platform.orbits.sensing.sensors import sensor_registry

PAGE = (Path(__file__).parents[2] / "docs/reference/sizing.md").read_text()
STEPS = {
    "collector": "collector",
    "decoding": "decoding, in the run's process",
    "append to `raw_records`": "append to `raw_records`",
    "append to `observations`": "append to `observations`",
    "association and fits": "association and fits",
}
MEASURED_OBJECTS, GROWTH, DAY_S, HOUR_S = 26_834, 1.4, 86_400, 3_600


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head."""
    lines = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def number(text: str) -> float:
    return float(text.replace(",", ""))


RATES = {row[0]: number(row[1]) for row in table("Rates of one core")}
LOADS = {row[0]: [number(cell) for cell in row[1:]] for row in table("Loads")}
STATED = {row[0]: row[1:] for row in table("Cores")}
CORES = {name: [number(cell) for cell in cells] for name, cells in STATED.items()}


def computed(step: str, objects: float, observations: float) -> float:
    """The cores of a step, or the terabytes of a day."""
    if step in STEPS:
        return observations / RATES[STEPS[step]]
    if step == "screening":
        full_s = RATES["screening of a day, all against all"] * (objects / MEASURED_OBJECTS) ** GROWTH
        return float(full_s / HOUR_S)
    if step == "propagation":
        return objects / RATES["numerical propagation of a day"] / HOUR_S
    return observations * DAY_S * RATES["rows on disk"] / 1e12


@pytest.mark.parametrize("step", [name for name in CORES if name != "sum"])
def test_the_cores_of_a_step_are_its_load_by_its_rate(step: str) -> None:
    for (objects, observations, _), stated in zip(LOADS.values(), STATED[step], strict=True):
        decimals = len(stated.partition(".")[2])
        assert f"{computed(step, objects, observations):.{decimals}f}" == stated


def test_the_sum_is_that_of_the_steps() -> None:
    steps = [cells for name, cells in CORES.items() if name != "sum" and "disk" not in name]
    assert CORES["sum"] == pytest.approx([sum(cells) for cells in zip(*steps, strict=True)], rel=0.02, abs=0.06)


def test_the_loads_begin_with_what_is_shipped_and_end_with_the_requirement() -> None:
    today, *_, largest = LOADS.values()
    assert today[0] == MEASURED_OBJECTS
    assert today[2] == len(sensor_registry())
    assert largest == [500_000, 1_000_000, 1_000]

"""`sda screen` with several sets of an object: each counts while it is in force, and borders lose nothing."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sda_platform.cli.analysis.screen_catalogue import read_elements
from sda_platform.cli.main import main
from sda_platform.clock import iso, parse_iso_ns
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS, Terms
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.search import ScreeningResult
from sda_platform.orbits.screening.volumes import Volume

CATALOGUE = Path(__file__).parents[2] / "data/screening/supplemental_sets_2025-01-12.omm.csv"
START_NS = parse_iso_ns("2025-01-13T00:00:00Z")
DAY_NS = 86_400 * 10**9
ISS = 25544
Row = dict[str, str]
Approach = tuple[str, str, str, float]


def records() -> list[Row]:
    with CATALOGUE.open() as file:
        return list(csv.DictReader(file))


def epoch_ns(row: Row) -> int:
    return parse_iso_ns(row["EPOCH"] + "Z")


def screened(tmp_path: Path, rows: Iterable[Row], start_ns: int, end_ns: int) -> tuple[set[Approach], str]:
    """The approaches of the ISS within 20 km, and what the command prints."""
    catalogue, fleet, out = (tmp_path / name for name in ("sets.csv", "fleet.csv", "events.csv"))
    with catalogue.open("w") as file:
        writer = csv.DictWriter(file, list(records()[0]))
        writer.writeheader()
        writer.writerows(rows)
    fleet.write_text(f"norad_id,name,operator\n{ISS},ISS,\n")
    arguments = ["--catalog", catalogue, "--fleet", fleet, "--out", out, "--start", iso(start_ns), "--processes", 1]
    arguments += ["--hours", repr((end_ns - start_ns) / 3600e9), "--threshold-km", 20]
    answer = CliRunner().invoke(main, ["screen", *map(str, arguments)])
    assert answer.exit_code == 0, answer.output
    with out.open() as file:
        found = {
            (r["norad_id_1"], r["norad_id_2"], r["tca_utc"], round(float(r["miss_km"]), 9))
            for r in csv.DictReader(file)
        }
    return found, answer.output


def one_each(rows: list[Row], time_ns: int) -> list[Row]:
    """Of each object the set in force at a time, chosen one by one."""
    chosen: dict[str, Row] = {}
    for row in sorted(rows, key=epoch_ns):
        if epoch_ns(row) - EPOCH_TOLERANCE_NS <= time_ns or row["NORAD_CAT_ID"] not in chosen:
            chosen[row["NORAD_CAT_ID"]] = row
    return list(chosen.values())


def test_the_approaches_of_a_day_are_those_of_the_sets_in_force_A1(tmp_path: Path) -> None:
    rows, end_ns = records(), START_NS + DAY_NS
    switches = sorted({epoch_ns(row) - EPOCH_TOLERANCE_NS for row in rows})
    edges = [START_NS, *(t for t in switches if START_NS < t < end_ns), end_ns]
    expected: set[Approach] = set()
    for begin, end in pairwise(edges):
        expected |= screened(tmp_path, one_each(rows, begin), begin, end)[0]
    found, text = screened(tmp_path, rows, START_NS, end_ns)
    assert found == expected
    assert len(found) == 15
    newest = {row["NORAD_CAT_ID"]: row for row in sorted(rows, key=epoch_ns)}.values()
    wrong, _ = screened(tmp_path, newest, START_NS, end_ns)
    assert len(wrong) == 16
    assert not {(*a[:2], a[2][:16]) for a in found} & {(*a[:2], a[2][:16]) for a in wrong}
    assert "element sets assume a planned manoeuvre" in text
    assert "INTELSAT 902 [PM] (26900), epoch 2025-01-13T14:46:31" in text


def test_a_set_in_force_all_day_gives_the_sixteen_approaches_of_it_A1(tmp_path: Path) -> None:
    rows = [row for row in records() if epoch_ns(row) <= START_NS]
    found, _ = screened(tmp_path, rows, START_NS, START_NS + DAY_NS)
    assert len(found) == 16


@pytest.fixture(scope="module")
def pair() -> tuple[ElementSets, int]:
    """The ISS and an object that it meets, one set each, and the time of closest approach."""
    elements = read_elements(CATALOGUE, START_NS, START_NS + 1).elements
    rows = elements.take(np.isin(elements.norad_id, [ISS, 60670]))
    found = found_by(rows, np.full(2, ALWAYS_NS), np.full(2, FOREVER_NS))
    return rows, int(found.events.tca_time_ns[0])


def found_by(elements: ElementSets, from_ns: np.ndarray, until_ns: np.ndarray) -> ScreeningResult:
    rows = np.arange(len(elements))
    terms = Terms(rows, from_ns, until_ns)
    work = [(Volume.sphere(20.0), rows)]
    end_ns = START_NS + 3600 * 10**9
    return screen_elements(elements, terms, work, rows, START_NS, end_ns, processes=1, report=lambda _done, _all: None)


@pytest.mark.parametrize("after_tca_ns", [-90 * 10**9, -1, 0, 1, 90 * 10**9])
def test_a_border_between_equal_sets_changes_nothing_A1(pair: tuple[ElementSets, int], after_tca_ns: int) -> None:
    elements, tca_ns = pair
    border = tca_ns + after_tca_ns
    cut = found_by(
        elements.take([0, 0, 1]), np.array([ALWAYS_NS, border, ALWAYS_NS]), np.array([border, FOREVER_NS, FOREVER_NS])
    )
    assert cut.events.tca_time_ns.tolist() == [tca_ns]
    assert elements.take([0, 0, 1]).norad_id[[cut.events.lo[0], cut.events.hi[0]]].tolist() == [ISS, 60670]


@pytest.mark.parametrize("shift_deg", [-0.02, 0.02])
@pytest.mark.parametrize("after_tca_ms", [-200, -100, -50, 0, 50, 100, 200])
def test_a_jump_at_a_border_neither_loses_nor_doubles_an_encounter_A1(
    pair: tuple[ElementSets, int], shift_deg: float, after_tca_ms: int
) -> None:
    elements, tca_ns = pair
    both = elements.take([0, 0, 1])
    both = replace(both, mean_anomaly_deg=both.mean_anomaly_deg + np.array([0, shift_deg, 0]))
    border = tca_ns + after_tca_ms * 10**6
    cut = found_by(both, np.array([ALWAYS_NS, border, ALWAYS_NS]), np.array([border, FOREVER_NS, FOREVER_NS]))
    (time_ns,) = cut.events.tca_time_ns.tolist()
    assert abs(time_ns - tca_ns) < 2 * 10**9

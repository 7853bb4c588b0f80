"""Progress and result of `sda screen` on the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sda_platform.catalog.sources import assumes_planned_manoeuvre
from sda_platform.cli.analysis.screen_catalogue import (
    ElementFile,
    age_warning,
    available_cores,
    check_output,
    events_of,
    read_elements,
    write_events,
)
from sda_platform.cli.listing import Output, number, word, words
from sda_platform.clock import iso
from sda_platform.conjunction.volumes import screening_volumes
from sda_platform.formats.fleet import protected_fleet
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.screening.closest_approach import SLOWEST_EVENT_KM_S
from sda_platform.orbits.screening.parallel import screen_elements
from sda_platform.orbits.screening.volumes import Volume, by_volume
from sda_platform.units import HOUR_NS

_SHOWN = 5
_MOST_LISTED: Final = 40
_COLUMNS: Final = (
    number("Pc", lambda each: f"{each['pc_2d']:.1e}"),
    number("largest", lambda each: f"{each['largest_pc_2d']:.1e}"),
    word("TCA (UTC)", lambda each: each["tca_utc"][:19].replace("T", " ")),
    number("miss km", lambda each: f"{each['miss_km']:.3f}"),
    number("R, T, N km", lambda each: "{radial_km:+.2f} {in_track_km:+.2f} {cross_track_km:+.2f}".format(**each)),
    number("km/s", lambda each: f"{each['rel_speed_km_s']:.2f}"),
    number("days old", lambda each: f"{each['age_1_days']:.1f} {each['age_2_days']:.1f}"),
    words("objects", lambda each: " – ".join(f"{each[f'norad_id_{n}']} {each[f'object_name_{n}']}" for n in (1, 2))),
)


@dataclass(frozen=True)
class Search:
    """Who is screened against all, when, and how near is near. Without a fleet: everybody.

    ``sigmas``: approaches within ``reach_km`` whose miss is at most so many sigmas of both sets' errors are near, too.
    """

    start_ns: int
    hours: float
    threshold_km: float
    volumes: str
    fleet: Path | None
    fleet_internal: bool
    sigmas: float
    reach_km: float

    @property
    def end_ns(self) -> int:
        return self.start_ns + round(self.hours * HOUR_NS)

    @property
    def sphere(self) -> Volume:
        return Volume.sphere(self.threshold_km, self.sigmas, self.reach_km)

    @property
    def how_near(self) -> str:
        """Describe the screened distance or volumes, for people."""
        uncertain = f", or {self.sigmas:g} sigmas and {self.reach_km:g} km" if self.sigmas else ""
        return f"{self.threshold_km:g} km{uncertain}"


def run_screening(catalog: Path, search: Search, processes: int | None, out: Path | None, console: Console) -> None:
    """Read the objects, screen them, and print the result with all exclusions and their reasons.

    The events are written to ``out``; without it those with the largest Pc are printed.

    Raises ClickException and ListingError for errors that the user can correct.
    """
    if out is not None:
        check_output(out)
    volumes = screening_volumes(search.volumes) if search.volumes else None
    file = read_elements(catalog, search.start_ns, search.end_ns)
    elements = file.elements
    everything = np.arange(len(elements))
    primaries = everything if search.fleet is None else _rows_of(search.fleet, elements)
    chosen = by_volume(elements.take(primaries), volumes or search.sphere)
    work = [(volume, primaries[rows]) for volume, rows in chosen]
    if not work:
        raise click.ClickException(f"{search.volumes}: has no volume for the orbit of any object that is screened")
    count, protected = (len(np.unique(elements.norad_id[rows])) for rows in (everything, primaries))
    who = f"{count:,} objects" if search.fleet is None else f"{protected:,} of {count:,} objects"
    how_near = search.how_near if volumes is None else f"the volumes of {', '.join(volumes)}"
    console.print(f"{who}, {iso(search.start_ns)} to {iso(search.end_ns)}, within {how_near}")
    columns = TextColumn("screening"), BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("screening", total=None)
        found = screen_elements(
            elements,
            file.terms,
            work,
            everything if search.fleet_internal else np.setdiff1d(everything, primaries),
            search.start_ns,
            search.end_ns,
            processes=processes or available_cores(),
            report=lambda done, total: progress.update(task, completed=done, total=total),
        )
    events = events_of(found, file)
    slow = int((found.events.relative_speed_km_s < SLOWEST_EVENT_KM_S).sum())
    console.print(
        f"{len(found.events):,} approaches ({slow:,} slower than 10 m/s), "
        f"{len(found.colocated.lo):,} pairs that move together"
    )
    terms = file.terms
    spans = np.maximum(terms.from_ns, search.start_ns), np.minimum(terms.until_ns, search.end_ns)
    if old := age_warning(elements.norad_id, elements.epoch_time_ns, *spans):
        console.print(old)
    _print_some(console, [*file.unreadable], "records could not be read")
    if file.left_out:
        console.print(f"{file.left_out:,} element sets are in force at no time of the window, another of the object is")
    _print_some(console, _planned(file), "element sets assume a planned manoeuvre")
    if len(found.failures.index):
        console.print(f"{len(found.failures.index):,} objects were refused by SGP4 in part of the window")
    if out is not None:
        console.print("written: " + ", ".join(map(str, write_events(events, found, elements, out))))
        return
    largest = events.sort_by([("pc_2d", "descending"), ("tca_utc", "ascending")])
    Output(limit=_MOST_LISTED).show(largest.slice(0, _MOST_LISTED).to_pylist(), _COLUMNS, nothing="no approach")
    console.print("Pc: 2D, by the errors of element sets and the radius of each kind; --out writes every approach")


def _planned(file: ElementFile) -> list[str]:
    rows = [row for row, name in enumerate(file.names) if assumes_planned_manoeuvre(name)]
    epochs, ids = file.elements.epoch_time_ns, file.elements.norad_id
    return [f"{file.names[row]} ({ids[row]}), epoch {iso(int(epochs[row]))}" for row in rows]


def _rows_of(fleet: Path, elements: ElementSets) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    wanted = [member.norad_id for member in protected_fleet(fleet)]
    rows = np.flatnonzero(np.isin(elements.norad_id, wanted))
    if not len(rows):
        raise click.ClickException(f"{fleet}: none of its {len(wanted)} satellites is in the catalogue")
    return rows


def _print_some(console: Console, lines: list[str], what: str) -> None:
    if lines:
        console.print(f"{len(lines):,} {what}:")
        for line in [*lines[:_SHOWN], *(["…"] if len(lines) > _SHOWN else [])]:
            console.print(f"  {line}")

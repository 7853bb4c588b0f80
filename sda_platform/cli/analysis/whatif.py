"""`sda whatif`: the risk of one satellite before and after a planned manoeuvre."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from sda_platform.cli.analysis.whatif_output import print_outcome
from sda_platform.cli.grammar import FOUND_FILE, POSITIVE, default_option, instant, json_option
from sda_platform.cli.listing import print_json
from sda_platform.cli.people import PeopleConsole, lake_of
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS, HOUR_NS


@click.command(short_help="Show what a burn or a planned ephemeris does to a satellite's risk.")
@click.option("--primary", type=click.IntRange(1), required=True, help="Catalogue number of the satellite.")
@click.option("--burn", "burns", multiple=True, help="TIME,R,T,N: ISO 8601 and m/s in RTN; may be repeated.")
@click.option("--ephemeris", type=FOUND_FILE, help="A plan as OEM.")
@click.option("--goal", type=click.FloatRange(0, 1, min_open=True), help="Search the least burn that brings Pc below.")
@click.option("--window", help="FROM/TO, ISO 8601: when that burn may be (default: the first 24 hours).")
@default_option("--most", default=1.0, help="Largest burn of the search, m/s.")
@default_option("--burn-error", default=3.0, help="Error of a burn's size, per cent, 1 sigma.")
@default_option("--pointing-error", default=1.0, help="Error of its direction, degrees, 1 sigma.")
@click.option("--catalog", type=FOUND_FILE, help="Default: the lake's.")
@click.option("--start", help="Begin of the span, ISO 8601 (default: mission time).")
@click.option("--hours", type=POSITIVE, help="Length of the span (default: as far as the newest screening).")
@default_option("--threshold-km", default=5.0, help="Miss distance within which each approach counts.")
@default_option("--sigmas", default=3.0, help="A farther approach counts within so many sigmas.")
@default_option("--reach-km", default=50.0, help="Largest miss distance of such an approach.")
@default_option("--least", default=1e-7, help="Least Pc of the events that are printed.")
@json_option
@click.pass_obj
def whatif(
    settings: Settings,
    primary: int,
    burns: tuple[str, ...],
    ephemeris: Path | None,
    goal: float | None,
    window: str | None,
    most: float,
    burn_error: float,
    pointing_error: float,
    catalog: Path | None,
    start: str | None,
    hours: float | None,
    threshold_km: float,
    sigmas: float,
    reach_km: float,
    least: float,
    as_json: bool,
) -> None:
    """Screen a satellite before and after a plan: burns, or an ephemeris. With --goal, also search the least burn.

    States are those of assessments: ephemerides, tracks, else element sets.
    """
    from sda_platform.clock import iso
    from sda_platform.conjunction.planned_trajectory import BurnErrors, Stated, burned
    from sda_platform.conjunction.whatif import compared
    from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS

    if burns and ephemeris:
        raise click.UsageError("give burns or an ephemeris, not both")
    errors = BurnErrors(burn_error / 100, float(np.radians(pointing_error)))
    start_ns = instant(start, "--start") if start else _now_ns(settings, catalog)
    end_ns = start_ns + round(hours * HOUR_NS) if hours else _screened_upto(settings, catalog, start_ns)
    scene = replace(
        _scene(settings, primary, catalog, start_ns, end_ns, threshold_km),
        sigmas=sigmas,
        reach_km=reach_km,
        errors=errors,
    )
    with _progress(scene) as scene:
        plans: list[Any] = []
        if burns:
            plans = [burned(scene.unchanged, [_burn(text) for text in burns], errors)]
        elif ephemeris:
            plans = [Stated(_ephemeris(ephemeris, primary), scene.unchanged)]
        before, *after = scene.encounters_of([scene.unchanged, *plans])
        found: dict[str, Any] = {
            "primary": primary,
            "span": [iso(start_ns), iso(end_ns)],
            "before": [_facts(scene, each) for each in before],
        }
        if after:
            covered = plans[0].span(scene.start_ns, scene.end_ns)
            # What ends with the screened span is no end of the plan.
            begins = covered[0] if covered[0] > scene.start_ns else ALWAYS_NS
            ends = covered[1] if covered[1] < scene.end_ns else FOREVER_NS
            outcomes = compared(before, after[0], (begins, ends))
            found["plan"] = [
                {side: _facts(scene, getattr(o, side)) for side in ("before", "after")} | {"is_planned": o.is_planned}
                for o in outcomes
            ]
            found["plan_covers"] = [iso(time_ns) for time_ns in covered]
        if goal:
            found |= _avoidance(scene, before, window, goal, most)
    if old := _age_warning(scene):
        click.echo(old, err=True)
    for text in [] if catalog else _beyond(settings, primary, scene.end_ns):
        click.echo(text, err=True)
    if as_json:
        print_json(found)
    else:
        print_outcome(found, goal, most, least)


def _avoidance(scene: Any, before: Sequence[Any], window: str | None, goal: float, most: float) -> dict[str, Any]:
    """Return the least burn of a window, or what is in its way."""
    from sda_platform.conjunction.least_burn import Avoidance, least_burn
    from sda_platform.conjunction.whatif import total

    span = [instant(text, "--window") for text in window.split("/", 1)] if window else [scene.start_ns]
    bounds = (span[0], span[1] if len(span) > 1 else span[0] + DAY_NS)
    best = least_burn(scene, before, bounds, goal, most)
    found: dict[str, Any] = {"avoidance": None, "is_burn_needed": best is not None}
    if isinstance(best, Avoidance):
        found["avoidance"] = {
            "burn": asdict(best.burn),
            "dv_m_s": best.dv_m_s,
            "full_screenings": best.screened,
            "total_before": best.total_before,
            "total_after": best.total_after,
            "unaffected": total(before) - best.total_before,
            "after": [_facts(scene, each) for each in best.after],
        }
    elif best is not None:
        found["obstacle"] = {
            "burn": asdict(best.burn),
            "raises_total": best.raises_total,
            **(_facts(scene, best.encounter) or {}),
        }
    return found


def _progress(scene: Any) -> Any:
    """Return the scene with a progress bar on stderr; a search of a catalogue takes half a minute and more."""
    from contextlib import contextmanager

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    @contextmanager
    def shown() -> Iterator[Any]:
        columns, console = (TextColumn("screening"), BarColumn(), TimeElapsedColumn()), PeopleConsole(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("screening", total=None)
            yield replace(scene, report=lambda done, of: progress.update(task, completed=done, total=of))

    return shown()


def _now_ns(settings: Settings, catalog: Path | None) -> int:
    return time.time_ns() if catalog else int(lake_of(settings).clock.now_ns())


def _scene(
    settings: Settings, primary: int, catalog: Path | None, start_ns: int, end_ns: int, threshold_km: float
) -> Any:
    from sda_platform.catalog.orbits import Catalogue
    from sda_platform.catalog.space_weather import SpaceWeatherResource
    from sda_platform.catalog.tables import SATELLITE_CATALOG
    from sda_platform.cli.analysis.screen_catalogue import available_cores, read_elements
    from sda_platform.conjunction.known_states import KnownStates, known_states
    from sda_platform.conjunction.sizes import object_sizes
    from sda_platform.conjunction.whatif import Scene
    from sda_platform.orbits.propagation import Propagator

    sizes = object_sizes(settings.screening.fleet_file, settings.screening.satellite_catalogue)
    if catalog:
        file = read_elements(catalog, start_ns, start_ns + 1)
        known = KnownStates.of_sets(Catalogue(Propagator(file.elements), file.names))
    else:
        lake = lake_of(settings)
        now_ns = lake.clock.now_ns()
        dynamics = SpaceWeatherResource.of(settings).near(now_ns).dynamics()
        known = known_states(lake, dynamics, now_ns, end_ns)
        sizes = sizes.with_table(lake, lake.log(SATELLITE_CATALOG).version())
    rows = known.catalogue.positions([primary])
    if not len(rows):
        raise click.ClickException(f"object {primary} is not in the catalogue")
    own, _ = sizes.radius_m(primary, known.catalogue.object_names[int(rows[0])])
    cores = available_cores()
    return Scene(known, primary, start_ns, end_ns, own, sizes, threshold_km=threshold_km, processes=cores)


def _age_warning(scene: Any) -> str | None:
    from sda_platform.cli.analysis.screen_catalogue import age_warning

    catalogue = scene.known.catalogue
    elements = catalogue.propagator.elements
    count = len(catalogue)
    begin_ns, end_ns = np.full(count, scene.start_ns), np.full(count, scene.end_ns)
    if catalogue.terms is not None:
        begin_ns, end_ns = np.maximum(begin_ns, catalogue.terms.from_ns), np.minimum(end_ns, catalogue.terms.until_ns)
    used = np.flatnonzero(end_ns > begin_ns)
    return age_warning(elements.norad_id[used], elements.epoch_time_ns[used], begin_ns[used], end_ns[used])


def _screened_upto(settings: Settings, catalog: Path | None, start_ns: int) -> int:
    """Return the end of the newest screening; without one, or before ``start_ns``, that of one from there."""
    from sda_platform.conjunction.currency import screened_span

    span = None if catalog else screened_span(lake_of(settings))
    return span[1] if span and span[1] > start_ns else start_ns + round(settings.screening.horizon_h * HOUR_NS)


def _beyond(settings: Settings, primary: int, end_ns: int) -> Iterator[str]:
    """Name the alerts of the satellite whose TCA is after the span: nothing is said of them."""
    from sda_platform.clock import iso
    from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
    from sda_platform.lake.correction_log import current_rows

    log = lake_of(settings).log(CONJUNCTION_ALERTS)
    columns = ["event_id", "sequence", "op", "norad_id_1", "norad_id_2", "tca_time_ns", "risk"]
    for each in current_rows(log.rows(columns), "event_id").sort_by("tca_time_ns").to_pylist():
        if primary in (each["norad_id_1"], each["norad_id_2"]) and each["tca_time_ns"] > end_ns:
            when = iso(each["tca_time_ns"])[:16].replace("T", " ")
            yield f"not screened: alert {each['event_id'][:8]}, {each['risk']}, TCA {when}; --hours screens longer"


def _burn(text: str) -> Any:
    from sda_platform.conjunction.planned_trajectory import Burn

    parts = text.split(",")
    try:
        radial, transverse, normal = (float(part) for part in parts[1:])
    except ValueError:
        raise click.BadParameter(f"{text!r} is not TIME,R,T,N in m/s", param_hint="--burn") from None
    return Burn(instant(parts[0], "--burn"), (radial, transverse, normal))


def _ephemeris(path: Path, primary: int) -> Any:
    from sda_platform.catalog.ephemeris_decoding import decoder, parts_not_used
    from sda_platform.catalog.tables import EPHEMERIDES_FEED
    from sda_platform.formats.segments import describe_segment
    from sda_platform.formats.tabulated_paths import name_line
    from sda_platform.landing.contents import UnreadableContent, read_chunks
    from sda_platform.landing.partner_files import PartnerFileError, identify
    from sda_platform.orbits.ephemerides import Ephemeris

    # The primary is named on the command line, whatever designator or name the file has.
    try:
        file = identify(path, feed=EPHEMERIDES_FEED)
        line = name_line(f"norad-{primary}") if file.first_line else b""
        data = b"".join(read_chunks(path, file.format, lambda _: None, first_line=line))
    except (PartnerFileError, UnreadableContent) as error:
        raise click.ClickException(str(error)) from None
    described = describe_segment(
        data, feed=EPHEMERIDES_FEED, segment_format=file.format, sealed_time_ns=0, sealed_wall_time_ns=0
    )
    rows = decoder(lambda _designator: (primary,))(data, described).to_pylist()
    if len(rows) != 1 or rows[0]["error_kind"]:
        reason = rows[0]["error"] if rows else "it is empty"
        raise click.ClickException(f"{path}: must hold one ephemeris: {reason if len(rows) == 1 else len(rows)}")
    if rows[0]["norad_id"] != primary:
        raise click.ClickException(f"{path}: is of object {rows[0]['norad_id']}, not of {primary}")
    if gaps := parts_not_used(rows[0]):
        raise click.ClickException(f"{path}: must be of one piece: {gaps[0]}")
    return Ephemeris.from_row(rows[0])


def _facts(scene: Any, encounter: Any) -> dict[str, Any] | None:
    from sda_platform.clock import iso

    if encounter is None:
        return None
    catalogue = scene.known.catalogue
    return {
        "norad_id": encounter.norad_id,
        "name": catalogue.object_names[int(catalogue.positions([encounter.norad_id])[0])],
        "tca_utc": iso(encounter.tca_ns),
        "miss_km": encounter.miss_km,
        "miss_sigmas": encounter.sigmas,
        "probability": encounter.probability,
        "primary_state": encounter.states[0],
        "secondary_state": encounter.states[1],
    }

"""`sda whatif`: the risk of one satellite before and after a planned manoeuvre."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table as Grid

from sda_platform.cli.people import console, for_people, instant, lake_of
from sda_platform.settings import Settings

_HOUR_NS = 3_600_000_000_000


@click.command(short_help="Show what a burn or a planned ephemeris does to a satellite's risk.")
@click.option("--primary", type=click.IntRange(1), required=True, help="Catalogue number of the satellite.")
@click.option("--burn", "burns", multiple=True, help="TIME,R,T,N: ISO 8601 and m/s in RTN; may be repeated.")
@click.option("--ephemeris", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A plan as OEM.")
@click.option("--goal", type=click.FloatRange(0, 1, min_open=True), help="Search the least burn that brings Pc below.")
@click.option("--window", help="FROM/TO, ISO 8601: when that burn may be (default: the first 24 hours).")
@click.option("--most", default=1.0, show_default=True, help="Largest burn of the search, m/s.")
@click.option("--catalog", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Default: the lake's.")
@click.option("--start", help="Begin of the span, ISO 8601 (default: mission time).")
@click.option("--hours", default=72.0, show_default=True, help="Length of the span.")
@click.option("--threshold-km", default=5.0, show_default=True, help="Largest miss distance of an approach.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def whatif(
    settings: Settings,
    primary: int,
    burns: tuple[str, ...],
    ephemeris: Path | None,
    goal: float | None,
    window: str | None,
    most: float,
    catalog: Path | None,
    start: str | None,
    hours: float,
    threshold_km: float,
    as_json: bool,
) -> None:
    """Screen a satellite before and after a plan: burns, or an ephemeris. With --goal, also search the least burn."""
    from sda_platform.conjunction.planned_trajectory import burned, planned, unchanged
    from sda_platform.conjunction.whatif import compared, least_burn

    if burns and ephemeris:
        raise click.UsageError("give burns or an ephemeris, not both")
    start_ns = instant(start, "--start") if start else _now_ns(settings, catalog)
    scene = _scene(settings, primary, catalog, start_ns, start_ns + round(hours * _HOUR_NS), threshold_km)
    before = scene.encounters(unchanged(scene.primary))
    found: dict[str, Any] = {"primary": primary, "before": [_facts(scene, each) for each in before]}
    if burns or ephemeris:
        plan = planned(_ephemeris(ephemeris, primary), scene.primary) if ephemeris else None
        path = plan or burned(scene.primary, [_burn(text) for text in burns])
        outcomes = compared(before, scene.encounters(path))
        found["plan"] = [{side: _facts(scene, getattr(o, side)) for side in ("before", "after")} for o in outcomes]
    if goal:
        span = [instant(text, "--window") for text in window.split("/", 1)] if window else [start_ns]
        bounds = (span[0], span[1] if len(span) > 1 else span[0] + 24 * _HOUR_NS)
        best = least_burn(scene, before, bounds, goal, most)
        found["avoidance"] = best and {
            "burn": asdict(best.burn),
            "dv_m_s": best.dv_m_s,
            "full_screenings": best.screened,
            "after": [_facts(scene, each) for each in best.after],
        }
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print(found, goal, most)


def _now_ns(settings: Settings, catalog: Path | None) -> int:
    return time.time_ns() if catalog else int(lake_of(settings).clock.now_ns())


def _scene(
    settings: Settings, primary: int, catalog: Path | None, start_ns: int, end_ns: int, threshold_km: float
) -> Any:
    from sda_platform.catalog.orbits import Catalogue, catalogue_at
    from sda_platform.catalog.tables import ORBITAL_CATALOG
    from sda_platform.cli.screen_catalogue import available_cores, read_elements
    from sda_platform.conjunction.sizes import object_sizes
    from sda_platform.conjunction.whatif import Scene
    from sda_platform.orbits.propagation import Propagator

    if catalog:
        file = read_elements(catalog, start_ns, start_ns + 1)
        known = Catalogue(Propagator(file.elements), file.names)
    else:
        lake = lake_of(settings)
        known = catalogue_at(lake, lake.log(ORBITAL_CATALOG).version())
    rows = np.flatnonzero(known.norad_id == primary)
    if not len(rows):
        raise click.ClickException(f"object {primary} is not in the catalogue")
    sizes = object_sizes(settings.screening.fleet, settings.screening.satellite_catalogue)
    own, _ = sizes.radius_m(primary, known.object_names[int(rows[0])])
    return Scene(known, known.propagator.take(rows[:1]), start_ns, end_ns, threshold_km, own, sizes, available_cores())


def _burn(text: str) -> Any:
    from sda_platform.conjunction.planned_trajectory import Burn

    parts = text.split(",")
    try:
        radial, transverse, normal = (float(part) for part in parts[1:])
    except ValueError:
        raise click.BadParameter(f"{text!r} is not TIME,R,T,N in m/s", param_hint="--burn") from None
    return Burn(instant(parts[0], "--burn"), (radial, transverse, normal))


def _ephemeris(path: Path, primary: int) -> Any:
    from sda_platform.catalog.ephemeris_decoding import decoder
    from sda_platform.catalog.tables import EPHEMERIDES_FEED
    from sda_platform.formats.segments import describe_segment
    from sda_platform.landing.partner_files import identify
    from sda_platform.orbits.ephemerides import Ephemeris

    data, name = path.read_bytes(), identify(path, feed=EPHEMERIDES_FEED).format
    described = describe_segment(
        data, feed=EPHEMERIDES_FEED, segment_format=name, sealed_time_ns=0, sealed_wall_time_ns=0
    )
    # The primary is named on the command line, whatever designator the file has.
    rows = decoder(lambda _designator: (primary,))(data, described).to_pylist()
    if len(rows) != 1 or rows[0]["error_kind"]:
        reason = rows[0]["error"] if rows else "it is empty"
        raise click.ClickException(f"{path}: must hold one ephemeris: {reason if len(rows) == 1 else len(rows)}")
    return Ephemeris.from_row(rows[0])


def _facts(scene: Any, encounter: Any) -> dict[str, Any] | None:
    from sda_platform.clock import iso

    if encounter is None:
        return None
    return {
        "norad_id": int(scene.catalogue.norad_id[encounter.row]),
        "name": scene.catalogue.object_names[encounter.row],
        "tca_utc": iso(encounter.tca_ns),
        "miss_km": encounter.miss_km,
        "probability": encounter.probability,
    }


def _print(found: dict[str, Any], goal: float | None, most: float) -> None:
    pairs = found.get("plan") or [{"before": each, "after": None} for each in found["before"]]
    _grid("before and after the plan" if "plan" in found else "without a plan", pairs)
    if goal is None:
        return
    best = found["avoidance"]
    if best is None:
        console.print(f"no burn of at most {most:g} m/s was found that brings every Pc to {goal:g}")
        return
    from sda_platform.clock import iso

    when = iso(best["burn"]["time_ns"])
    parts = ", ".join(f"{part:+.4f}" for part in best["burn"]["dv_rtn_m_s"])
    console.print(f"least burn: {best['dv_m_s']:.4f} m/s at {when}, RTN {parts} m/s", markup=False)
    _grid("after this burn", [{"before": None, "after": each} for each in best["after"]])


def _grid(title: str, pairs: list[dict[str, Any]]) -> None:
    grid = Grid("secondary", "TCA (UTC)", "miss km", "Pc", "miss after", "Pc after", box=None, title=title)
    for pair in pairs:
        shown = pair["before"] or pair["after"]
        cells = [
            (f"{each['miss_km']:.3f}", f"{each['probability']:.2e}") if each else ("–", "–") for each in pair.values()
        ]
        name = f"{shown['norad_id']} {shown['name']}"
        grid.add_row(name, shown["tca_utc"][:19].replace("T", " "), *cells[0], *cells[1])
    console.print(grid if pairs else f"{title}: no approach", markup=False)

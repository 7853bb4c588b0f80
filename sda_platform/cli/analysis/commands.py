"""Commands for analysts that need no alert: screening, passes, and the probability of a message."""

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from sda_platform.cli.grammar import FILE, PATH, POSITIVE, default_option, instant, json_option, lists_rows, positive
from sda_platform.cli.listing import Output, number, print_facts, word
from sda_platform.cli.people import console, lake_of
from sda_platform.setting_sections import ScreeningSettings
from sda_platform.settings import Settings

_SCREENING = ScreeningSettings()
_PASS_COLUMNS: Final = (
    number("object", "norad_id"),
    word("rise (UTC)", lambda each: each["aos_utc"][:-5].replace("T", " ")),
    word("culmination", lambda each: each["tca_utc"][:-5].replace("T", " ")),
    word("set", lambda each: each["los_utc"][:-5].replace("T", " ")),
    number("elevation", lambda each: f"{each['max_elevation_deg']:.1f}°"),
    number("age of the set", lambda each: f"{each['elements_age_days']:.1f} days"),
)


@click.command(short_help="Find every close approach in a file of element sets.")
@click.argument("file", required=False, type=PATH)
@click.option("--catalog", type=PATH, hidden=True)
@default_option("--start", default="now", help="Start of the search.")
@positive("--hours", _SCREENING.horizon_h, "Length of the search.")
@positive("--threshold-km", _SCREENING.threshold_km, "Greatest miss distance.")
@click.option(
    "--fleet",
    type=PATH,
    help="CSV of primaries (norad_id,name,operator), screened against all (default: all against all).",
)
@default_option("--fleet-internal/--no-fleet-internal", default=True, help="Report approaches within the fleet.")
@click.option("--volumes", default="", help="Volumes by regime instead of the threshold: a CSV, or `standard`.")
@click.option(
    "--sigmas",
    type=POSITIVE,
    help="Also report farther approaches whose miss is at most so many sigmas.",
)
@positive("--reach-km", _SCREENING.reach_km, "Greatest miss distance that --sigmas reports.")
@click.option("--processes", type=click.IntRange(min=1), help="Number of processes (default: one per core).")
@click.option("--out", type=FILE, help="Every approach: .csv or .parquet (default: print those with the largest Pc).")
def screen(
    file: Path | None,
    catalog: Path | None,
    start: str,
    hours: float,
    threshold_km: float,
    fleet: Path | None,
    fleet_internal: bool,
    volumes: str,
    sigmas: float | None,
    reach_km: float,
    processes: int | None,
    out: Path | None,
) -> None:
    """Find every close approach between objects of FILE, element sets in OMM (.csv .json .kvn .xml) or TLE.

    Each has names, miss, radial, in-track and cross-track parts, ages, and Pc. Needs no running platform.
    """
    from sda_platform.cli.analysis.screen import Search, run_screening

    catalog = catalog or file
    if catalog is None:
        raise click.UsageError("Missing argument 'FILE'.")
    if fleet is None and not fleet_internal:
        raise click.UsageError("--no-fleet-internal needs --fleet")
    is_reach_given = click.get_current_context().get_parameter_source("reach_km") is ParameterSource.COMMANDLINE
    if is_reach_given and not sigmas:
        raise click.UsageError("--reach-km needs --sigmas")
    if sigmas and volumes:
        raise click.UsageError("--sigmas belongs to a threshold, not to --volumes")
    search = Search(
        instant(start, "--start"),
        hours,
        threshold_km,
        volumes,
        fleet,
        fleet_internal,
        sigmas or 0.0,
        reach_km,
    )
    run_screening(catalog, search, processes, out, console)


@click.command(short_help="List when objects pass over a site.")
@click.option("--catalog", type=PATH, help="Element sets: OMM or TLE (default: the catalogue of the lake).")
@click.option(
    "--lat", "latitude_deg", required=True, type=click.FloatRange(-90, 90), help="Latitude, degrees north, WGS84."
)
@click.option(
    "--lon", "longitude_deg", required=True, type=click.FloatRange(-180, 360), help="Longitude, degrees east."
)
@default_option("--alt-m", "altitude_m", type=click.FloatRange(-500, 9000), default=0.0, help="Altitude, metres.")
@default_option("--start", default="now", help="Start of the search.")
@default_option(
    "--hours", type=click.FloatRange(min=0, min_open=True, max=168), default=24.0, help="Length of the search."
)
@default_option(
    "--min-elevation", "mask_deg", type=click.FloatRange(-5, 90), default=10.0, help="Least elevation, degrees."
)
@click.option("--object", "objects", type=int, multiple=True, help="Only this catalogue number; may be repeated.")
@lists_rows()
@click.pass_obj
def passes(
    settings: Settings,
    catalog: Path | None,
    latitude_deg: float,
    longitude_deg: float,
    altitude_m: float,
    start: str,
    hours: float,
    mask_deg: float,
    objects: tuple[int, ...],
    output: Output,
) -> None:
    """List when objects pass over a site: rise, culmination and set above an elevation."""
    from sda_platform.cli.analysis.passes import ObserverSite, passes_over

    site = ObserverSite(latitude_deg, longitude_deg, altitude_m, mask_deg)
    start_ns = instant(start, "--start")
    found = passes_over(site, start_ns, hours, catalog or lake_of(settings), objects)
    output.show(found.passes, _PASS_COLUMNS, nothing="no pass")
    output.note([*([found.old] if found.old else []), *found.ends])


@click.command(short_help="Compute the probability of collision of a message.")
@click.option("--cdm", required=True, type=PATH, help="Conjunction data message (CCSDS 508.0), KVN or XML.")
@click.option(
    "--hbr-m",
    type=POSITIVE,
    help="Combined hard-body radius, metres (default: that of the message, or by object type).",
)
@json_option
def pc(cdm: Path, hbr_m: float | None, as_json: bool) -> None:
    """Compute the probability of collision of a conjunction data message, by the best available method."""
    from sda_platform.cli.analysis.pc import risk_lines, risk_of_file

    found = risk_of_file(cdm, hbr_m)
    print_facts(as_json, found.to_dict(), risk_lines(found))

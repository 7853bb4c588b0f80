"""Commands for conjunction analysts: alerts, screening, passes, and messages."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.table import Table as Grid

from sda_platform.cli.people import POSITIVE, console, for_people, instant, lake_of, positive
from sda_platform.setting_sections import ScreeningSettings
from sda_platform.settings import Settings

_SCREENING = ScreeningSettings()


@click.command(short_help="List the active alerts, highest level first.")
@click.option(
    "--limit", type=click.IntRange(1), default=40, show_default=True, help="Alerts to show; every red one is shown."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which has all.")
@click.pass_obj
@for_people
def alerts(settings: Settings, limit: int, as_json: bool) -> None:
    """List the active alerts of the subscriber: highest level first, then largest Pc, then nearest TCA.

    The first lines state what the list rests on: the last screening, its span, the age of the element sets, and
    whether the platform runs. With --json, they go to the standard error.
    """
    from sda_platform.cli.alerts import alert_grid, currency_lines, current_alerts

    found = current_alerts(settings, with_origins=True)
    for line in currency_lines(settings):
        click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps([asdict(alert) for alert in found], indent=2))
    else:
        console.print(alert_grid(found, limit))


@click.command(short_help="Follow an alert back to its raw records.")
@click.argument("alert")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--timeline",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an HTML page with the times of its batches, from reception to the subscriber.",
)
@click.option("--otlp", help="Send the same as an OpenTelemetry trace to this address, such as http://host:4318.")
@click.pass_obj
@for_people
def trace(settings: Settings, alert: str, as_json: bool, page: Path | None, otlp: str | None) -> None:
    """Follow ALERT (an id or its beginning) back to its segments and raw records.

    `sda impact` goes the other way: from a segment, a sensor or an element set to the alerts that rest on it.
    """
    from sda_platform.cli.alerts import trace_lines
    from sda_platform.cli.timeline import send_timelines, write_timelines
    from sda_platform.observability.trace import trace_alert

    found = trace_alert(lake_of(settings), alert)
    if page:
        write_timelines(lake_of(settings), found, page)
    if otlp or settings.otlp_endpoint:
        send_timelines(lake_of(settings), found, otlp or settings.otlp_endpoint)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, default=str))
    else:
        for line in trace_lines(found):
            console.print(line)


@click.command(short_help="Show an alert and its history.")
@click.argument("alert")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a PNG with the history of risk and miss distance, and the geometry.",
)
@click.pass_obj
@for_people
def show(settings: Settings, alert: str, plot: Path | None) -> None:
    """Show ALERT (an id or its beginning): objects, TCA, miss distance, risk, and their history."""
    from sda_platform.cli.show import alert_lines, stated_lines, write_picture
    from sda_platform.conjunction.data_origins import data_origins
    from sda_platform.conjunction.history import EventHistory
    from sda_platform.conjunction.resource import policy_in_force
    from sda_platform.observability.trace import trace_alert

    lake = lake_of(settings)
    found = trace_alert(lake, alert)
    if not found.assessments and not plot:
        for line in stated_lines(found):
            console.print(line)
        return
    history = EventHistory.of_correction_log(found.assessments, found.messages, policy_in_force(lake))
    for line in alert_lines(found, history, data_origins(lake, [history.last])):
        console.print(line)
    if plot:
        write_picture(history, plot)
        console.print(f"  drawn: {plot}")


@click.command(short_help="Find every close approach in a file of element sets.")
@click.option(
    "--catalog", required=True, type=click.Path(path_type=Path), help="Element sets: OMM (.csv .json .kvn .xml) or TLE."
)
@click.option("--start", required=True, help="Start of the search, ISO 8601, UTC.")
@positive("--hours", _SCREENING.horizon_h, "Length of the search.")
@positive("--threshold-km", _SCREENING.threshold_km, "Greatest miss distance.")
@click.option(
    "--fleet",
    type=click.Path(path_type=Path),
    help="CSV of primaries (norad_id,name,operator), screened against all (default: all against all).",
)
@click.option(
    "--fleet-internal/--no-fleet-internal", default=True, show_default=True, help="Report approaches within the fleet."
)
@click.option(
    "--volumes", default="", help="Boxes or ellipsoids by orbit regime instead of the threshold: a CSV, or `standard`."
)
@click.option(
    "--sigmas",
    type=POSITIVE,
    help="Also report approaches beyond the threshold whose miss is at most so many sigmas of the errors of both sets.",
)
@positive("--reach-km", _SCREENING.reach_km, "Greatest miss distance that --sigmas reports.")
@click.option("--processes", type=click.IntRange(min=1), help="Number of processes (default: one per core).")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Result: .csv or .parquet.")
@for_people
def screen(
    catalog: Path,
    start: str,
    hours: float,
    threshold_km: float,
    fleet: Path | None,
    fleet_internal: bool,
    volumes: str,
    sigmas: float | None,
    reach_km: float,
    processes: int | None,
    out: Path,
) -> None:
    """Find every close approach between objects of a file of element sets. Needs no running platform."""
    from sda_platform.cli.screen import Search, run_screening

    if fleet is None and not fleet_internal:
        raise click.UsageError("--no-fleet-internal needs --fleet")
    is_reach_given = click.get_current_context().get_parameter_source("reach_km") is ParameterSource.COMMANDLINE
    if is_reach_given and not sigmas:
        raise click.UsageError("--reach-km needs --sigmas")
    if sigmas and volumes:
        raise click.UsageError("--sigmas belongs to a threshold, not to --volumes")
    search = Search(
        instant(start, "--start"), hours, threshold_km, volumes, fleet, fleet_internal, sigmas or 0.0, reach_km
    )
    run_screening(catalog, search, processes, out, console)


@click.command(short_help="List when objects pass over a site.")
@click.option(
    "--catalog", type=click.Path(path_type=Path), help="Element sets: OMM or TLE (default: the catalogue of the lake)."
)
@click.option(
    "--lat", "latitude_deg", required=True, type=click.FloatRange(-90, 90), help="Latitude, degrees north, WGS84."
)
@click.option(
    "--lon", "longitude_deg", required=True, type=click.FloatRange(-180, 360), help="Longitude, degrees east."
)
@click.option(
    "--alt-m", "altitude_m", type=click.FloatRange(-500, 9000), default=0.0, show_default=True, help="Altitude, metres."
)
@click.option("--start", required=True, help="Start of the search, ISO 8601, UTC.")
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True, max=168),
    default=24.0,
    show_default=True,
    help="Length of the search.",
)
@click.option(
    "--min-elevation",
    "mask_deg",
    type=click.FloatRange(-5, 90),
    default=10.0,
    show_default=True,
    help="Least elevation, degrees.",
)
@click.option("--object", "objects", type=int, multiple=True, help="Only this catalogue number; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
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
    as_json: bool,
) -> None:
    """List when objects pass over a site: rise, culmination and set above an elevation."""
    from sda_platform.cli.passes import ObserverSite, passes_over

    site = ObserverSite(latitude_deg, longitude_deg, altitude_m, mask_deg)
    start_ns = instant(start, "--start")
    found = passes_over(site, start_ns, hours, catalog or lake_of(settings), objects)
    for line in [*([found.old] if found.old else []), *found.ends]:
        click.echo(line, err=True)
    if as_json:
        click.echo(json.dumps(found.passes, indent=2))
        return
    grid = Grid("object", "rise (UTC)", "culmination", "set", "elevation", "age of the set", box=None)
    for each in found.passes:
        instants = [each[name][:-5].replace("T", " ") for name in ("aos_utc", "tca_utc", "los_utc")]
        age = f"{each['elements_age_days']:.1f} days"
        grid.add_row(str(each["norad_id"]), *instants, f"{each['max_elevation_deg']:.1f}°", age)
    console.print(grid)


@click.command(short_help="List or write the schedule of the sensors.")
@click.option("--sensor", "source_id", help="Only this sensor, by its id.")
@click.option(
    "--format",
    "encoding",
    type=click.Choice(["table", "csv", "json", "sensorkit"]),
    default="table",
    show_default=True,
    help="sensorkit: tasks for the observatory software SensorKit.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Directory for one file per sensor, not a table."
)
@click.pass_obj
@for_people
def schedule(settings: Settings, source_id: str | None, encoding: str, out: Path | None) -> None:
    """List the scheduled observations that have not ended, or write them as files."""
    from sda_platform.cli.schedule import upcoming, write_files, written

    lake = lake_of(settings)
    rows = upcoming(lake, source_id, after_ns=lake.clock.now_ns())
    if out is not None:
        if encoding == "table":
            raise click.UsageError("--out needs --format csv, json or sensorkit")
        for path in write_files(out, lake, rows, encoding):
            console.print(f"written: {path}")
    elif encoding != "table":
        click.echo(written(lake, rows, encoding).decode(), nl=False)
    else:
        grid = Grid("sensor", "start (UTC)", "end", "object", "class", "reason", "elevation", box=None)
        for row in rows:
            times = [row[name][:-5].replace("T", " ") for name in ("start_utc", "end_utc")]
            grid.add_row(
                row["source_id"], times[0], times[1][11:], str(row["norad_id"]), str(row["priority_class"]),
                row["reason"], f"{row['max_elevation_deg']:.0f}°",
            )  # fmt: skip
        console.print(grid if rows else "no observation is scheduled")


@click.command(short_help="Compute the probability of collision of a message.")
@click.option(
    "--cdm", required=True, type=click.Path(path_type=Path), help="Conjunction data message (CCSDS 508.0), KVN or XML."
)
@click.option(
    "--hbr-m",
    type=POSITIVE,
    help="Combined hard-body radius, metres (default: that of the message, or by object type).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@for_people
def pc(cdm: Path, hbr_m: float | None, as_json: bool) -> None:
    """Compute the probability of collision of a conjunction data message, by the best available method."""
    from sda_platform.cli.pc import risk_lines, risk_of_file

    found = risk_of_file(cdm, hbr_m)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        for line in risk_lines(found):
            console.print(line)


@click.command(short_help="Write the conjunction data message of an alert.")
@click.argument("alert")
@click.option(
    "--format", "encoding", type=click.Choice(["kvn", "xml"]), default="kvn", show_default=True, help="Encoding."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File (default: standard output).")
@click.pass_obj
@for_people
def cdm(settings: Settings, alert: str, encoding: Any, out: Path | None) -> None:
    """Write the conjunction data message (CCSDS 508.0) of ALERT (an id or its beginning), as it was assessed."""
    from sda_platform.cli.cdm import alert_message
    from sda_platform.conjunction.fleet import protected_fleet

    path = settings.screening.fleet
    fleet = protected_fleet(Path(path) if path else None)
    message = alert_message(lake_of(settings), alert, encoding, fleet)
    if out:
        out.write_bytes(message)
        console.print(f"written: {out}")
    else:
        click.echo(message.decode(), nl=False)

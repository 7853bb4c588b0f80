"""`sda`: the command line. A command parses its arguments, calls a module and prints the result.

A failure that the user can correct gives one line and exit code 1. A wrong use of a command gives its usage and exit
code 2.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table as Grid

from sda_platform.cli.catalog import catalog
from sda_platform.cli.people import console as _console
from sda_platform.cli.people import for_people as _for_people
from sda_platform.cli.people import instant as _instant
from sda_platform.cli.people import lake_of as _lake
from sda_platform.settings import Settings, UnknownSetting

_SCENARIOS = ("nominal", "fragmentation", "outage")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home", type=click.Path(path_type=Path), help="Home directory of the platform (default: SDA_HOME, or var)."
)
@click.version_option(package_name="sda-platform", message="sda-platform %(version)s")
@click.pass_context
def main(context: click.Context, home: Path | None) -> None:
    """Turn sensor data about objects in orbit into conjunction alerts, each delivered exactly once."""
    try:
        context.obj = Settings(home=home) if home else Settings()
    except ValidationError as error:
        wrong = "; ".join(f"SDA_{str(e['loc'][0]).upper()}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise click.ClickException(f"a setting cannot be used: {wrong}") from None
    except UnknownSetting as error:
        raise click.ClickException(str(error)) from None


@main.command(short_help="Run the platform.")
@click.pass_obj
@_for_people
def up(settings: Settings) -> None:
    """Run the platform until Ctrl-C: Spark engine, Dagster webserver and daemon.

    It processes what lands, and lands nothing itself.
    """
    from sda_platform.runtime.running import run_platform

    run_platform(settings, _console)


@main.command(short_help="Serve the catalogue over HTTP.")
@click.option("--host", help="Address of the server, which has no login (default: SDA_SERVING_HOST, or 127.0.0.1).")
@click.option("--port", type=click.IntRange(1, 65535), help="Port (default: SDA_SERVING_PORT, or 3100).")
@click.pass_obj
@_for_people
def serve(settings: Settings, host: str | None, port: int | None) -> None:
    """Serve the catalogue over HTTP: objects, history, states, conjunctions, alerts; /openapi.json describes it."""
    from sda_platform.runtime.serve import run_endpoint

    run_endpoint(settings, host=host or settings.serving_host, port=port or settings.serving_port)


@main.command(short_help="Show the platform with one day of real orbits.")
@click.option("--once", is_flag=True, help="Exit when the alerts are delivered: 0, or 1 and the reason.")
@click.option("--scenario", type=click.Choice(_SCENARIOS), default="nominal", show_default=True, help="What happens.")
@click.option("--seed", type=int, default=20241101, show_default=True, help="Seed of the simulation.")
@click.option("--minutes", type=float, default=10.0, show_default=True, help="Mission time to simulate at once.")
@click.pass_obj
@_for_people
def demo(settings: Settings, once: bool, scenario: str, seed: int, minutes: float) -> None:
    """Show the platform with one day of real orbits, then serve the UI until Ctrl-C.

    It empties <home>/demo, screens 26,834 objects, simulates observations of them, and delivers the alerts.
    """
    from sda_platform.cli.demo import Demo

    sys.exit(Demo(settings, _console, scenario=scenario, seed=seed, minutes=minutes).run(once=once))


@main.command(short_help="Land files: verify them and seal them as segments.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--feed", help="Landing zone (default: that of the format).")
@click.option("--format", "segment_format", help="Segment format, if the file ending does not determine it.")
@click.option("--complete", is_flag=True, help="Accept a file whose last record has no end.")
@click.pass_obj
@_for_people
def land(
    settings: Settings, files: tuple[Path, ...], feed: str | None, segment_format: str | None, complete: bool
) -> None:
    """Land FILES: verify them, and seal them as segments of a landing zone.

    Files may have any size and may be compressed. Landing a file again continues where it stopped, or does nothing.
    """
    from sda_platform.clock import MissionClock
    from sda_platform.landing.lander import Lander

    clock = MissionClock.load(settings.home)
    for path in files:
        with _reading(path) as report:
            lander = Lander(settings.landing_uri, clock, segment_max_bytes=settings.segment_max_bytes, report=report)
            done = lander.land(path, feed=feed, segment_format=segment_format, is_complete=complete)
        if not done.records:
            verdict = "it has no records"
        elif not done.segments:
            verdict = "nothing to do: these bytes were landed before"
        elif len(done.segments) == 1:
            verdict = f"{done.records:,} records in {done.segments[0]}"
        else:
            verdict = f"{done.records:,} records; {len(done.segments):,} segments, the last is {done.segments[-1]}"
        _console.print(f"{path} → {done.zone}: {verdict}")


@contextmanager
def _reading(path: Path) -> Iterator[Callable[[str, int], None]]:
    """A bar for the reading of a file; it goes away when the file is read."""
    with Progress(console=_console, transient=True, disable=not _console.is_terminal) as bar:
        task = bar.add_task("", total=path.stat().st_size if path.is_file() else None)
        yield lambda stage, position: bar.update(task, description=f"{stage} {path.name}", completed=position)


@main.command(short_help="Receive data of sensors and partners.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="File of sources (default: SDA_COLLECT, or collect.toml in the home).",
)
@click.pass_obj
@_for_people
def collect(settings: Settings, config: Path | None) -> None:
    """Receive data of sensors and partners until Ctrl-C or SIGTERM. `sda up` does this if collect.toml exists."""
    from sda_platform.edge.service import run_collector

    sys.exit(run_collector(config or settings.collect_path, landing_root=settings.landing_uri, home=settings.home))


@main.command(short_help="List the sources of the running collector.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def sources(settings: Settings, as_json: bool) -> None:
    """List the sources of the running collector: state, rate, last record, dropped records."""
    from sda_platform.cli.sources import read_report, source_grid

    report = read_report(settings.home)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _console.print(source_grid(report))


@main.command(short_help="List tables, landing zones, dead letters and failures.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def status(settings: Settings, as_json: bool) -> None:
    """List tables, landing zones, dead letters, red tables and failures."""
    from sda_platform.observability.status import platform_status

    found = platform_status(_lake(settings), settings.landing_uri, orphan_grace_s=settings.intake.orphan_grace_s)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        _show_status(settings, found)


@main.command(short_help="Accept the findings that make a table red.")
@click.argument("table")
@click.option("--reason", default="", help="Why consumers may continue; stored with the decision.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def acknowledge(settings: Settings, table: str, reason: str, as_json: bool) -> None:
    """Accept the findings that make TABLE (or all) red, so that its consumers continue.

    `sda status` lists the findings. A finding that grows worse is red again.
    """
    from sda_platform.observability.red_tables import acknowledge as accept
    from sda_platform.observability.red_tables import acknowledgement_lines

    accepted = accept(_lake(settings), table, reason)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in accepted], indent=2))
    else:
        for line in acknowledgement_lines(table, accepted):
            _console.print(line, markup=False)


@main.command(short_help="Verify every commit and data file of the lake.")
@click.option(
    "--deep", is_flag=True, help="Read every column of every file, and compare consumed segments with the tables."
)
@click.option(
    "--repair", is_flag=True, help="Repair as `sda up` does; refused while a platform uses the home or the lake."
)
@click.pass_obj
@_for_people
def verify(settings: Settings, deep: bool, repair: bool) -> None:
    """Verify that every commit and data file of the lake is as it was written.

    Exit code 1 means damage.
    """
    from sda_platform.recovery.examination import Depth
    from sda_platform.runtime import verification
    from sda_platform.runtime.platform_home import take_locks

    depth = Depth.COLUMNS if deep else Depth.FOOTERS
    with take_locks(settings.home.absolute(), settings.lake_uri) if repair else nullcontext():
        findings = verification.verify(settings, depth, repair=repair)
    for line in verification.lines(findings):
        _console.print(line)
    sys.exit(int(any(finding.outcome == "damaged" for finding in findings)))


@main.command(short_help="List the active alerts, highest risk first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def alerts(settings: Settings, as_json: bool) -> None:
    """List the active alerts of the subscriber, highest risk first."""
    from sda_platform.cli.alerts import alert_grid, current_alerts

    found = current_alerts(settings)
    if as_json:
        click.echo(json.dumps([asdict(alert) for alert in found], indent=2))
    else:
        _console.print(alert_grid(found))


@main.command(short_help="Follow an alert back to its raw records.")
@click.argument("alert")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def trace(settings: Settings, alert: str, as_json: bool) -> None:
    """Follow ALERT (an id or its beginning) back to its segments and raw records."""
    from sda_platform.cli.alerts import trace_lines
    from sda_platform.observability.trace import trace_alert

    found = trace_alert(_lake(settings), alert)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2, default=str))
    else:
        for line in trace_lines(found):
            _console.print(line)


@main.command(short_help="Show an alert and its history.")
@click.argument("alert")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a PNG with the history of risk and miss distance, and the geometry.",
)
@click.pass_obj
@_for_people
def show(settings: Settings, alert: str, plot: Path | None) -> None:
    """Show ALERT (an id or its beginning): objects, TCA, miss distance, risk, and their history."""
    from sda_platform.cli.show import alert_lines, write_picture
    from sda_platform.observability.trace import trace_alert

    found = trace_alert(_lake(settings), alert)
    for line in alert_lines(found):
        _console.print(line)
    if plot:
        write_picture(found, plot)
        _console.print(f"  drawn: {plot}")


@main.command(short_help="Recompute a table and compare it bit for bit.")
@click.argument("table")
@click.option(
    "--from-sequence", type=click.IntRange(1), default=1, help="First commit (default: the first of the table)."
)
@click.option("--to-sequence", type=click.IntRange(1), default=sys.maxsize, help="Last commit (default: the newest).")
@click.option("--since", help="Only commits with an as_of at or after this mission time, ISO 8601.")
@click.option("--until", help="Only commits with an as_of before this mission time, ISO 8601.")
@click.option(
    "--shadow",
    default="",
    help="Directory of the shadow table, which is kept (default: a temporary one next to the lake).",
)
@click.option("--keep", is_flag=True, help="Keep the shadow table.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@_for_people
def replay(
    settings: Settings,
    table: str,
    from_sequence: int,
    to_sequence: int,
    since: str | None,
    until: str | None,
    shadow: str,
    keep: bool,
    as_json: bool,
) -> None:
    """Recompute TABLE (or all) from its recorded inputs, and compare it with the live table bit for bit.

    Exit code 0 means identical, 1 different. Only a shadow table is written, and nothing is delivered.
    """
    from sda_platform.cli.replay import comparison_grid, difference_lines, run_replay
    from sda_platform.replay.history import Span

    since_ns = _instant(since, "--since") if since else -sys.maxsize
    until_ns = _instant(until, "--until") if until else sys.maxsize
    span = Span(from_sequence, to_sequence, since_ns, until_ns)
    found = run_replay(settings, Console(stderr=True), table, span, shadow=shadow, keep=keep)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        _console.print(comparison_grid(found))
        for line in difference_lines(found):
            _console.print(line, markup=False)
    sys.exit(0 if all(each.is_identical for each in found) else 1)


@main.command(short_help="Return dead letters to their landing zones.")
@click.option("--kind", "kinds", multiple=True, help="Error kind, such as bad_length; may be repeated.")
@click.option("--stage", "stages", multiple=True, help="Table that rejected the record; may be repeated.")
@click.option("--source", "sources", multiple=True, help="Sensor (radar-7) or landing zone (radar); may be repeated.")
@click.option("--since", help="Rejected at or after this mission time, ISO 8601.")
@click.option("--until", help="Rejected at or before this mission time, ISO 8601.")
@click.option("--dry-run", is_flag=True, help="List the dead letters, and reprocess nothing.")
@click.option("--into", help="Other directory of landing zones, for a trial.")
@click.pass_obj
@_for_people
def reprocess(
    settings: Settings,
    kinds: tuple[str, ...],
    stages: tuple[str, ...],
    sources: tuple[str, ...],
    since: str | None,
    until: str | None,
    dry_run: bool,
    into: str | None,
) -> None:
    """Return dead letters to their landing zones, byte for byte; without a filter, all of them.

    A repeated command changes nothing.
    """
    from sda_platform.cli.reprocess import dead_letter_grid, reprocess_dead_letters, verdict
    from sda_platform.dead_letters.reprocessing import DeadLetterFilter

    chosen = DeadLetterFilter(
        frozenset(kinds),
        frozenset(stages),
        frozenset(sources),
        since_ns=_instant(since, "--since") if since else None,
        until_ns=_instant(until, "--until") if until else None,
    )
    found = reprocess_dead_letters(_lake(settings), settings.landing_uri, chosen, into=into, dry_run=dry_run)
    _console.print(dead_letter_grid(found.going_back))
    for line in verdict(found):
        _console.print(line, markup=False)


@main.command(short_help="Write a simulated world as segments, with its truth.")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--scenario", type=click.Choice(_SCENARIOS), default="nominal", show_default=True, help="What happens.")
@click.option("--start", default="2024-11-01T00:00:00Z", show_default=True, help="First mission time, ISO 8601.")
@click.option("--minutes", type=float, default=5.0, show_default=True, help="Mission time to simulate.")
@click.option("--seed", type=int, default=20241101, show_default=True, help="Seed of the simulation.")
@_for_people
def simulate(directory: Path, scenario: str, start: str, minutes: float, seed: int) -> None:
    """Write a simulated world as segments, with its truth, into DIRECTORY."""
    from sda_platform.cli.demo import write_simulation

    start_ns = _instant(start, "--start")
    count = write_simulation(directory, scenario, start_ns=start_ns, minutes=minutes, seed=seed)
    _console.print(f"{count} segments and the truth are in {directory}")


@main.command(short_help="Send simulated observations to the running collector.")
@click.option(
    "--scenario", type=click.Choice([*_SCENARIOS, "burst"]), default="nominal", show_default=True, help="What happens."
)
@click.option("--minutes", type=float, default=3.0, show_default=True, help="Mission time to simulate.")
@click.option("--seed", type=int, default=20241101, show_default=True, help="Seed of the simulation.")
@click.pass_obj
@_for_people
def feed(settings: Settings, scenario: str, minutes: float, seed: int) -> None:
    """Send simulated observations to the running collector over real sockets; `burst`: radar tenfold for a third."""
    from sda_platform.cli.feeding import feed_collector

    feed_collector(settings, _console, scenario=scenario, minutes=minutes, seed=seed)


@main.command(short_help="Find every close approach in a file of element sets.")
@click.option(
    "--catalog", required=True, type=click.Path(path_type=Path), help="Element sets: OMM (.csv .json .kvn .xml) or TLE."
)
@click.option("--start", required=True, help="Start of the search, ISO 8601, UTC.")
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    default=168.0,
    show_default=True,
    help="Length of the search.",
)
@click.option(
    "--threshold-km",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Greatest miss distance.",
)
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
@click.option("--processes", type=click.IntRange(min=1), help="Number of processes (default: one per core).")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Result: .csv or .parquet.")
@_for_people
def screen(
    catalog: Path,
    start: str,
    hours: float,
    threshold_km: float,
    fleet: Path | None,
    fleet_internal: bool,
    volumes: str,
    processes: int | None,
    out: Path,
) -> None:
    """Find every close approach between objects of a file of element sets. Needs no running platform."""
    from sda_platform.cli.screen import Search, run_screening

    search = Search(_instant(start, "--start"), hours, threshold_km, volumes, fleet, fleet_internal)
    if fleet is None and not fleet_internal:
        raise click.UsageError("--no-fleet-internal needs --fleet")
    run_screening(catalog, search, processes, out, _console)


@main.command(short_help="List when objects pass over a site.")
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
@_for_people
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
    from sda_platform.cli.passes import Site, passes_over

    site = Site(latitude_deg, longitude_deg, altitude_m, mask_deg)
    start_ns = _instant(start, "--start")
    found = passes_over(site, start_ns, hours, catalog=catalog, lake=_lake(settings), objects=objects)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    grid = Grid("object", "rise (UTC)", "culmination", "set", "elevation", box=None)
    for each in found:
        instants = [each[name][:-5].replace("T", " ") for name in ("aos_utc", "tca_utc", "los_utc")]
        grid.add_row(str(each["norad_id"]), *instants, f"{each['max_elevation_deg']:.1f}°")
    _console.print(grid)


@main.command(short_help="Compute the probability of collision of a message.")
@click.option(
    "--cdm", required=True, type=click.Path(path_type=Path), help="Conjunction data message (CCSDS 508.0), KVN or XML."
)
@click.option(
    "--hbr-m",
    type=click.FloatRange(min=0, min_open=True),
    help="Combined hard-body radius, metres (default: that of the message, or by object type).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_for_people
def pc(cdm: Path, hbr_m: float | None, as_json: bool) -> None:
    """Compute the probability of collision of a conjunction data message, by the best available method."""
    from sda_platform.cli.pc import risk_lines, risk_of_file

    found = risk_of_file(cdm, hbr_m)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        for line in risk_lines(found):
            _console.print(line, markup=False)


@main.command(short_help="Convert a file to another format.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--to", "target", required=True, help="The format: kvn, xml, csv, json, or its full name (oem-xml, tle).")
@click.option("--from", "source", help="The format of FILE, if neither its ending nor its content determines it.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File (default: standard output).")
@click.option("--skip-bad", is_flag=True, help="Leave out records that cannot be decoded, and list them.")
@_for_people
def convert(file: Path, target: str, source: str | None, out: Path | None, skip_bad: bool) -> None:
    """Convert FILE, which may be compressed, to another format.

    It may hold element sets (OMM, TLE), ephemerides (OEM), orbit parameters (OPM), tracking data (TDM) or conjunction
    data messages (CDM).
    """
    from sda_platform.cli.convert import convert_file

    done = convert_file(file, target, source=source, skip_bad=skip_bad)
    for reason in done.refused:
        click.echo(f"{file}: left out: {reason}", err=True)
    if out:
        out.write_bytes(done.data)
        _console.print(f"{done.records:,} records written: {out}", markup=False)
    else:
        click.echo(done.data, nl=False)


@main.command(short_help="Write the conjunction data message of an alert.")
@click.argument("alert")
@click.option(
    "--format", "encoding", type=click.Choice(["kvn", "xml"]), default="kvn", show_default=True, help="Encoding."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File (default: standard output).")
@click.pass_obj
@_for_people
def cdm(settings: Settings, alert: str, encoding: Any, out: Path | None) -> None:
    """Write the conjunction data message (CCSDS 508.0) of ALERT (an id or its beginning), as it was assessed."""
    from sda_platform.cli.cdm import alert_message

    message = alert_message(_lake(settings), alert, encoding)
    if out:
        out.write_bytes(message)
        _console.print(f"written: {out}", markup=False)
    else:
        click.echo(message.decode(), nl=False)


def _show_status(settings: Settings, found: Any) -> None:
    from sda_platform.landing.decoding import FATES
    from sda_platform.observability.status import table_lines
    from sda_platform.runtime.platform_home import running_platform
    from sda_platform.runtime.verification import last_verification

    state = running_platform(settings.home.absolute())
    where = f"running, UI at {state['addresses']['webserver']}" if state else "not running (start it with `sda up`)"
    _console.print(f"platform at {settings.home.absolute()}: {where}\nmission time {found.mission_time_utc}")
    _console.print(f"lake {last_verification(settings.home)}\n")
    grid = Grid("table", "rows", "version", "committed", "watermark", "backlog", "last run", box=None)
    for column in grid.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in {"rows", "version", "committed", "backlog"} else "left"
    for line in table_lines(found.tables):
        grid.add_row(*line)
    _console.print(grid)
    zones = Grid("\nlanding zone", "\npending", "\nbytes", "\noldest", *(f"{fate}\n(24 h)" for fate in FATES), box=None)
    for zone in found.zones:
        backlog = zone.backlog
        oldest = "–" if backlog.oldest_s is None else f"{backlog.oldest_s:,.0f} s"
        fates = [f"{getattr(zone, fate):,}" for fate in FATES]
        zones.add_row(zone.zone, f"{backlog.segments:,}", f"{backlog.bytes:,}", oldest, *fates)
    _console.print(zones)
    if found.letters:
        letters = Grid("\ndead letters (24 h)", "\nkind", "\nclass", "\nmostly from", "\nnewest", box=None)
        for each in found.letters:
            letters.add_row(f"{each.letters:,}", each.kind, each.disposition, each.source, each.newest_utc)
        _console.print(letters)
    for orphan in found.orphans:
        _console.print(f"orphan: {orphan}")
    for each in found.red:
        _console.print(f"[red]red:[/red] {escape(str(each))}\n  {escape(each.remedy)}")
    for failure in found.failures:
        _console.print(f"[red]failure:[/red] {failure}")


main.add_command(catalog)

if __name__ == "__main__":
    main()

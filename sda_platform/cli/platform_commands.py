"""Commands that run the platform and watch over it."""

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from sda_platform.cli.people import SCENARIOS, STORY, console, for_people, lake_of, require_used
from sda_platform.settings import Settings

# In this world no approach but the story's becomes red when sensors observe its objects.
_DEMO_SEED = 20241108


@click.command(short_help="Run the platform.")
@click.pass_obj
@for_people
def up(settings: Settings) -> None:
    """Run the platform until Ctrl-C: Spark engine, Dagster webserver and daemon, and the catalogue's lookup endpoint.

    It processes what lands. It runs the collectors too where collect.toml exists.
    """
    from sda_platform.runtime.running import run_platform

    run_platform(settings, console)


@click.command(short_help="Run one process of the platform, for containers.")
@click.argument("name")
@click.option("--check", is_flag=True, help="Only ask whether the running one answers: exit code 0, or 1.")
@click.pass_obj
@for_people
def service(settings: Settings, name: str, check: bool) -> None:
    """Run one process of the platform in the foreground; `sda up` runs all of them.

    NAME is engine, code-server, run-workers, daemon, webserver or watchdog. They share the settings and the home.
    `verification` verifies and repairs the lake before they start, and ends.
    """
    from sda_platform.runtime.separate import become, separate_service

    if check:
        sys.exit(0 if separate_service(name, settings).is_ready() else 1)
    become(name, settings)


@click.command(short_help="Serve the catalogue over HTTP.")
@click.option("--host", help="Address of the server (default: SDA_SERVING_HOST, or 127.0.0.1).")
@click.option("--port", type=click.IntRange(1, 65535), help="Port (default: SDA_SERVING_PORT, or 3100).")
@click.pass_obj
@for_people
def serve(settings: Settings, host: str | None, port: int | None) -> None:
    """Serve the catalogue over HTTP: objects, history, states, conjunctions, alerts; /openapi.json describes it."""
    from sda_platform.runtime.serve import run_endpoint

    host, port = host or settings.serving_host, port or settings.serving_port
    run_endpoint(settings, host=host, port=port)


@click.command(short_help="Show the platform with one day of real orbits.")
@click.option("--once", is_flag=True, help="Exit when the alerts are delivered: 0, or 1 and the reason.")
@click.option(
    "--scenario",
    type=click.Choice([STORY, *SCENARIOS, "burst"]),
    default=STORY,
    show_default=True,
    help="What happens.",
)
@click.option("--seed", type=int, default=_DEMO_SEED, show_default=True, help="Seed of the simulation.")
@click.option("--minutes", type=float, default=10.0, show_default=True, help="Mission time to simulate at once.")
@click.pass_obj
@for_people
def demo(settings: Settings, once: bool, scenario: str, seed: int, minutes: float) -> None:
    """Show the platform with one day of real orbits, then serve the UI until Ctrl-C.

    It empties <home>/demo, screens 26,834 objects, sends simulated observations of them to the collector over sockets,
    and delivers the alerts. `story`: a fragment is found on a collision course, another centre disagrees, a radar
    fails, and the satellite manoeuvres, all within 40 minutes. `burst`: radar tenfold for a minute, with what the
    collector defers.
    """
    from sda_platform.cli.demo import Demo

    sys.exit(Demo(settings, console, scenario=scenario, seed=seed, minutes=minutes).run(once=once))


@click.command(short_help="Receive data of sensors and partners.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="File of sources (default: SDA_COLLECT, or collect.toml in the home).",
)
@click.pass_obj
@for_people
def collect(settings: Settings, config: Path | None) -> None:
    """Receive data of sensors and partners until Ctrl-C or SIGTERM. `sda up` does this if collect.toml exists."""
    from sda_platform.edge.service import run_collector

    sys.exit(run_collector(config or settings.collect_path, landing_root=settings.landing_uri, home=settings.home))


@click.command(short_help="List the sources of the running collector.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def sources(settings: Settings, as_json: bool) -> None:
    """List the sources of the running collector: state, rate, last record, dropped records."""
    from sda_platform.cli.sources import agents_of, read_report, source_grid

    report = read_report(settings.home)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        console.print(source_grid(report, agents_of(settings)))


@click.command(short_help="List tables, landing zones, dead letters and red vitals.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def status(settings: Settings, as_json: bool) -> None:
    """List tables, landing zones, dead letters, red tables and red vitals."""
    from sda_platform.cli.status import show_status
    from sda_platform.observability.services import service_states
    from sda_platform.observability.status import platform_status
    from sda_platform.runtime.watchdog import current_readings

    found = platform_status(lake_of(settings), settings.landing_uri, current_readings(settings))
    services = service_states(settings.home)
    if as_json:
        click.echo(json.dumps({**found.to_dict(), "services": [asdict(each) for each in services]}, indent=2))
    else:
        show_status(settings, found, services)


@click.command(short_help="Show rates, pools, latency and backlog, live.")
@click.option("--once", is_flag=True, help="Print one frame and exit.")
@click.option("--interval", type=click.FloatRange(0.5, 60), default=2.0, show_default=True, help="Seconds a frame.")
@click.pass_obj
@for_people
def top(settings: Settings, once: bool, interval: float) -> None:
    """Show tables, landing zones, runs, sources and red vitals, a new frame every two seconds."""
    from sda_platform.cli.top import run_top

    run_top(settings, lake_of(settings), interval_s=interval, once=once)


@click.command(short_help="Accept the findings that make a table red.")
@click.argument("table")
@click.option("--reason", default="", help="Why consumers may continue; stored with the decision.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def acknowledge(settings: Settings, table: str, reason: str, as_json: bool) -> None:
    """Accept the findings that make TABLE (or all) red, so that its consumers continue.

    `sda status` lists the findings. A finding that grows worse is red again.
    """
    from sda_platform.observability.red_tables import acknowledge as accept
    from sda_platform.observability.red_tables import acknowledgement_lines

    accepted = accept(lake_of(settings), table, reason)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in accepted], indent=2))
    else:
        for line in acknowledgement_lines(table, accepted):
            console.print(line)


@click.command(short_help="Verify every commit and data file of the lake.")
@click.option(
    "--deep", is_flag=True, help="Read every column of every file, and compare consumed segments with the tables."
)
@click.option(
    "--repair", is_flag=True, help="Repair as `sda up` does; refused while a platform uses the home or the lake."
)
@click.option(
    "--rebuild",
    metavar="TABLE",
    help="With --repair: set TABLE aside with all that was made from it, to be made anew; all: all that did not land.",
)
@click.option(
    "--accept-loss",
    metavar="TABLE",
    multiple=True,
    help="With --repair: accept that TABLE lost what neither a repair nor the archive can bring back.",
)
@click.pass_obj
@for_people
def verify(settings: Settings, deep: bool, repair: bool, rebuild: str | None, accept_loss: tuple[str, ...]) -> None:
    """Verify that every commit and data file of the lake is as it was written.

    Exit code 1 means damage.
    """
    from sda_platform.audit_log import record
    from sda_platform.recovery.examination import Depth
    from sda_platform.runtime import verification
    from sda_platform.runtime.platform_home import take_locks

    require_used(settings)
    if (rebuild or accept_loss) and not repair:
        raise click.UsageError("--rebuild and --accept-loss change the lake: add --repair")
    depth, accepted = Depth.COLUMNS if deep else Depth.FOOTERS, frozenset(accept_loss)
    alone = take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri) if repair else nullcontext()
    with alone:
        for line in verification.rebuild(settings, rebuild, accepted) if rebuild else ():
            console.print(line)
        findings = verification.verify(settings, depth, repair=repair, accepted=accepted)
    damaged = [finding.examination.table for finding in findings if finding.outcome == "damaged"]
    outcome = f"damaged: {', '.join(damaged)}" if damaged else "no table is damaged"
    asked = {"deep": deep, "repair": repair, "rebuild": rebuild, "accept_loss": list(accept_loss)}
    record(settings.home, "verify", asked, outcome)
    for line in verification.lines(findings):
        console.print(line)
    sys.exit(1 if damaged else 0)


@click.command(short_help="Restore the lake from a backup.")
@click.argument("backup", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_obj
@for_people
def restore(settings: Settings, backup: Path) -> None:
    """Put BACKUP, a copy of the lake's directory, in the place of the lake; refused while a platform runs.

    Tables of the backup must fit together. Segments that were consumed since are put back. The lake until now is kept
    beside the restored one.
    """
    from sda_platform.audit_log import record
    from sda_platform.runtime.platform_home import take_locks
    from sda_platform.runtime.restoring import restore as put_in_place

    with take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri):
        line = ""
        for line in put_in_place(settings, backup):
            console.print(line)
    record(settings.home, "restore", {"backup": str(backup)}, line)

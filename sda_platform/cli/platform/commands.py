"""Commands that run the platform and watch over it."""

import sys
from pathlib import Path

import click

from sda_platform.cli.grammar import PATH, default_option, json_option
from sda_platform.cli.listing import Output, print_json
from sda_platform.cli.people import SCENARIOS, STORY, console, lake_of
from sda_platform.runtime.ui_roles import ROLE_NAMES
from sda_platform.settings import Settings

# In this world no approach but the story's becomes red when sensors observe its objects.
_DEMO_SEED = 20241108
_MOST_FAULTS = 100


@click.command(short_help="Run the platform.")
@click.pass_obj
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
def service(settings: Settings, name: str, check: bool) -> None:
    """Run one process of the platform in the foreground; `sda up` runs all of them.

    NAME is engine, code-server, run-workers, daemon, webserver or watchdog. They share the settings and the home.
    The run workers verify and repair the lake before they serve.
    """
    from sda_platform.runtime.separate import become, separate_service

    if check:
        sys.exit(0 if separate_service(name, settings).is_ready() else 1)
    become(name, settings)


@click.command(short_help="Back up all that the platform holds.")
@click.argument("target", type=PATH)
@click.option("--whole", "is_whole", is_flag=True, help="Copy everything anew: link nothing to an earlier backup.")
@click.option(
    "--keep", "kept", type=click.IntRange(1), help="Remove all but the newest N backups there.  [default: all]"
)
@click.pass_obj
def backup(settings: Settings, target: Path, is_whole: bool, kept: int | None) -> None:
    """Make a new backup below the directory TARGET: lake, landing zones and home, as of one consistent moment.

    The platform may run meanwhile. What did not change since the last backup there is linked to it. With the setting
    SDA_BACKUP the platform makes one each night.
    """
    from sda_platform.cli.people import require_used
    from sda_platform.runtime.backup import back_up, described

    require_used(settings)
    console.print_lines(described(back_up(settings, target, is_whole=is_whole, kept=kept), settings))


@click.command(short_help="Restore a backup into an empty home.")
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_obj
def restore(settings: Settings, source: Path) -> None:
    """Put the backup SOURCE, or the newest below it, into an empty home, and verify it.

    Every byte is checked before anything is in place. A restore that was interrupted is repeated. `sda lake restore`
    puts a lake alone in the place of today's.
    """
    from sda_platform.audit_log import record
    from sda_platform.runtime.backup import restore as put_in_place
    from sda_platform.runtime.platform_home import take_locks

    with take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri):
        line = ""
        for line in put_in_place(settings, source):
            console.print(line)
    record(settings.home, "restore", {"backup": str(source)}, line)


@click.command(short_help="Make a user of the UI.")
@click.argument("name")
@default_option("--role", type=click.Choice(ROLE_NAMES), default="viewer", help="Views; runs jobs and sensors; or all.")
def user(name: str, role: str) -> None:
    """Make a user of the UI: the section for the file that SDA_WEBSERVER_USERS names, and a new token.

    The section is printed on the standard output, the token on the standard error, this once.
    """
    from sda_platform.runtime.ui_users import new_user

    token, section = new_user(name, role)
    click.echo(section, nl=False)
    click.echo(f"token of {name}: {token}", err=True)


@click.command(short_help="Show the platform with one day of real orbits.")
@click.option("--once", is_flag=True, help="Exit when the alerts are delivered: 0, or 1 and the reason.")
@default_option("--scenario", type=click.Choice([STORY, *SCENARIOS, "burst"]), default=STORY, help="What happens.")
@default_option("--seed", type=int, default=_DEMO_SEED, help="Seed of the simulation.")
@default_option("--minutes", type=float, default=10.0, help="Mission time to simulate at once.")
@click.pass_obj
def demo(settings: Settings, once: bool, scenario: str, seed: int, minutes: float) -> None:
    """Show the platform with one day of real orbits, then serve the UI until Ctrl-C.

    It empties <home>/demo, screens 26,834 objects, sends simulated observations of them to the collector over sockets,
    and delivers the alerts. `story`: a fragment is found on a collision course, another centre disagrees, a radar
    fails, and the satellite manoeuvres, all within 40 minutes. `burst`: radar tenfold for a minute, with what the
    collector defers.
    """
    from sda_platform.cli.platform.demo import Demo

    sys.exit(Demo(settings, console, scenario=scenario, seed=seed, minutes=minutes).run(once=once))


@click.command(short_help="List tables, landing zones, dead letters and red vitals.")
@json_option
@click.option("--history", "shows_history", is_flag=True, help="List past faults.")
@click.pass_obj
def status(settings: Settings, as_json: bool, shows_history: bool) -> None:
    """List files that cannot be used, tables, landing zones, dead letters, red tables and red vitals.

    The history has past faults: when each began and was over, in mission time.
    """
    if shows_history:
        from sda_platform.cli.platform.status import show_history

        show_history(settings, Output("json" if as_json else "table", None if as_json else _MOST_FAULTS))
        return
    from sda_platform.cli.platform.status import show_status
    from sda_platform.observability.services import service_states
    from sda_platform.observability.status import platform_status
    from sda_platform.runtime.setting_files import wrong_files
    from sda_platform.runtime.watchdog import current_readings

    wrong = wrong_files(settings)
    found = platform_status(lake_of(settings), settings.landing_uri, current_readings(settings))
    services = service_states(settings.home)
    if as_json:
        print_json({**found.to_dict(), "services": services, "wrong_files": wrong})
    else:
        console.print_lines(f"cannot be used: {each}" for each in wrong)
        show_status(settings, found, services)


@click.command(short_help="Print the mission time.")
@click.option("--ns", "in_ns", is_flag=True, help="In nanoseconds since 1970.")
@click.pass_obj
def now(settings: Settings, in_ns: bool) -> None:
    """Print the mission time."""
    from sda_platform.clock import iso

    now_ns = lake_of(settings).clock.now_ns()
    click.echo(now_ns if in_ns else iso(now_ns))


@click.command(short_help="Show rates, pools, latency and backlog, live.")
@click.option("--once", is_flag=True, help="Print one frame and exit.")
@default_option("--interval", type=click.FloatRange(0.5, 60), default=2.0, help="Seconds a frame.")
@click.pass_obj
def top(settings: Settings, once: bool, interval: float) -> None:
    """Show tables, landing zones, runs, sources and red vitals, a new frame every two seconds."""
    from sda_platform.cli.platform.top import run_top

    run_top(settings, lake_of(settings), interval_s=interval, once=once)

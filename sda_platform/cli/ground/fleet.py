"""`sda ground fleet`: the agents of stations and collectors, who belongs to them, and what they report."""

import getpass
import time

import click

from sda_platform.cli.grammar import default_option, lists_rows
from sda_platform.cli.listing import Output, number, word, words
from sda_platform.cli.loops import surviving, until_interrupted
from sda_platform.cli.people import console, lake_of
from sda_platform.settings import Settings

_POLL_S = 1.0
_COLUMNS = (
    words("member", "member"),
    words("registered", lambda row: "yes" if row["is_registered"] else "no"),
    words("status", lambda row: row["status"] or "never seen"),
    number("generation", "generation"),
    word("since", "since_time_ns"),
    words("role", "role"),
    words("address", "address"),
    words("views", lambda row: f"{row['alive_views']} alive, {row['other_views']} other"),
)


@click.group(name="fleet", short_help="Agents of stations and collectors: registry and membership.")
def fleet() -> None:
    """Agents of stations and collectors. Serf spreads who is alive; the registry says who belongs to the fleet."""


@fleet.command(name="list", short_help="List the members with their merged status.")
@lists_rows()
@click.pass_obj
def list_members(settings: Settings, output: Output) -> None:
    """List the members by status, also from reports that are not yet consumed."""
    from sda_platform.ground.current_fleet import current_fleet

    rows = current_fleet(lake_of(settings), settings.landing_uri)
    output.show(rows, _COLUMNS, nothing="no agent is registered or has reported")


@fleet.command(short_help="List members in the registry.")
@click.argument("names", nargs=-1, required=True, metavar="MEMBER...")
@click.pass_obj
def admit(settings: Settings, names: tuple[str, ...]) -> None:
    """List each MEMBER in the registry, which alone makes an agent a member."""
    _change(settings, names, admits=True)


@fleet.command(short_help="Take members out of the registry.")
@click.argument("names", nargs=-1, required=True, metavar="MEMBER...")
@click.pass_obj
def remove(settings: Settings, names: tuple[str, ...]) -> None:
    """Take each MEMBER out of the registry; its history stays."""
    _change(settings, names, admits=False)


@fleet.command(short_help="Report what the local Serf agent sees.")
@default_option("--serf", default="127.0.0.1:7373", help="RPC address of the local Serf agent.")
@click.pass_obj
def report(settings: Settings, serf: str) -> None:
    """Report the view of the local Serf agent until it is interrupted: changes at once, and a sign of life."""
    from sda_platform.clock import MissionClock
    from sda_platform.ground.reporting import ViewReporter
    from sda_platform.ground.serf import SerfAgent
    from sda_platform.ground.tables import MEMBERSHIP_FEED
    from sda_platform.landing.zone import LandingZone

    zone, memory = LandingZone(settings.landing_uri, MEMBERSHIP_FEED), settings.home / "fleet"
    reporter = ViewReporter(SerfAgent(serf), zone, memory, MissionClock.load(settings.home).now_ns)

    def step() -> None:
        was = reporter.generation
        reporter.round(time.monotonic())
        if reporter.generation != was:
            console.print(f"{reporter.name} reports, generation {reporter.generation}; Ctrl-C stops it")

    until_interrupted(surviving(step, "report"), _POLL_S)


def _change(settings: Settings, names: tuple[str, ...], *, admits: bool) -> None:
    from sda_platform.clock import MissionClock
    from sda_platform.ground.reporting import change_registry
    from sda_platform.ground.tables import MEMBERSHIP_FEED
    from sda_platform.landing.zone import LandingZone

    zone = LandingZone(settings.landing_uri, MEMBERSHIP_FEED)
    change_registry(zone, MissionClock.load(settings.home).now_ns(), getpass.getuser(), names, admits=admits)

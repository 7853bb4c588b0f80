"""`sda ground`: issue commands, see what became of them, and run an uplink or the simulated station."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from sda_platform.cli.grammar import FILE, default_option, lists_rows, positive
from sda_platform.cli.ground.fleet import fleet
from sda_platform.cli.ground.station_state import station_state
from sda_platform.cli.listing import Output, number, word, words
from sda_platform.cli.loops import until_interrupted
from sda_platform.cli.people import command_log, console, lake_of, write_key
from sda_platform.ground.commands import APID, MOST_APID
from sda_platform.settings import Settings

_apid_option = default_option(
    "--apid", type=click.IntRange(0, MOST_APID), default=APID, help="Of the station's space packets."
)
_COMMAND_COLUMNS = (
    word("command", "command_id"),
    word("kind", "kind"),
    word("state", "state"),
    word("issued", "issued_time_ns"),
    words("issued by", lambda row: row["issued_by"] or ""),
    words("confirmed by", lambda row: row["confirmed_by"] or ""),
    words("uplink", "uplink"),
    words("answer", "detail"),
)
_LEASE_COLUMNS = (
    word("lease", "name"),
    word("holder", "holder"),
    number("token", "token"),
    word("since", "since_ns"),
    word("expires", lambda lease: f"in {lease.expires_in_s} of {lease.ttl_s} s"),
)


@click.group(short_help="Ground stations: commands, uplinks, leases, state, fleet.")
def ground() -> None:
    """Commands to stations: each is executed at most once, whatever fails."""


@ground.command(short_help="Issue a command.")
@click.argument("kind")
@click.option("--station", required=True, help="Name of the station.")
@positive("--expires-s", 600.0)
@click.option("--azimuth-deg", type=float, help="Where REPOINT points, from north by east.")
@click.option("--elevation-deg", type=float, help="The same above the horizon.")
@click.option("--id", "command_id", help="Id of an earlier request that is repeated (default: a new one).")
@click.pass_obj
def issue(
    settings: Settings,
    kind: str,
    station: str,
    expires_s: float,
    azimuth_deg: float | None,
    elevation_deg: float | None,
    command_id: str | None,
) -> None:
    """Issue a command of KIND. It is durable when its id is printed; an active uplink sends it.

    Where SDA_COMMANDERS names who may, it is signed with SDA_COMMANDER_KEY, and another person confirms an emergency.
    """
    from sda_platform.ground.commanders import needs_confirmation, read_commanders
    from sda_platform.ground.commands import BadDirection, BadId
    from sda_platform.ground.log import UnknownKind

    try:
        event = command_log(settings, station, may_be_new=True).issue(
            kind.upper(),
            expires_in_s=expires_s,
            command_id=command_id,
            azimuth_deg=azimuth_deg,
            elevation_deg=elevation_deg,
        )
    except UnknownKind as error:
        raise click.BadParameter(str(error), param_hint="KIND") from None
    except BadId as error:
        raise click.BadParameter(str(error), param_hint="--id") from None
    except BadDirection as error:
        raise click.BadParameter(str(error), param_hint="--azimuth-deg, --elevation-deg") from None
    click.echo(event.command_id)
    if needs_confirmation(event.kind, read_commanders(settings.access.commanders)):
        click.echo(f"another person confirms it: sda ground confirm {event.command_id} --station {station}", err=True)


@ground.command(short_help="Confirm an emergency command of another person.")
@click.argument("command_id", metavar="COMMAND")
@click.option("--station", required=True, help="Name of the station.")
@click.pass_obj
def confirm(settings: Settings, command_id: str, station: str) -> None:
    """Confirm the SAFE_MODE or EMERGENCY_ABORT that another person issued, by its id; an uplink then sends it."""
    from sda_platform.clock import iso

    event = command_log(settings, station).confirm(command_id)
    console.print(f"confirmed by {event.person}: {event.kind}, expires {iso(event.expires_time_ns)}")


@ground.command("commander-key", short_help="Make a key that signs commands.")
@click.argument("file", type=FILE)
def commander_key(file: Path) -> None:
    """Make an Ed25519 key in FILE for SDA_COMMANDER_KEY, and its public key in FILE.pub for the file SDA_COMMANDERS."""
    write_key(file)


@ground.command(name="list", short_help="List commands and the active uplink.")
@click.option("--station", required=True, help="Name of the station.")
@lists_rows()
@click.pass_obj
def list_commands(settings: Settings, station: str, output: Output) -> None:
    """List the commands of a station by their state, and who commands it, also from events not yet consumed."""
    from sda_platform.clock import iso
    from sda_platform.ground.command_states import states
    from sda_platform.ground.links import link_states
    from sda_platform.ground.log import CommandLog

    events = CommandLog(lake_of(settings), settings.landing_uri, station).new_events()
    rows = states([], events)
    for link in link_states(events) if output.is_table else ():
        console.print(f"active: {link.uplink}, token {link.token}, since {iso(link.from_ns)} ({link.reason})")
    output.show(sorted(rows, key=itemgetter("issued_time_ns")), _COMMAND_COLUMNS, nothing="no command was issued")


@ground.command(short_help="Run an uplink to a station.")
@click.argument("name", type=click.Choice(["primary", "backup"]))
@click.option("--station", required=True, help="Name of the station.")
@click.option("--url", required=True, help="Address of the station: http://127.0.0.1:3200.")
@default_option(
    "--path",
    type=click.Choice(["intra-region", "cross-region"]),
    default="intra-region",
    help="How heartbeats behave on the way to the station.",
)
@click.option(
    "--declare-phi",
    type=click.FloatRange(min=3.0),
    help="Suspicion that declares the other uplink failed (default: of --path).",
)
@click.option(
    "--pause-s",
    type=click.FloatRange(min=0.0),
    help="Lateness that raises no suspicion (default: of --path).",
)
@default_option("--failback-s", type=float, default=120.0, help="Sustained health before failback; not with SDA_ETCD.")
@_apid_option
@click.option("--serf", help="RPC address of the local Serf agent.")
@click.pass_obj
def uplink(
    settings: Settings,
    name: str,
    station: str,
    url: str,
    path: str,
    declare_phi: float | None,
    pause_s: float | None,
    failback_s: float,
    apid: int,
    serf: str | None,
) -> None:
    """Run the primary or the backup uplink until it is interrupted. With SDA_ETCD the active one holds a lease."""
    import httpx

    from sda_platform.ground.commanders import CommandersOnDisk
    from sda_platform.ground.event_keys import EventKeys
    from sda_platform.ground.failure_detection import PATH_CLASSES
    from sda_platform.ground.heartbeat_sender import beating
    from sda_platform.ground.log import CommandLog
    from sda_platform.ground.short_answers import ShortAnswers
    from sda_platform.ground.uplink import STEP_S, TIMEOUT_S, Uplink, UplinkSettings

    path_class = PATH_CLASSES[path]
    if declare_phi is not None:
        path_class = replace(path_class, declare_phi=declare_phi)
    if pause_s is not None:
        path_class = replace(path_class, acceptable_pause_s=pause_s)
    lake = lake_of(settings, may_be_new=True)
    # Who holds a lease keeps it while it can: the other one takes over when it fails.
    failback_after_s = None if settings.etcd else failback_s
    running = Uplink(
        UplinkSettings(name, path_class, failback_after_s=failback_after_s, apid=apid),
        CommandLog(lake, settings.landing_uri, station),
        httpx.Client(
            base_url=url,
            timeout=TIMEOUT_S,
            auth=_signed(settings, name, lake.clock.now_ns),
            transport=ShortAnswers(),
        ),
        lake.clock.now_ns,
        lease=_lease(settings, f"{settings.site}/{name}", station),
        commanders=CommandersOnDisk(settings.access.commanders),
        event_keys=EventKeys(_station_keys(settings)),
    )
    if serf:
        from sda_platform.ground.serf import SerfAgent, SerfWatch

        watch = SerfWatch(SerfAgent(serf))
        running.reported = lambda other: watch.status(f"{station}-{other}")
    console.print(f"uplink {name} of {station} runs; Ctrl-C stops it")
    with beating(running.beat, STEP_S):
        # An error of the disk ends it: another uplink, or a new start, knows what was sent from the log alone.
        until_interrupted(_stepped(running), STEP_S)


def _signed(settings: Settings, name: str, clock_ns: Callable[[], int]) -> Any:
    """Return what signs the messages of uplink ``name``, and prints why one is refused; without keys it signs none.

    Raises Misconfigured.
    """
    from sda_platform.ground.station_messages import ReportedRefusals, SignedMessages

    def refused(why: str) -> None:
        console.print(f"refused: {why}")

    keys = _station_keys(settings)
    return SignedMessages(keys, name, clock_ns, refused=refused) if keys else ReportedRefusals(refused)


def _station_keys(settings: Settings) -> Any:
    """Return the keys of messages between uplinks and stations; without any they are not signed."""
    from sda_platform.orchestration.webhooks import SigningKeys

    return SigningKeys("SDA_STATION_KEYS", settings.access.station_keys)


def _lease(settings: Settings, holder: str, station: str) -> Any:
    """Return the lease of the station's uplinks, where the platform has an etcd."""
    if not settings.etcd:
        return None
    from sda_platform.ground.uplink import TIMEOUT_S
    from sda_platform.ground.uplink_lease import UplinkLease
    from sda_platform.orchestration.leases import EtcdLeases

    return UplinkLease(EtcdLeases(settings.etcd, holder, timeout_s=TIMEOUT_S), station, time.monotonic)


def _stepped(running: Any) -> Callable[[], None]:
    """Return a step of an uplink, which prints when it becomes active or passive."""
    was_active = False

    def step() -> None:
        nonlocal was_active
        running.step()
        if running.is_active != was_active:
            was_active = running.is_active
            console.print(f"active, token {running.token}" if was_active else "standing by")

    return step


@ground.command(short_help="List who holds which lease.")
@lists_rows()
@click.pass_obj
def leases(settings: Settings, output: Output) -> None:
    """List the leases in etcd: of the schedule, of the catalogue's merge, and of the active uplink of each station."""
    from sda_platform.orchestration.leases import EtcdLeases

    held = EtcdLeases(settings.etcd, settings.site).held() if settings.etcd else []
    alone = "SDA_ETCD is not set: this platform is the only site, and holds no leases"
    output.show(held, _LEASE_COLUMNS, nothing="no lease is held" if settings.etcd else alone)


@ground.command(short_help="Run the simulated station.")
@click.option("--state", required=True, type=FILE, help="Its durable memory.")
@default_option("--port", type=int, default=3200)
@_apid_option
@click.pass_obj
def station(settings: Settings, state: Path, port: int, apid: int) -> None:
    """Run a simulated station on loopback, until it is interrupted."""
    from sda_platform.clock import MissionClock
    from sda_platform.ground.message_guard import MessageGuard
    from sda_platform.ground.station import DurableStation
    from sda_platform.ground.station_server import serve

    keys = _station_keys(settings)
    guard = MessageGuard(keys, state) if keys else None
    server = serve(DurableStation(state, MissionClock.load(settings.home).now_ns), port, guard, apid)
    accepts = "signed messages" if guard else "any sender: SDA_STATION_KEYS is not set"
    console.print(f"station at http://127.0.0.1:{server.server_port} accepts {accepts}; Ctrl-C stops it")
    with suppress(KeyboardInterrupt):
        server.serve_forever()


ground.add_command(station_state)
ground.add_command(fleet)

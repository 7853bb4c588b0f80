"""`sda sensor`: what the sensors shall observe, and what became of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sda_platform.cli.grammar import FOLDER, instant, lists_rows, positive
from sda_platform.cli.listing import Output, number, word, words
from sda_platform.cli.loops import surviving, until_interrupted
from sda_platform.cli.people import command_log, console, lake_of
from sda_platform.clock import iso_to_second
from sda_platform.foreign_text import is_plain
from sda_platform.observability.vitals.faults import duration
from sda_platform.settings import Settings
from sda_platform.units import HOUR_NS, SECOND_NS

if TYPE_CHECKING:
    from sda_platform.orbits.sensing.sensors import SensorNetwork


_STEP_S = 1.0
_TASK_COLUMNS = (
    word("sensor", "source_id"),
    word("start", "start_time_ns"),
    number("object", "norad_id"),
    word("class", "priority_class"),
    word("state", "state"),
    number("observations", "observations"),
    number("expected\ngain", lambda row: f"{row['expected_gain']:.2f}"),
    number("realised\ngain", lambda row: "" if row["realised_gain"] is None else f"{row['realised_gain']:.2f}"),
    word("request", "request"),
    words("detail", "detail"),
)


_SENSOR_COLUMNS = (
    word("sensor", "source_id"),
    words("name", "name"),
    word("kind", "kind"),
    word("last observation", lambda row: iso_to_second(row["heard_time_ns"]) if row["heard_time_ns"] else "never"),
    word("silent", lambda row: duration(row["silent_s"]) if row["silent_s"] else ""),
    word("closed until", lambda row: iso_to_second(row["closed_until_ns"]) if row["closed_until_ns"] else ""),
    word("listed", lambda row: "yes" if row["is_listed"] else "NO: no fit uses it"),
)


@click.group(short_help="Sensors: add, close, list; schedule, commands and outcomes.")
def sensor() -> None:
    """Add and close sensors, show what they shall observe and what became of it, and command antennas of our own."""


@sensor.command(name="list", short_help="List the sensors, silent ones first.")
@lists_rows()
@click.pass_obj
def list_sensors(settings: Settings, output: Output) -> None:
    """List sources that reported or are listed, silent ones first."""
    from sda_platform.formats.closures import usable_closures
    from sda_platform.fusion.resource import FusionResource
    from sda_platform.observability.sensor_states import sensor_states

    lake, network = lake_of(settings), FusionResource(**settings.fusion.model_dump()).network()
    now_ns, closures = lake.clock.now_ns(), usable_closures(settings.scheduling.closure_file)
    rows = [
        {
            "source_id": each.source_id,
            "name": network[each.source_id].name if each.source_id in network else "",
            "kind": each.kind,
            "heard_time_ns": each.heard_ns,
            "silent_s": each.silence.lasted_s(now_ns) if each.silence else None,
            "closed_until_ns": each.closure.end_ns if each.closure else None,
            "is_listed": each.is_listed,
        }
        for each in sensor_states(lake, settings.landing_uri, network, closures)
    ]
    output.show(rows, _SENSOR_COLUMNS, nothing="no sensor is listed")


@sensor.command(short_help="Add a sensor to the list.")
@click.argument("source_id")
@click.argument("columns", nargs=-1, metavar="[COLUMN=VALUE]...")
@click.option("--like", default="", help="Sensor of the list, whose coverage and noise it has where none is stated.")
@click.option(
    "--source", help="Where its data comes from: host:port for a radar's frames, the URL of a telescope's archive."
)
@click.pass_obj
def add(settings: Settings, source_id: str, columns: tuple[str, ...], like: str, source: str | None) -> None:
    """Add the sensor SOURCE_ID, such as radar-31 or optical-teide, to the list of the home.

    Each COLUMN is one of the list's, such as name=Tenerife latitude_deg=28.3. The list begins as a copy of the shipped
    one. Runs that start from now on use it, and the collector listens at --source after seconds.
    """
    from sda_platform.edge.config import add_source
    from sda_platform.orbits.sensing.new_sensor import with_sensor
    from sda_platform.private_home import make_private
    from sda_platform.whole_files import replace_content

    stated = {}
    for each in columns:
        column, sign, value = each.partition("=")
        if not sign:
            raise click.BadParameter(f"{each!r} is not of the form column=value", param_hint="COLUMN=VALUE")
        stated[column] = value
    home = settings.home.absolute()
    make_private(home)
    path = Path(settings.fusion.sensors or home / "sensors.csv")
    found, text = with_sensor(path, source_id, stated, like)
    if source is not None:
        place = "bind" if found.kind == "radar" else "url"
        add_source(settings.collect_path, source_id, {"kind": found.kind, place: source})
        console.print(f"its source is in {settings.collect_path}: {source}")
    replace_content(path, text)
    console.print(f"{source_id} is in {path}: {found.name}, {found.latitude_deg:g}° {found.longitude_deg:g}°")


@sensor.command(short_help="State that a sensor observes nothing for a time.")
@click.argument("source_id")
@click.option("--start", default="now", show_default=True, help="From when, ISO 8601, now, +3d or tomorrow.")
@click.option("--until", required=True, help="Until when, such as +12h.")
@click.option("--reason", default="", help="Why, for people: clouds, maintenance, no longer in use.")
@click.pass_obj
def close(settings: Settings, source_id: str, start: str, until: str, reason: str) -> None:
    """Add to the closures of the home that the sensor SOURCE_ID observes nothing for a time.

    Nothing is planned for it then, and its silence is no fault.
    """
    from sda_platform.formats.closures import Closure, with_closure
    from sda_platform.private_home import make_private
    from sda_platform.whole_files import replace_content

    _known(settings, source_id)
    start_ns, end_ns = (
        each // SECOND_NS * SECOND_NS for each in (instant(start, "--start"), instant(until, "--until"))
    )
    if end_ns <= start_ns:
        raise click.BadParameter(f"{until!r} is not after the start", param_hint="--until")
    if not is_plain(reason):
        raise click.BadParameter("a reason is one line of text", param_hint="--reason")
    home = settings.home.absolute()
    make_private(home)
    path = Path(settings.scheduling.closures or home / "closures.csv")
    replace_content(path, with_closure(path, Closure(source_id, start_ns, end_ns, reason)))
    console.print(f"{source_id} is closed until {iso_to_second(end_ns)}, in {path}")


@sensor.command(short_help="List or write the schedule of the sensors.")
@click.option("--sensor", "source_id", help="Only this sensor, by its id.")
@click.option("--out", type=FOLDER, help="Directory for one file per sensor, not a table.")
@lists_rows("sensorkit")
@click.pass_obj
def schedule(settings: Settings, source_id: str | None, out: Path | None, output: Output) -> None:
    """List the scheduled observations that have not ended, or write them as files.

    The form `sensorkit` has tasks for the observatory software SensorKit.
    """
    from sda_platform.cli.sensor.schedule import COLUMNS, upcoming, write_files, written

    if out is not None and output.is_table:
        raise click.UsageError("--out needs --format csv, json or sensorkit")
    lake = lake_of(settings)
    ahead = upcoming(lake, after_ns=lake.clock.now_ns())
    if source_id is not None:
        _known(settings, source_id, {row["source_id"] for row in ahead})
    rows = [row for row in ahead if source_id in (None, row["source_id"])]
    if out is not None:
        for path in write_files(out, lake, rows, output.form):
            console.print(f"written: {path}")
    elif output.is_table:
        output.show(rows, COLUMNS, nothing="no observation is scheduled")
    else:
        click.echo(written(lake, rows, output.form).decode(), nl=False)


@sensor.command(short_help="Command an antenna as scheduled.")
@click.argument("name")
@click.option("--station", help="Station whose uplinks command it (default: that of the same name).")
@click.pass_obj
def command(settings: Settings, name: str, station: str | None) -> None:
    """Issue a command for each scheduled observation of the sensor NAME when it is due, until it is interrupted.

    Each is issued once, also when this is started again or runs twice. It expires with the observation.
    """
    from sda_platform.tasking.commanding import SensorCommander

    lake = lake_of(settings)
    mask_deg = _known(settings, name)[name].min_elevation_deg
    commander = SensorCommander(lake, command_log(settings, station or name), name, mask_deg)
    console.print(f"commands {name} through station {station or name}; Ctrl-C stops it")

    def step() -> None:
        for event in commander.step():
            console.print(f"issued: {event.command_id}")

    until_interrupted(surviving(step, "issue commands"), _STEP_S)


@sensor.command(name="tasks", short_help="List what became of the scheduled observations.")
@click.option("--sensor", "source_id", help="Only this sensor, by its id.")
@positive("--hours", 24.0)
@lists_rows()
@click.pass_obj
def list_tasks(settings: Settings, source_id: str | None, hours: float, output: Output) -> None:
    """List the observations that were scheduled, from some hours ago on, and what became of each.

    The state is planned, accepted, executing, executed, observed, failed or missed. The request is satisfied,
    rescheduled, open or withdrawn. Gains are ln of the factor by which the one-sigma ellipse shrinks.
    """
    from sda_platform.tasking.stored_outcomes import recent_outcomes

    lake = lake_of(settings)
    found = recent_outcomes(lake, lake.clock.now_ns() - round(hours * HOUR_NS))
    if source_id is not None:
        _known(settings, source_id, {each.task.source_id for each in found})
    rows = [each.row() for each in found if source_id in (None, each.task.source_id)]
    output.show(rows, _TASK_COLUMNS, nothing="no observation was scheduled")


def _known(settings: Settings, name: str, others: Iterable[str] = ()) -> "SensorNetwork":
    """Return the sensors of the platform. Raises BadParameter unless ``name`` is one of them or of ``others``."""
    from sda_platform.tasking.resource import TaskingResource

    network = TaskingResource(**settings.scheduling.model_dump()).network()
    known = {*network, *others}
    if name not in known:
        raise click.BadParameter(f"{name!r} is no sensor; there are: {', '.join(sorted(known))}")
    return network

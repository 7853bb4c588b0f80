"""`sda sensor`: what the sensors shall observe."""

from pathlib import Path

import click

from sda_platform.cli.grammar import FOLDER, lists_rows
from sda_platform.cli.listing import Output
from sda_platform.cli.people import console, lake_of
from sda_platform.settings import Settings


@click.group(short_help="Sensors: their schedule.")
def sensor() -> None:
    """Show what the sensors shall observe."""


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
    rows = upcoming(lake, source_id, after_ns=lake.clock.now_ns())
    if out is not None:
        for path in write_files(out, lake, rows, output.form):
            console.print(f"written: {path}")
    elif output.is_table:
        output.show(rows, COLUMNS, nothing="no observation is scheduled")
    else:
        click.echo(written(lake, rows, output.form).decode(), nl=False)

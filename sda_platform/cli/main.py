"""`sda`: the command line. A command parses its arguments, calls a module and prints the result.

A failure that the user can correct gives one line and exit code 1. A wrong use of a command gives its usage and exit
code 2.
"""

from collections.abc import Iterator
from pathlib import Path

import click
from pydantic import ValidationError

from sda_platform.cli import analysis_commands, archive_commands, audit_commands, data_commands, platform_commands
from sda_platform.cli.alert import alert
from sda_platform.cli.catalog import catalog
from sda_platform.cli.ground import ground
from sda_platform.cli.sql import sql
from sda_platform.cli.whatif import whatif
from sda_platform.private_home import private_files
from sda_platform.runtime.program import collect_seldom
from sda_platform.settings import Settings, UnknownSetting, UnusablePlace, declared_settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home", type=click.Path(path_type=Path), help="Home directory of the platform (default: SDA_HOME, or var)."
)
@click.version_option(package_name="sda-platform", message="sda-platform %(version)s")
@click.pass_context
def main(context: click.Context, home: Path | None) -> None:
    """Turn sensor data about objects in orbit into conjunction alerts, each delivered exactly once."""
    collect_seldom()
    try:
        context.obj = Settings(home=home) if home else Settings()
    except ValidationError as error:
        wrong = "; ".join(_refusals(error))
        raise click.ClickException(f"a setting cannot be used: {wrong}") from None
    except (UnknownSetting, UnusablePlace) as error:
        raise click.ClickException(str(error)) from None
    context.with_resource(private_files(int(context.obj.access.umask, 8)))


def _refusals(error: ValidationError) -> Iterator[str]:
    """What is wrong with which variable, for each value that ``error`` refuses."""
    variables = {setting.path: setting.variable for setting in declared_settings()}
    for each in error.errors():
        place = tuple(map(str, each["loc"]))
        variable = variables.get(place[:2]) or variables.get(place[:1])
        reason = each["msg"].removeprefix("Value error, ")
        yield f"{variable}={each['input']!r}: {reason}" if variable else reason


_COMMANDS = (
    catalog,
    ground,
    platform_commands.up,
    platform_commands.service,
    platform_commands.serve,
    platform_commands.demo,
    platform_commands.collect,
    platform_commands.sources,
    platform_commands.status,
    platform_commands.top,
    platform_commands.acknowledge,
    platform_commands.verify,
    platform_commands.restore,
    audit_commands.audit,
    audit_commands.reconcile,
    data_commands.land,
    data_commands.replay,
    data_commands.reprocess,
    data_commands.simulate,
    data_commands.feed,
    data_commands.convert,
    analysis_commands.alerts,
    alert,
    analysis_commands.trace,
    analysis_commands.show,
    analysis_commands.screen,
    whatif,
    analysis_commands.passes,
    analysis_commands.schedule,
    analysis_commands.pc,
    analysis_commands.cdm,
    archive_commands.query,
    sql,
    archive_commands.diff,
    archive_commands.explain,
    archive_commands.impact,
    archive_commands.retention,
    archive_commands.layout,
)
for _command in _COMMANDS:
    main.add_command(_command)


if __name__ == "__main__":
    main()

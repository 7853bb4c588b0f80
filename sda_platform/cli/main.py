"""`sda`: the command line. A command parses its arguments, calls a module and prints the result.

A failure that the user can correct gives one line and exit code 1. A wrong use of a command gives its usage and exit
code 2.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from pydantic import ValidationError
from pydantic_settings import SettingsError

from sda_platform.cli.alert.commands import alert
from sda_platform.cli.analysis import commands as analysis
from sda_platform.cli.analysis.whatif import whatif
from sda_platform.cli.catalog import catalog
from sda_platform.cli.channel import channel
from sda_platform.cli.collector.commands import collector
from sda_platform.cli.data import commands as data
from sda_platform.cli.grammar import PATH, Commands
from sda_platform.cli.ground.commands import ground
from sda_platform.cli.lake.commands import lake
from sda_platform.cli.lake.past_commands import query
from sda_platform.cli.platform import commands as platform
from sda_platform.cli.run import run
from sda_platform.cli.sensor.commands import sensor
from sda_platform.private_home import private_files
from sda_platform.refused_values import refused_values
from sda_platform.runtime.platform_home import DEMO_HOME, is_home
from sda_platform.runtime.program import collect_seldom
from sda_platform.settings import Settings, UnknownSetting, UnusablePlace, declared_settings

_MAKE_A_HOME: Final = frozenset({"connect", "demo", "restore", "service", "up"})
"""Commands that begin a home of the user's own: they never mean the demo's."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    type=PATH,
    help="Home directory of the platform (default: SDA_HOME, or var, or that of the demo while var is unused).",
)
@click.version_option(package_name="sda-platform", message="sda-platform %(version)s")
@click.pass_context
def main(context: click.Context, home: Path | None) -> None:
    """Turn sensor data about objects in orbit into conjunction alerts, each delivered exactly once.

    Times are ISO 8601, UTC, or now, yesterday, today, tomorrow, +3d, -12h by the clock of the home.
    """
    collect_seldom()
    try:
        context.obj = Settings(home=home) if home else _default_settings(context.invoked_subcommand)
    except ValidationError as error:
        wrong = "; ".join(_refusals(error))
        raise click.ClickException(f"a setting cannot be used: {wrong}") from None
    except SettingsError as error:
        raise click.ClickException(f"a setting cannot be used: {_not_json(error)}") from None
    except (UnknownSetting, UnusablePlace) as error:
        raise click.ClickException(str(error)) from None
    context.with_resource(private_files(int(context.obj.access.umask, 8)))


def _default_settings(command: str | None) -> Settings:
    """Return the settings without ``--home``: where only the demo has run, its home is meant, and named."""
    settings = Settings()
    demo = settings.home / DEMO_HOME
    is_chosen = "home" in settings.model_fields_set or command == "demo"
    if is_chosen or is_home(settings.home, settings.lake_uri, settings.landing_uri) or not is_home(demo):
        return settings
    if command in _MAKE_A_HOME:
        click.echo(f"home: {settings.home}, a new one; for that of the demo: sda --home {demo} {command}", err=True)
        return settings
    click.echo(f"home: {demo}, that of the demo", err=True)
    return Settings(home=demo)


def _not_json(error: SettingsError) -> str:
    """Return what is wrong with a variable that must hold JSON; its value may be secret."""
    named = re.search(r'field "(\w+)"', str(error))
    variables = {setting.path: setting.variable for setting in declared_settings()}
    reason = f"{variables.get((named[1],), named[1])} is not JSON" if named else str(error)
    return f'{reason}; a list is written ["a", "b"], a table {{"a": 1}}'


def _refusals(error: ValidationError) -> Iterator[str]:
    """Yield what is wrong with which variable, for each value that ``error`` refuses."""
    variables = {setting.path: setting.variable for setting in declared_settings()}
    for place, reason, _ in refused_values(error):  # the value may be secret
        variable = variables.get(place[:2]) or variables.get(place[:1])
        yield f"{variable}: {reason}" if variable else reason


main.add_section(
    "Platform",
    platform.up,
    platform.service,
    platform.user,
    platform.demo,
    platform.status,
    platform.now,
    platform.top,
    platform.backup,
    platform.restore,
)
main.add_section("Objects of the platform", alert, catalog, channel, collector, ground, lake, run, sensor)
main.add_section("Data", data.connect, data.land, query, data.convert, data.simulate)
main.add_section("Analysis", analysis.screen, whatif, analysis.passes, analysis.pc)


if __name__ == "__main__":
    main()

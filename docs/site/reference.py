"""The reference pages as Markdown, derived from the code: commands, settings, tables, orchestration and formats.

`make docs` runs this file as a script, which writes the pages. A test fails while they are not current.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import dagster as dg

from sda_platform.cli.main import main
from sda_platform.definitions import defs
from sda_platform.formats.conversion import targets_of
from sda_platform.formats.registry import FORMATS
from sda_platform.lake.table import Table
from sda_platform.registry import TABLES
from sda_platform.settings import OTHER_VARIABLES, declared_settings


def cli() -> str:
    """Every command of `sda` with its arguments and options."""
    group = click.Context(main, info_name="sda")
    parts = [
        "# Commands\n",
        f"{main.help}\n",
        "Options of `sda` itself come before the command:\n",
        _options(main.params),
    ]
    for name in main.list_commands(group):
        command = main.commands[name]
        usage = click.Context(command, parent=group, info_name=name).command_path
        pieces = command.collect_usage_pieces(click.Context(command, parent=group, info_name=name))
        parts += [
            f"## sda {name}\n",
            f"    {usage} {' '.join(pieces)}\n",
            f"{command.help}\n",
            _options(command.params),
        ]
    return "\n".join(parts)


def settings() -> str:
    """Every environment variable of the platform with its type, default and meaning."""
    declared = {variable: field for variable, _path, field in declared_settings()}
    rows = [
        (f"`{variable}`", _type_name(field.annotation), _default(field), field.description or "")
        for variable, field in declared.items()
    ]
    others = [(f"`{name}`", meaning) for name, meaning in sorted(OTHER_VARIABLES.items())]
    return (
        "# Settings\n\nEach setting is an environment variable. "
        "A variable with the prefix that is no setting is refused.\n\n"
        + _grid(("Variable", "Type", "Default", "Meaning"), rows)
        + "\n## Other variables\n\n"
        + _grid(("Variable", "Meaning"), others)
    )


def tables() -> str:
    """Every table with its key, inputs, jobs and columns."""
    parts = ["# Tables\n", "Tables are listed in the order in which data flows.\n"]
    return "\n".join((*parts, *(_table(table) for table in TABLES)))


def orchestration() -> str:
    """Every job, sensor, schedule and asset check of the Dagster code location."""
    repository = defs.get_repository_def()
    jobs = [(f"`{job.name}`", job.description) for job in repository.get_all_jobs() if not job.name.startswith("__")]
    sensors = [(f"`{each.name}`", each.description) for each in repository.sensor_defs]
    schedules = [(f"`{each.name}`", f"`{each.cron_schedule}`", each.description) for each in repository.schedule_defs]
    specs = sorted(_check_specs(), key=lambda spec: (spec.asset_key.to_user_string(), spec.name))
    checks = [
        (f"`{spec.asset_key.to_user_string()}`", f"`{spec.name}`", "yes" if spec.blocking else "", spec.description)
        for spec in specs
    ]
    return "\n".join(
        (
            "# Jobs, sensors and checks\n",
            "## Jobs\n",
            _grid(("Job", "What it does"), jobs),
            "## Sensors\n",
            _grid(("Sensor", "What it does"), sensors),
            "## Schedules\n",
            _grid(("Schedule", "When", "What it does"), schedules),
            "## Checks\n",
            "A blocking check that fails ends the run before the next asset.\n",
            _grid(("Asset", "Check", "Blocks", "What it checks"), checks),
        )
    )


def formats() -> str:
    """Every file format that the platform lands."""
    rows = [
        (
            f"`{each.name}`",
            each.title,
            each.content,
            f"`landing/{each.zone}`",
            " ".join(f"`{s}`" for s in each.suffixes),
            " ".join(f"`{name}`" for name in targets_of(each.name) if name != each.name),
        )
        for each in FORMATS
    ]
    return (
        "# File formats\n\n[Land partner files](../how-to/land-files.md) explains how a file becomes segments.\n\n"
        + _grid(("Format", "Title", "Content", "Landing zone", "File endings", "Converts to"), rows)
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/cli.md": cli,
    "reference/settings.md": settings,
    "reference/tables.md": tables,
    "reference/orchestration.md": orchestration,
    "reference/formats.md": formats,
}
"""Page below docs/ → the function that writes it."""


def _check_specs() -> Iterator[dg.AssetCheckSpec]:
    for checks in defs.asset_checks or ():
        if isinstance(checks, dg.AssetChecksDefinition):
            yield from checks.check_specs
    for assets in defs.assets or ():
        if isinstance(assets, dg.AssetsDefinition):
            yield from assets.check_specs


def _table(table: Table) -> str:
    spec = _SPECS.get(table.name)
    facts = [
        ("Group", f"`{table.group}`"),
        ("Key", ", ".join(f"`{name}`" for name in table.key)),
        ("Consumes", _names(table.consumes)),
        ("Reads as a snapshot", _names(table.reads)),
        ("Feedback", _names(table.feedback())),
        ("Landing zones", ", ".join(f"`landing/{zone}`" for zone in table.zones)),
        ("Rows", "one per key; replaced" if table.replaces_rows else "appended, never changed"),
    ]
    columns = [
        (f"`{c.name}`", f"`{c.data_type.simpleString()}`", c.unit or "", "yes" if c.nullable else "", c.description)
        for c in table.columns
    ]
    return "\n".join(
        (
            f"## {table.name}\n",
            f"{(spec and spec.description) or ''}\n",
            _grid(("", ""), [(name, value) for name, value in facts if value]),
            _grid(("Column", "Type", "Unit", "Nullable", "Meaning"), columns),
        )
    )


_SPECS = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(f"[`{table.name}`](#{table.name})" for table in tables)


def _options(parameters: Iterable[click.Parameter]) -> str:
    rows = []
    for each in parameters:
        if isinstance(each, click.Option):
            names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
            kind = "" if each.is_flag else each.type.name
            choices = "|".join(each.type.choices) if isinstance(each.type, click.Choice) else kind
            default = each.default if each.show_default else ""
            rows.append((names, choices, "required" if each.required else default, each.help or ""))
    return _grid(("Option", "Value", "Default", "Meaning"), rows) if rows else ""


def _type_name(annotation: Any) -> str:
    return f"`{annotation.__name__ if isinstance(annotation, type) else annotation}`".replace("typing.", "")


def _default(field: Any) -> str:
    if field.default_factory is not None and field.is_required() is False:
        return "by the machine"
    return f"`{field.default}`" if field.default not in ("", None) else ""


def _grid(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [tuple(header)]
    lines += [("---",) * len(lines[0]), *(tuple(_cell(value) for value in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_pages() -> None:
    """Write every page below docs/."""
    for path, text in PAGES.items():
        (Path(__file__).parents[1] / path).write_text(text())


def _cell(value: Any) -> str:
    return " ".join(str(value if value is not None else "").split()).replace("|", "\\|")


if __name__ == "__main__":
    write_pages()

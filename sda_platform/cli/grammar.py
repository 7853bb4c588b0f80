"""The grammar of `sda`: nouns with verbs, options with one meaning each, and what a failure looks like.

A command is a noun and a verb (`sda alert list`). Verbs that concern the whole platform, or need none, stand alone.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial, reduce, wraps
from pathlib import Path
from typing import Any, Final

import click
from typing_extensions import override

from sda_platform.cli.listing import FORMS, Output, print_json
from sda_platform.foreign_text import printable

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

POSITIVE: Final = click.FloatRange(min=0, min_open=True)
"""The type of options that are numbers above zero."""
MOMENT: Final = "a time (2026-05-01T12:00Z, mission:2026-05-01T12:00Z), an ALERT (ALERT@N: its revision N), versions (tracks=12,…), a tag (tag:NAME) or a .json file of versions"  # noqa: E501
PATH: Final = click.Path(path_type=Path)
FILE: Final = click.Path(path_type=Path, dir_okay=False)
FOUND_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER: Final = click.Path(path_type=Path, file_okay=False)
default_option: Final = partial(click.option, show_default=True)
"""An option with a default that the help shows."""
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option of a command that prints facts, but no rows."""

_HOME: Final = "--home"

RENAMED: Final[Mapping[str, str]] = {
    "acknowledge": "lake accept", "alerts": "alert list", "audit": "lake audit", "cdm": "alert cdm",
    "collect": "collector run", "diff": "lake diff", "explain": "alert explain", "feed": "collector feed",
    "impact": "lake impact", "layout": "lake layout", "reconcile": "lake reconcile", "replay": "lake replay",
    "reprocess": "lake reprocess", "retention tag": "lake tag",
    "retention untag": "lake untag", "retention verify-tags": "lake verify-tags", "retention": "lake retention",
    "schedule": "sensor schedule", "serve": "catalog serve", "show": "alert show", "sources": "collector status",
    "sql": "lake sql", "trace": "alert trace", "verify": "lake verify",
}  # fmt: skip
"""Earlier names of commands → their names, for this release; a name comes after those that begin with it."""


class _Span(click.ParamType[int]):
    name = "span"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from sda_platform.clock import parse_span_ns

        try:
            return parse_span_ns(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SPAN: Final = _Span()
"""The type of options that are spans of time, such as 3d; the command gets nanoseconds."""


class Commands(click.Group):
    """All commands, in sections. Earlier names still run. A failure that the user can correct is one line."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sections: dict[str, tuple[click.Command, ...]] = {}

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add ``commands`` below ``title`` of the help."""
        self._sections[title] = commands
        for command in commands:
            self.add_command(command)

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, commands in self._sections.items():
            with formatter.section(title):
                limit = formatter.width - width - 6
                rows = [(f"{each.name:{width}}", each.get_short_help_str(limit)) for each in commands]
                formatter.write_dl(rows)

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``--home`` in any place: no command has an option of this name, or an argument that begins like it."""
        first: list[str] = []
        rest = iter(args)
        others = []
        for each in rest:
            if each == "--":
                others += [each, *rest]
            elif each == _HOME:
                if (value := next(rest, None)) is None:
                    raise click.BadOptionUsage(_HOME, f"Option '{_HOME}' requires an argument.", ctx)
                first += [each, value]
            elif each.startswith(f"{_HOME}="):
                first.append(each)
            else:
                others.append(each)
        return super().parse_args(ctx, [*first, *others])

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        for old, new in RENAMED.items():
            count = len(old.split())
            if args[:count] == old.split():
                click.echo(f"`sda {old}` is now `sda {new}`", err=True)
                args = [*new.split(), *args[count:]]
                break
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.exceptions.Exit, BrokenPipeError):  # click ends a pipe that nobody reads
            raise
        except click.ClickException as error:
            raise click.ClickException(printable(error.message)) from None
        except Exception as error:
            from sda_platform.cli.errors import EXPECTED

            if not isinstance(error, EXPECTED):
                raise
            text = str(error)
            if isinstance(error, OSError) and error.filename is not None:
                text = f"{error.filename}: cannot be read or written: {error.strerror}"
            raise click.ClickException(printable(text)) from None


def lists_rows(*other_forms: str, limit: int | None = None) -> Decorator:
    """Return the options of a command that lists rows; the command gets them as ``output``.

    ``other_forms`` are those that it has besides. ``limit``: the most rows of a table, where it has ``--limit``. JSON
    and CSV have all rows, unless ``--limit`` is given.
    """
    forms = click.Choice([*FORMS, *other_forms])
    options = [
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option("--csv", "as_csv", is_flag=True, help="The same as --format csv."),
        click.option("--format", "form", type=forms, default="table", show_default=True, help="Form of the list."),
    ]
    if limit:
        text = f"Most rows (default: {limit} in a table, all in JSON and CSV)."
        options.append(click.option("--limit", "most", type=click.IntRange(1), help=text))

    def declared(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*args: Any, form: str, as_json: bool, as_csv: bool, most: int | None = None, **others: Any) -> Any:
            form = "json" if as_json else "csv" if as_csv else form
            output = Output(form, most or (limit if form == "table" else None))
            return command(*args, output=output, **others)

        return all_of(*options)(run)

    return declared


def all_of(*options: Decorator) -> Decorator:
    """Combine several options into one decorator."""
    return lambda command: reduce(lambda decorated, option: option(decorated), options, command)


def moment_option(default: str, text: str) -> Decorator:
    """Return the option of a command that reads all tables as they stood at one moment."""
    return click.option("--as-of", default=default, show_default=bool(default), help=f"{text}: {MOMENT}.")


def errors_as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where JSON is asked for, print the fields of an expired version as JSON; the exit code is 1."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        from sda_platform.history.errors import VersionExpired

        try:
            return command(*args, **options)
        except VersionExpired as error:
            if not (options.get("as_json") or options.get("output", Output()).form == "json"):
                raise
            print_json({"error": error.to_dict()})
            sys.exit(1)

    return run


def positive(name: str, default: float, text: str = "") -> Decorator:
    """An option that is a number above zero, with a default that the help shows."""
    return click.option(name, type=POSITIVE, default=default, show_default=True, help=text or None)


def instant(text: str, option: str) -> int:
    """``text`` as ns since 1970, by the clock of the home. Raises BadParameter, which names ``option``."""
    from sda_platform.clock import MissionClock, parse_instant_ns

    try:
        return parse_instant_ns(text, MissionClock.load(click.get_current_context().obj.home).now_ns())
    except ValueError:
        reason = f"{text!r} is no ISO 8601 instant, and none of now, yesterday, today, tomorrow, +3d, -12h"
        raise click.BadParameter(reason, param_hint=option) from None

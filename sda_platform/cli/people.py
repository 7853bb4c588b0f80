"""What commands share: output, errors in one line, scenarios, and the lake without an engine."""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text
from typing_extensions import override

from sda_platform.foreign_text import printable
from sda_platform.settings import Settings

SCENARIOS = ("nominal", "fragmentation", "outage")
"""The scenarios of the simulation that a person may choose."""
STORY = "story"
"""What the demo shows unless another scenario is asked for."""
CONSTELLATION = "constellation"
"""One more, which only simulates files: observers in orbit alone."""
POSITIVE = click.FloatRange(min=0, min_open=True)
"""The type of options that are numbers above zero."""
# Piped output keeps its columns.
_PIPED_WIDTH = 140


class PeopleConsole(Console):
    """A terminal for people: text is shown as it is, without markup, emoji or control characters.

    What is coloured is a `Text`. Names and messages that others wrote need no escape.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    @override
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable.plain = printable(renderable.plain)
        return super().render(renderable, options)


console = PeopleConsole(soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def positive(name: str, default: float, text: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that is a number above zero, with a default that the help shows."""
    return click.option(name, type=POSITIVE, default=default, show_default=True, help=text or None)


def for_people(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn expected failures into one line instead of a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from sda_platform.cli.errors import EXPECTED

        try:
            return command(*args, **kwargs)
        except EXPECTED as error:
            raise click.ClickException(printable(_in_words(error))) from None

    return run


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: cannot be read or written: {error.strerror}"
    return str(error)


def instant(text: str, option: str) -> int:
    """``text``, ISO 8601, as ns since 1970. Raises BadParameter, which names ``option``."""
    from sda_platform.clock import parse_iso_ns

    try:
        return parse_iso_ns(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO 8601 instant", param_hint=option) from None


def lake_of(
    settings: Settings, session: Callable[[], Any] | None = None, run_id: str = "none", *, may_be_new: bool = False
) -> Any:
    """The lake of ``settings``, with ``session`` or read without an engine. Raises PlatformError as `require_used`.

    ``may_be_new``: for commands that write, and whose answer rests on nothing that the home holds.
    """
    from sda_platform.clock import MissionClock
    from sda_platform.lake.lake import Lake, without_session

    if not may_be_new:
        require_used(settings)
    return Lake(settings.lake_uri, MissionClock.load(settings.home), session or without_session, run_id)


def require_used(settings: Settings) -> None:
    """Raise PlatformError if the home of ``settings`` is none: its empty answer would read as an all-clear."""
    from sda_platform.runtime.platform_home import require_home

    require_home(settings.home, settings.lake_uri, settings.landing_uri)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``. Raises ClickException, which names the file and the reason."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from None

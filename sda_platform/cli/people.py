"""What commands share: the terminal, scenarios, and the lake without an engine."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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

    def print_lines(self, lines: Iterable[RenderableType]) -> None:
        """Print each of ``lines``, as they come."""
        for line in lines:
            self.print(line)


console = PeopleConsole(soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def lake_of(
    settings: Settings, session: Callable[[], Any] | None = None, run_id: str = "none", *, may_be_new: bool = False
) -> Any:
    """Return the lake of ``settings``, with ``session`` or read without an engine. Raises PlatformError as
    `require_used`.

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


def write_key(file: Path) -> None:
    """Make an Ed25519 key in ``file`` and its public key beside it, and print the fingerprint. Raises UnusableKey."""
    from sda_platform.signing_keys import make_key

    public, fingerprint = make_key(file)
    console.print(f"written: {file}, readable by you alone, and {public}")
    console.print(f"fingerprint: {fingerprint}")


def command_log(settings: Settings, station: str, *, may_be_new: bool = False) -> Any:
    """Return the log of a station's commands, in the name of this commander. Raises CommandersError, UnusableKey."""
    from sda_platform.ground.commanders import command_authority
    from sda_platform.ground.log import CommandLog

    authority = command_authority(settings.access.commanders, settings.access.commander_key)
    return CommandLog(lake_of(settings, may_be_new=may_be_new), settings.landing_uri, station, authority)


def site_of(settings: Settings) -> Any:
    """Return the site that signs edits. Raises SitesError."""
    from sda_platform.catalog.sites import editing_site

    return editing_site(settings.site, settings.access.site_key, settings.access.sites)

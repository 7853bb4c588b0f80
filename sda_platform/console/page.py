"""What every page of the console has: its frame, its headers, and the line that says how current it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from sda_platform.clock import iso_to_second
from sda_platform.conjunction.currency import words_of
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.console.overview import Overview, Overviews
from sda_platform.console.readers import ConsoleReader
from sda_platform.counts import counted
from sda_platform.foreign_text import Html
from sda_platform.formats.fleet import ProtectedObject, protected_fleet
from sda_platform.html_elements import element, joined
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.history import faults_now
from sda_platform.settings import Settings
from sda_platform.units import SECOND_NS

STATIC: Final = Path(__file__).with_name("static")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every page: it loads its own files alone, and runs no script that stands in it."""


_MOST_FAULTS: Final = 3
_PAGES: Final = {
    "": "Conjunctions", "waiting": "What waits", "objects": "Catalogue", "sensors": "Sensors", "schedule": "Schedule",
}  # fmt: skip
"""The pages that each page leads to, by path."""


@dataclass(frozen=True)
class ConsoleContext:
    """What pages are made from. ``is_running``: whether the platform of the home runs; ``ui_url``: of Dagster, or None.

    The files of the fleet and of the sensors that ``settings`` name are read anew for each page. ``reader``: who sends
    a request with this header `Authorization`.
    """

    lake: Lake
    settings: Settings
    overviews: Overviews
    is_running: Callable[[], bool]
    ui_url: Callable[[], str | None]
    reader: Callable[[str], ConsoleReader] = lambda _: ConsoleReader()

    def members(self) -> Sequence[ProtectedObject]:
        """Return the fleet. Raises ListingError."""
        return fleet_of(self.settings)

    def asset_url(self, asset: str) -> str | None:
        """Return the address of an asset in Dagster; None where no UI is known."""
        ui_url = self.ui_url()
        return f"{ui_url}/assets/{asset}" if ui_url else None


def fleet_of(settings: Settings) -> Sequence[ProtectedObject]:
    """Return the fleet that the settings name. Raises ListingError."""
    return protected_fleet(settings.screening.fleet_file)


def page(
    context: ConsoleContext,
    title: str,
    *content: object,
    root: str = "",
    status: int = 200,
    event: str | None = None,
    asset: str = CONJUNCTION_ALERTS.name,
) -> Response:
    """Answer with a page; ``root`` leads from it to the console's first page: "", or "../" from one folder below.

    ``event``: the id of the conjunction that it is about, whose revisions its script reports. ``asset``: what it shows,
    in Dagster. All other links are relative, so that a proxy may serve the console below any path.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("link", rel="icon", href=f"{root}static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href=f"{root}static/console.css"),
        element("script", src=f"{root}static/console.js", defer=True),
    )
    asset_url = context.asset_url(asset)
    links = [
        *(element("a", text, href=f"{root}{path}" or "./") for path, text in _PAGES.items()),
        element("a", "Dagster", href=asset_url) if asset_url else None,
    ]
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        element("header", element("nav", *links, aria_label="Pages"), element("p", id="connection", role="status")),
        element("main", *content, id="content"),
        data_root=root,
        data_event=event,
    )
    text = f'<!doctype html><html lang="en">{head}{body}</html>\n'
    return Response(text, status, HEADERS, "text/html")


def ahead(time_ns: int, now_ns: int) -> str:
    """Say how far ahead a time is, or how long ago it passed."""
    seconds = (time_ns - now_ns) / SECOND_NS
    return f"in {words_of(seconds)}" if seconds > 0 else f"passed {words_of(-seconds)} ago"


def badge(level: str) -> Html:
    """Make the mark of a level."""
    return element("span", level, class_=f"level {level}")


def currency(context: ConsoleContext, overview: Overview) -> Html:
    """Make the lines that say as of when the page is, what it rests on, and what is wrong with that."""
    now, warnings = overview.currency, []
    facts: list[tuple[str, str]] = [("As of", iso_to_second(now.now_ns))]
    if now.screened:
        facts.append(("Screened", now.screened))
    else:
        warnings.append("Nothing was screened yet: an empty table is no all-clear.")
    if now.has_passed:
        warnings.append("The screened span has passed: later conjunctions are not known.")
    if now.ages:
        facts.append(("Catalogue", f"{now.objects:,} objects, element sets {now.ages}"))
    else:
        warnings.append("The catalogue has no object.")
    is_running = context.is_running()
    facts.append(("Platform", "running" if is_running else "not running in this home"))
    if not is_running:
        warnings.append("No platform runs in this home: nothing new is screened.")
    elif faults := faults_now(context.settings.home.absolute()):
        facts[-1] = ("Platform", f"running, {counted(len(faults), 'fault')}")
        warnings += [f"Fault: {text}" for text in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            warnings.append(f"{len(faults) - _MOST_FAULTS} more faults: see What waits.")
    warnings += [f"Not among the alerts: {text}" for text in overview.missing]
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in facts)
    lines = (element("li", text) for text in warnings)
    return joined(
        element("dl", *pairs, class_="currency"),
        element("div", element("ul", *lines), class_="warnings", role="alert") if warnings else None,
    )


def object_link(row: Mapping[str, Any], n: int, root: str = "") -> Html:
    """Link to the page of an object of a conjunction; one without a number is only named."""
    number, name = row[f"norad_id_{n}"], row[f"object_name_{n}"] or "unnamed"
    return element("a", f"{name} ({number})", href=f"{root}objects/{number}") if number else element("span", name)

"""`sda status`: the state of the platform as tables of text."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from sda_platform.cli.listing import Output, grid, number, word, words
from sda_platform.cli.people import console
from sda_platform.clock import iso_to_second
from sda_platform.conjunction.currency import words_of
from sda_platform.landing.decoding import FATES
from sda_platform.observability.services import ServiceState
from sda_platform.observability.status import PlatformStatus
from sda_platform.observability.vitals.evaluation import advice
from sda_platform.observability.vitals.faults import Reading, VitalState
from sda_platform.observability.vitals.past_faults import past_faults
from sda_platform.published import url_of
from sda_platform.settings import Settings


def show_status(settings: Settings, found: PlatformStatus, services: Sequence[ServiceState]) -> None:
    from sda_platform.runtime.platform_home import running_platform
    from sda_platform.runtime.verification import last_verification

    where = _where(running_platform(settings.home.absolute()))
    console.print(f"platform at {settings.home.absolute()}: {where}\nmission time {found.mission_time_utc}")
    for each in services:
        console.print(f"{each.service} at {url_of(settings.home, each.service)}: {each.summary}")
        for problem in each.problems:
            console.print(f"  {problem}", style="red")
    console.print(f"lake {last_verification(settings.home)}\n")
    used = [each for each in found.tables if each.version >= 0 or each.backlog]
    console.print(grid(TABLE_COLUMNS, used))
    _print_unused("table", [each.table for each in found.tables if each not in used])
    busy = [each for each in found.zones if each.backlog.segments or any(getattr(each, fate) for fate in FATES)]
    if busy:
        console.print(grid(_ZONE_COLUMNS, busy))
    _print_unused("landing zone", [each.zone for each in found.zones if each not in busy])
    if found.letters:
        console.print()
        console.print(grid(_LETTER_COLUMNS, found.letters))
    for red in found.red:
        console.print(Text.assemble(("red: ", "red"), f"{red}\n  {red.remedy}"))
    show_vitals(found.vitals)


def _where(state: Mapping[str, Any] | None) -> str:
    if state is None:
        return "not running (start it with `sda up`)"
    if "webserver" not in state.get("processes", ()):
        return "starting, or standing by for another site"
    return f"running, UI at {state['addresses']['webserver']}"


def show_history(settings: Settings, output: Output) -> None:
    """Print the faults of the past, the newest first."""
    output.show(past_faults(settings.home), _FAULT_COLUMNS, nothing="no fault was recorded")


def _print_unused(what: str, names: Sequence[str]) -> None:
    if names:
        console.print(f"{len(names)} more {what}{'s' * (len(names) > 1)} without data: {', '.join(names)}")


def _second(time_ns: int | None, absent: str) -> str:
    return absent if time_ns is None else iso_to_second(time_ns)


def show_vitals(readings: Sequence[Reading]) -> None:
    """The red vitals with the side at fault, then which are unknown and how many are green."""
    by_state = {state: [each for each in readings if each.state == state] for state in VitalState}
    for reading in by_state[VitalState.RED]:
        console.print(Text.assemble(("red: ", "red"), str(reading)))
        console.print(Text(f"  {advice(reading.vital)}", "dim"))
    line = f"\nvitals: {len(by_state[VitalState.RED])} red, {len(by_state[VitalState.GREEN])} green"
    if by_state[VitalState.UNKNOWN]:
        unknown = ", ".join(each.vital for each in by_state[VitalState.UNKNOWN])
        line += f"; unknown while no platform runs here: {unknown}"
    console.print(line)


TABLE_COLUMNS: Final = (
    word("table", "table"),
    number("rows", lambda table: f"{table.rows:,}"),
    number("version", lambda table: "–" if table.version < 0 else str(table.version)),
    number("committed", lambda table: "never" if table.age_s is None else f"{words_of(table.age_s)} ago"),
    word("watermark", lambda table: table.watermark_utc[11:19] if table.watermark_utc else "–"),
    number("backlog", "backlog"),
    word("last run", lambda table: (table.last_run or "–")[:8]),
)
_FAULT_COLUMNS = (
    word("begun", lambda fault: _second(fault.begun_time_ns, "earlier")),
    word("over", lambda fault: _second(fault.over_time_ns, "it lasts")),
    words("vital", "vital"),
    words("side", "side"),
    words("reason", lambda fault: fault.text),
)
_ZONE_COLUMNS = (
    word("\nlanding zone", "zone"),
    number("\npending", lambda zone: f"{zone.backlog.segments:,}"),
    number("\nbytes", lambda zone: f"{zone.backlog.bytes:,}"),
    number("\noldest", lambda zone: "–" if zone.backlog.oldest_s is None else words_of(zone.backlog.oldest_s)),
    *(number(f"24 h:\n{fate}", fate) for fate in FATES),
)
_LETTER_COLUMNS = (
    number("dead letters (24 h)", lambda kind: f"{kind.letters:,}"),
    words("kind", "kind"),
    words("class", "disposition"),
    words("mostly from", "source"),
    word("newest", "newest_utc"),
)

"""`sda status`: the state of the platform as tables of text."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from sda_platform.cli.people import console
from sda_platform.observability.services import ServiceState
from sda_platform.observability.vitals.faults import Reading, VitalState
from sda_platform.settings import Settings


def show_status(settings: Settings, found: Any, services: Sequence[ServiceState]) -> None:
    from sda_platform.observability.status import table_lines
    from sda_platform.runtime.platform_home import running_platform
    from sda_platform.runtime.verification import last_verification

    state = running_platform(settings.home.absolute())
    where = f"running, UI at {state['addresses']['webserver']}" if state else "not running (start it with `sda up`)"
    console.print(f"platform at {settings.home.absolute()}: {where}\nmission time {found.mission_time_utc}")
    for each in services:
        console.print(f"{each.service} at http://{each.address}: {each.summary}")
        for problem in each.problems:
            console.print(f"  {problem}", style="red")
    console.print(f"lake {last_verification(settings.home)}\n")
    grid = Grid("table", "rows", "version", "committed", "watermark", "backlog", "last run", box=None)
    for column in grid.columns:
        column.no_wrap = True
        column.justify = "right" if column.header in {"rows", "version", "committed", "backlog"} else "left"
    for line in table_lines(found.tables):
        grid.add_row(*line)
    console.print(grid)
    _show_landing(found)
    for each in found.red:
        console.print(Text.assemble(("red: ", "red"), f"{each}\n  {each.remedy}"))
    show_vitals(found.vitals)


def _show_landing(found: Any) -> None:
    from sda_platform.landing.decoding import FATES

    zones = Grid("\nlanding zone", "\npending", "\nbytes", "\noldest", *(f"{fate}\n(24 h)" for fate in FATES), box=None)
    for zone in found.zones:
        backlog = zone.backlog
        oldest = "–" if backlog.oldest_s is None else f"{backlog.oldest_s:,.0f} s"
        fates = [f"{getattr(zone, fate):,}" for fate in FATES]
        zones.add_row(zone.zone, f"{backlog.segments:,}", f"{backlog.bytes:,}", oldest, *fates)
    console.print(zones)
    if found.letters:
        letters = Grid("\ndead letters (24 h)", "\nkind", "\nclass", "\nmostly from", "\nnewest", box=None)
        for each in found.letters:
            letters.add_row(f"{each.letters:,}", each.kind, each.disposition, each.source, each.newest_utc)
        console.print(letters)


def show_vitals(readings: Sequence[Reading]) -> None:
    """The red vitals with the side at fault, then which are unknown and how many are green."""
    by_state = {state: [each for each in readings if each.state == state] for state in VitalState}
    for reading in by_state[VitalState.RED]:
        console.print(Text.assemble(("red: ", "red"), str(reading)))
    line = f"\nvitals: {len(by_state[VitalState.RED])} red, {len(by_state[VitalState.GREEN])} green"
    if by_state[VitalState.UNKNOWN]:
        unknown = ", ".join(each.vital for each in by_state[VitalState.UNKNOWN])
        line += f"; unknown while no platform runs here: {unknown}"
    console.print(line)

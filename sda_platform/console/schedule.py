"""The schedule of the sensors: what will be observed by whom, what no sensor serves, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from sda_platform.clock import iso
from sda_platform.console.observing import Row, booked, names_of, requests_ahead
from sda_platform.console.page import ConsoleContext, ahead, currency, page
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined, labelled, section, table
from sda_platform.plots import svg_of
from sda_platform.tasking.pictures import gantt_chart
from sda_platform.tasking.reports import owner_shares
from sda_platform.tasking.tables import PASS_SCHEDULE, SCHEDULED
from sda_platform.units import HOUR_NS

_MOST: Final = 200
_SHOWN_H: Final = 6
_TASKS: Final = ("begins (UTC)", "in", "sensor", "object", "class", "reason", "owner", "elevation")
_UNSERVED: Final = ("object", "class", "reason", "owner", "deadline (UTC)", "why")


def schedule_page(context: ConsoleContext, sensor: str, object_: str) -> Response:
    """Answer with the schedule; ``sensor`` and ``object_``: parts of the name or number, empty for all."""
    lake, overview = context.lake, context.overviews.now()
    now_ns, requests = lake.clock.now_ns(), requests_ahead(lake)
    names = names_of(lake, {row["norad_id"] for row in requests})
    selected = [
        row
        for row in requests
        if sensor.casefold() in (row["source_id"] or "").casefold()
        and object_.casefold() in f"{row['norad_id']} {names.get(row['norad_id'], '')}".casefold()
    ]
    tasks = booked(selected)
    unserved = [row for row in selected if row["status"] != SCHEDULED] if not sensor else []
    classes = Counter(row["priority_class"] for row in selected)
    served = Counter(row["priority_class"] for row in tasks)
    counts = ", ".join(f"class {each}: {served[each]:,} of {classes[each]:,}" for each in sorted(classes))
    shown = f"The first {_MOST:,} of {len(tasks):,} are shown." if len(tasks) > _MOST else f"{len(tasks):,} booked."
    if not requests:
        nothing = element("p", "No observation is requested. `sda sensor tasks` lists earlier ones.", class_="none")
        return page(context, "Schedule", element("h1", "Schedule"), currency(context, overview), nothing,
                    asset=PASS_SCHEDULE.name)  # fmt: skip
    return page(
        context,
        "Schedule",
        element("h1", "Schedule"),
        currency(context, overview),
        _form(sensor, object_),
        element("p", f"Requests served: {counts or 'none'}. {shown} ", _downloads(), class_="count"),
        section("Not served", _unserved(unserved, names, now_ns)) if unserved else None,
        section("Observations", task_table(tasks[:_MOST], names, now_ns)),
        section(f"Next {_SHOWN_H} hours", element("img", src="schedule/sensors.svg", alt=_PICTURE, class_="figure")),
        section("Service by owner", _owners(selected)) if selected else None,
        asset=PASS_SCHEDULE.name,
    )


_PICTURE: Final = "Observations of each sensor of the next hours by class"


def schedule_picture(context: ConsoleContext) -> str:
    """Return the observations of each sensor in the next hours as SVG."""
    now_ns = context.lake.clock.now_ns()
    tasks = booked(requests_ahead(context.lake))
    return svg_of(gantt_chart([row for row in tasks if row["start_time_ns"] < now_ns + _SHOWN_H * HOUR_NS], now_ns))


def task_table(tasks: Iterable[Row], names: Mapping[int, str], now_ns: int, root: str = "") -> Html:
    """Make the table of scheduled observations; ``root`` leads to the console's first page."""
    rows = (
        (
            element("time", iso(row["start_time_ns"])[:19].replace("T", " "), datetime=iso(row["start_time_ns"])),
            ahead(row["start_time_ns"], now_ns) if row["start_time_ns"] > now_ns else "now",
            element("a", row["source_id"], href=f"{root}sensors/{row['source_id']}"),
            _object(row, names, root),
            row["priority_class"],
            row["reason"].replace("_", " "),
            row["owner"],
            f"{row['max_elevation_deg']:.0f}°",
        )
        for row in tasks
    )
    return table("Observations", _TASKS, rows)


def _object(row: Row, names: Mapping[int, str], root: str) -> Html:
    number = row["norad_id"]
    return element("a", f"{names.get(number, 'unnamed')} ({number})", href=f"{root}objects/{number}")


def _unserved(rows: Sequence[Row], names: Mapping[int, str], now_ns: int) -> Html:
    ordered = sorted(rows, key=lambda row: (row["priority_class"], row["deadline_time_ns"]))[:_MOST]
    cells = (
        (
            _object(row, names, ""),
            row["priority_class"],
            row["reason"].replace("_", " "),
            row["owner"],
            f"{iso(row['deadline_time_ns'])[:16].replace('T', ' ')}, {ahead(row['deadline_time_ns'], now_ns)}",
            row["unserved_detail"] or row["unserved_reason"].replace("_", " "),
        )
        for row in ordered
    )
    return table("Not served", _UNSERVED, cells)


def _owners(rows: Sequence[Row]) -> Html:
    shares: list[dict[str, Any]] = owner_shares(rows)
    return table("Service by owner", list(shares[0]), [list(each.values()) for each in shares])


def _downloads() -> Html:
    links = {"JSON": "schedule?format=json", "for SensorKit": "schedule?format=sensorkit"}
    return joined(*(part for text, href in links.items() for part in (element("a", text, href=href), " ")))


def _form(sensor: str, object_: str) -> Html:
    fields = {"sensor": ("Sensor", sensor), "object": ("Object", object_)}
    inputs = (
        labelled(title, element("input", type="search", name=name, value=value, maxlength=200))
        for name, (title, value) in fields.items()
    )
    return element("form", *inputs, element("button", "Show", type="submit"), method="get", role="search")

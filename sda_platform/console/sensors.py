"""The sensors: a list with what each observed, and a page of each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds
from starlette.responses import Response

from sda_platform.arrays import IntArray
from sda_platform.clock import iso_to_second
from sda_platform.conjunction.currency import words_of
from sda_platform.console.observing import (
    biases,
    booked,
    names_of,
    network,
    observed_times,
    requests_ahead,
)
from sda_platform.console.page import ConsoleContext, ahead, currency, page
from sda_platform.console.schedule import task_table
from sda_platform.console.sensor_figures import bias_figure, sky_figure, times_figure
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.foreign_text import Html
from sda_platform.formats.closures import usable_closures
from sda_platform.html_elements import element, joined, labelled, section, table
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.observability.sensor_states import SensorState, sensor_states, silences_among
from sda_platform.orbits.sensing.sensors import Sensor, SensorNetwork
from sda_platform.tasking.reports import outcomes_by_sensor, sensor_use
from sda_platform.tasking.stored_outcomes import recent_outcomes
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import PASS_WINDOWS
from sda_platform.units import DAY_NS, SECOND_NS

NONE: Final = "–"
_MOST: Final = 500
_MOST_TASKS: Final = 20
_MOST_GAPS: Final = 20
_LISTED: Final = (
    "sensor", "state", "last observation", "observations, 24 h", "time-tag bias ms", "residuals, sigmas", "booked",
    "next",
)  # fmt: skip
_WINDOW: Final = ["norad_id", "source_id", "aos_time_ns", "los_time_ns"]
Row = Mapping[str, Any]


class UnknownSensor(Exception):
    """No sensor of this name is listed or has reported."""


def sensors_page(context: ConsoleContext, text: str) -> Response:
    """Answer with the sensors whose name contains ``text``, the silent ones first."""
    lake, sensors = context.lake, network(context)
    states = _states(context, sensors)
    found = [each for each in states if text.casefold() in _searched(each, sensors).casefold()]
    counts, offsets = {name: len(times) for name, times in observed_times(lake).items()}, biases(lake)
    ahead_of = _by_sensor(booked(requests_ahead(lake)))
    now_ns = lake.clock.now_ns()

    def row(each: SensorState) -> Sequence[object]:
        name, tasks = each.source_id, ahead_of.get(each.source_id)
        newest = offsets[name][-1] if name in offsets else None
        return (
            _link(name, sensors.get(name)),
            _state(each, now_ns),
            NONE if each.heard_ns is None else ahead(each.heard_ns, now_ns).removeprefix("passed "),
            f"{counts.get(name, 0):,}",
            _bias(newest),
            f"{newest['residual_rms']:.2f}" if newest else NONE,
            f"{len(tasks):,}" if tasks else NONE,
            ahead(tasks[0]["start_time_ns"], now_ns) if tasks else NONE,
        )

    silent = sum(each.silence is not None for each in found)
    cut = f" The first {_MOST} are shown." if len(found) > _MOST else ""
    search = element("input", type="search", name="text", value=text, maxlength=200)
    form = element(
        "form",
        labelled("Sensor", search),
        element("button", "Search", type="submit"),
        method="get",
        role="search",
    )
    return page(
        context,
        "Sensors",
        element("h1", "Sensors"),
        currency(context, context.overviews.now()),
        form,
        element("p", f"{len(found):,} sensors, {silent:,} silent.{cut}", class_="count"),
        table("Sensors", _LISTED, map(row, found[:_MOST]), class_="listed"),
        asset=OBSERVATIONS.name,
    )


def sensor_page(context: ConsoleContext, source_id: str) -> Response:
    """Answer with the page of a sensor. Raises UnknownSensor."""
    lake, sensors = context.lake, network(context)
    state = _one(context, sensors, source_id)
    times, now_ns = observed_times(lake, source_id).get(source_id, _NO_TIMES), lake.clock.now_ns()
    tasks = _by_sensor(booked(requests_ahead(lake))).get(source_id, [])
    names = names_of(lake, {row["norad_id"] for row in tasks[:_MOST_TASKS]})
    offsets = biases(lake, source_id).get(source_id, [])
    own = sensors.get(source_id)
    pictures = [
        section("Observations of the last day", _picture(source_id, "times"), _silences(context, state, now_ns)),
        section("Where it looked", _picture(source_id, "sky")) if own and own.kind == "radar" and len(times) else None,
        section("Time-tag bias and residuals", _picture(source_id, "biases")) if offsets else None,
    ]
    return page(
        context,
        source_id,
        element("h1", f"{source_id}{f', {own.name}' if own else ''}"),
        element("p", _state(state, now_ns), f"; as of {iso_to_second(now_ns)}"),
        None if state.is_listed else element("p", f"{context.settings.fusion.why_not_used(source_id)}."),
        element(
            "div",
            section("Sensor", table("Sensor", (), _facts(context, state, own, times, offsets))),
            section("Coverage ahead", _coverage(context, source_id, tasks)),
            *pictures,
            section("Next observations", task_table(tasks[:_MOST_TASKS], names, now_ns, "../"), class_="whole"),
            section("Outcomes of the last day", _outcomes(context, source_id), class_="whole"),
            section("Refused records of the last day", _refused(context, source_id), class_="whole"),
            class_="report",
        ),
        root="../",
        asset=OBSERVATIONS.name,
    )


def sensor_picture(context: ConsoleContext, source_id: str, name: str) -> str | None:
    """Return a picture of a sensor as SVG; None where there is none of that name."""
    lake, now_ns = context.lake, context.lake.clock.now_ns()
    if name == "times":
        return times_figure(observed_times(lake, source_id).get(source_id, _NO_TIMES), now_ns)
    if name == "biases":
        return bias_figure(biases(lake, source_id).get(source_id, []), now_ns)
    if name == "sky" and (own := network(context).get(source_id)):
        where = (ds.field("sensor_time_ns") > now_ns - DAY_NS) & (ds.field("source_id") == source_id)
        rows = lake.log(OBSERVATIONS).rows(["azimuth_rad", "elevation_rad"], where)
        return sky_figure(rows["azimuth_rad"].to_numpy(), rows["elevation_rad"].to_numpy(), own.min_elevation_deg)
    return None


_NO_TIMES: Final = np.empty(0, np.int64)


def _states(context: ConsoleContext, sensors: SensorNetwork) -> list[SensorState]:
    closures = usable_closures(context.settings.scheduling.closure_file)
    return sensor_states(context.lake, context.settings.landing_uri, sensors, closures)


def _one(context: ConsoleContext, sensors: SensorNetwork, source_id: str) -> SensorState:
    for state in _states(context, sensors):
        if state.source_id == source_id:
            return state
    raise UnknownSensor(f"no sensor is named {source_id[:60]!r}")


def _by_sensor(tasks: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for task in tasks:
        found.setdefault(task["source_id"], []).append(task)
    return found


def _searched(state: SensorState, sensors: Mapping[str, Sensor]) -> str:
    return f"{state.source_id} {sensors[state.source_id].name if state.source_id in sensors else ''}"


def _link(name: str, sensor: Sensor | None) -> Html:
    return joined(element("a", name, href=f"sensors/{name}"), element("small", sensor.name) if sensor else None)


def _state(state: SensorState, now_ns: int) -> Html:
    lacking = None if state.is_listed else element("em", "not in the list of sensors", class_="differs")
    if state.silence:
        silent = element("em", f"silent for {words_of(state.silence.lasted_s(now_ns))}", class_="differs")
        return joined(silent, ", ", lacking) if lacking else silent
    if state.closure:
        return element("span", f"closed until {iso_to_second(state.closure.end_ns)}: {state.closure.reason}")
    return lacking or element("span", "never reported" if state.heard_ns is None else "reports")


def _bias(row: Row | None) -> str:
    if row is None:
        return NONE
    applied = ", corrected" if row["is_applied"] else ""
    return f"{1000 * row['offset_s']:+.1f} ± {1000 * row['sigma_s']:.1f}{applied}"


def _picture(source_id: str, name: str) -> Html:
    return element("img", src=f"{source_id}/{name}.svg", alt=_TEXTS[name], class_="figure")


_TEXTS: Final = {
    "times": "Observations per quarter of an hour of the last day",
    "sky": "Directions of the observations of the last day, azimuth and elevation, with the lowest elevation",
    "biases": "Time-tag bias with one sigma, and residuals in sigmas, of each term of the last day",
}


def _facts(
    context: ConsoleContext, state: SensorState, own: Sensor | None, times: IntArray, offsets: Sequence[Row]
) -> Iterator[tuple[str, object]]:
    now_ns = context.lake.clock.now_ns()
    yield "kind", state.kind
    if own:
        yield "site", f"{own.latitude_deg:.4f}°, {own.longitude_deg:.4f}°, {own.altitude_m:.0f} m"
        yield "lowest elevation", f"{own.min_elevation_deg:g}°"
        yield "largest range", f"{own.max_range_km:,.0f} km"
        noises = {"azimuth": own.azimuth_sigma_rad, "elevation": own.elevation_sigma_rad, "angles": own.angle_sigma_rad}
        angles = [f"{name} {np.degrees(sigma):.4f}°" for name, sigma in noises.items() if not np.isnan(sigma)]
        lengths = [f"range {own.range_sigma_m:g} m"] if not np.isnan(own.range_sigma_m) else []
        yield "noise, 1 sigma", ", ".join([*angles, *lengths])
    if state.heard_ns is not None:
        age = words_of((now_ns - state.heard_ns) / SECOND_NS)
        yield (
            "last observation",
            f"{iso_to_second(state.heard_ns)}, {age} ago",
        )
    yield "observations of the last day", f"{len(times):,}"
    if offsets:
        newest = offsets[-1]
        yield "time-tag bias", f"{_bias(newest)} ms, from {newest['readings']:,} observations"
        yield "bias that its clock allows", f"{1000 * newest['bound_s']:g} ms"
        yield "residuals", f"{newest['residual_rms']:.2f} sigmas"


def _silences(context: ConsoleContext, state: SensorState, now_ns: int) -> Html:
    """List the times of the last day in which it was silent, the longest first, by the rule of the vital."""
    where = (ds.field("sensor_time_ns") > now_ns - DAY_NS) & (ds.field("source_id") == state.source_id)
    columns = ["source_id", "source_kind", "sensor_time_ns", "received_time_ns"]
    log = context.lake.log(OBSERVATIONS)
    found = silences_among(log.rows(columns, where), now_ns).to_pylist() if log.version() >= 0 else []
    rows = (
        (_moment(each["silent_from"]), _moment(each["silent_until"]), words_of(each["lasted_s"]))
        for each in found[:_MOST_GAPS]
    )
    return joined(element("h3", "Silent"), table("Silent", ("from", "until", "for"), rows))


def _moment(at: datetime | None) -> str:
    return "now" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _coverage(context: ConsoleContext, source_id: str, tasks: Sequence[Row]) -> Html:
    where = (ds.field("source_id") == source_id) & (ds.field("los_time_ns") > context.lake.clock.now_ns())
    windows = StoredRows(context.lake).current(PASS_WINDOWS, _WINDOW, where).to_pylist()
    return table("Coverage ahead", (), [fact for use in sensor_use(windows, tasks) for fact in list(use.items())[1:]])


def _outcomes(context: ConsoleContext, source_id: str) -> Html:
    found = recent_outcomes(context.lake, context.lake.clock.now_ns() - DAY_NS)
    rows = [each.row() for each in found if each.task.source_id == source_id]
    return table("Outcomes", (), [fact for one in outcomes_by_sensor(rows) for fact in list(one.items())[1:]])


def _refused(context: ConsoleContext, source_id: str) -> Html:
    recent = ds.field("received_time_ns") > context.lake.clock.now_ns() - DAY_NS
    log = context.lake.log(DEAD_LETTERS)
    rows = log.rows(["error_kind", "error"], recent & (ds.field("source_id") == source_id)).to_pylist()
    examples = {row["error_kind"]: row["error"] for row in rows}
    counts = Counter(row["error_kind"] for row in rows).most_common()
    return table("Refused records", ("kind", "records", "such as"), [(k, f"{n:,}", examples[k]) for k, n in counts])

"""The page of one conjunction: the sections of its report, with pictures and scripts as files of their own."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

from starlette.responses import Response

from sda_platform.catalog.lookup import UnknownObject, one_object
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import known_actions
from sda_platform.conjunction.alert_page import OF_ACTIONS, AlertReport, Row, orbit_viewer
from sda_platform.conjunction.data_origins import data_origins
from sda_platform.conjunction.encounter_facts import action_row
from sda_platform.conjunction.encounter_figures import history_figure, plane_figure
from sda_platform.conjunction.history import EventHistory, event_history
from sda_platform.conjunction.resource import policy_in_force
from sda_platform.console.actions import action_form
from sda_platform.console.object_facts import fleet_facts, orbit_facts
from sda_platform.console.page import HEADERS, ConsoleContext, ahead, badge, object_link, page
from sda_platform.console.readers import ConsoleReader
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined, section, table
from sda_platform.observability.trace import Trace, trace_event, trace_lines

PICTURES: Final[Mapping[str, Callable[[EventHistory], str]]] = {
    "history": history_figure,
    "plane": lambda history: plane_figure(history.last),
}
"""Pictures of an assessed conjunction by name."""
_PICTURE_HEADERS: Final = {**HEADERS, "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
"""A picture that a page shows loads nothing; its own styles stand in it."""
_TEXTS: Final = {
    "history": "Probability of collision and miss distance against hours to the closest approach, with the levels",
    "plane": "Encounter plane: both objects with their covariance ellipses, and the combined one",
}
_DRAWING: Final = Lock()


def event_page(context: ConsoleContext, event_id: str, reader: ConsoleReader) -> Response:
    """Answer with the page of a conjunction. Raises UnknownAlert."""
    story = trace_event(context.lake, event_id)
    now_ns, newest = context.lake.clock.now_ns(), story.newest
    names = " – ".join(newest[f"object_name_{n}"] or "unnamed" for n in (1, 2))
    actions = known_actions(context.lake, context.landing_uri, [story.alert_id]).get(story.alert_id, ())
    report = _report(context, story, actions, reader)
    level, status = report.state if report else (newest["risk"], newest["status"] or "open")
    title = element("h1", object_link(newest, 1, "../"), " – ", object_link(newest, 2, "../"))
    state = element(
        "p",
        badge(level),
        f" {status}; TCA {iso(newest['tca_time_ns'])}, ",
        element("strong", ahead(newest["tca_time_ns"], now_ns)),
    )
    as_of = element("p", f"As of {iso(now_ns)[:19]}Z. ", element("code", event_id))
    notice = element("p", id="revised", hidden=True, role="status")
    body = report.sections(_pictures(report, event_id)) if report else _stated(story, actions)
    form = action_form(story, actions, reader, "../")
    script = element("script", src="../console/orbit_view.js", defer=True) if report and report.has_states else None
    return page(context, names, title, state, as_of, notice, form, body, script, root="../", event=event_id)


def event_picture(context: ConsoleContext, event_id: str, name: str) -> Response | None:
    """Answer with a picture of PICTURES as SVG; None where the conjunction has none. Raises UnknownAlert."""
    history = event_history(context.lake, event_id)
    if name == "plane" and not history.last["state_1"]:
        return None
    with _DRAWING:  # matplotlib shares fonts between threads
        text = PICTURES[name](history)
    return Response(text, 200, _PICTURE_HEADERS, "image/svg+xml")


def _report(context: ConsoleContext, story: Trace, actions: Sequence[Row], reader: ConsoleReader) -> AlertReport | None:
    """Return the report of a conjunction that we have assessed."""
    if not story.assessments:
        return None
    history = EventHistory.of_correction_log(story.assessments, story.messages, policy_in_force(context.lake))
    return AlertReport(
        story.alert_id,
        story.alerts,
        history,
        actions,
        list(trace_lines(story))[1:],
        story.rests_on,
        data_origins(context.lake, [history.last]),
        {number: _facts(context, number, reader) for n in (1, 2) if (number := history.last[f"norad_id_{n}"])},
    )


def _facts(context: ConsoleContext, norad_id: int, reader: ConsoleReader) -> Mapping[str, str]:
    """Return what else is known of an object: orbit, size, operator, contact."""
    try:
        orbit = orbit_facts(context.lake, one_object(context.lake, norad_id))
    except UnknownObject:
        orbit = {}
    return {**orbit, **fleet_facts(context.members(), norad_id, with_contact=reader.may_act)}


def _pictures(report: AlertReport, event_id: str) -> dict[str, Html]:
    names = PICTURES if report.has_states else ("history",)
    found = {
        name: element("img", src=f"{event_id}/{name}.svg", alt=_TEXTS[name], class_=f"figure {name}") for name in names
    }
    return found | ({"orbits": orbit_viewer(report.history.last)} if report.has_states else {})


def _stated(story: Trace, actions: Sequence[Row]) -> Html:
    """An event that we have not assessed: only received messages have it."""
    newest = story.newest
    facts = {
        "miss": f"{newest['miss_distance_km']:.3f} km, as {newest['stated_by']} states",
        "Pc": f"{newest['stated_probability']:.2e} by {newest['stated_by']}",
    }
    rows = (
        (m["originator"] or "unknown", iso(m["tca_time_ns"]), f"{m['miss_distance_km']:.3f}") for m in story.messages
    )
    why = "Our screening has no such event: the objects' element sets, or the screening volume, differ."
    return joined(
        section("Encounter", element("p", why), table("Encounter", (), facts.items())),
        section("Received messages", table("Received messages", ("originator", "TCA (UTC)", "miss km"), rows)),
        section("Hand-over log", table("Hand-over log", OF_ACTIONS, map(action_row, actions))),
    )

"""The page of one conjunction: the sections of its report, with pictures and scripts as files of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from starlette.responses import Response

from sda_platform.catalog.lookup import UnknownObject, one_object
from sda_platform.clock import iso, iso_to_second
from sda_platform.conjunction.acknowledging import acknowledgements_among, assignee, known_actions
from sda_platform.conjunction.alert_page import OF_ACTIONS, AlertReport, Row
from sda_platform.conjunction.burn_options import burn_options
from sda_platform.conjunction.data_origins import data_origins
from sda_platform.conjunction.encounter_facts import action_row
from sda_platform.conjunction.encounter_figures import dilution_figure, history_figure, plane_figure
from sda_platform.conjunction.globe import orbit_viewer
from sda_platform.conjunction.history import EventHistory, event_history
from sda_platform.conjunction.policy_in_force import policy_in_force
from sda_platform.console.actions import action_form
from sda_platform.console.object_facts import fleet_facts, orbit_facts, space_weather_table
from sda_platform.console.observing import observing_facts
from sda_platform.console.page import ConsoleContext, ahead, badge, fleet_of, object_link, page
from sda_platform.console.readers import ConsoleReader
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined, section, table
from sda_platform.lake.lake import Lake
from sda_platform.observability.trace import Trace, trace_event, trace_lines
from sda_platform.orbits.risk.levels import probability_text
from sda_platform.settings import Settings

PICTURES: Final[Mapping[str, Callable[[EventHistory], str]]] = {
    "history": history_figure,
    "plane": lambda history: plane_figure(history.last),
    "dilution": dilution_figure,
}
"""Pictures of an assessed conjunction by name."""
_OF_TASKS: Final = (
    "begins (UTC)", "sensor", "object", "class", "state", "detail", "observations", "expected gain", "realised gain",
    "request",
)  # fmt: skip
_TEXTS: Final = {
    "history": "Probability of collision and miss distance against hours to the closest approach, with the levels",
    "plane": "Encounter plane: both objects with their covariance ellipses, and the combined one",
    "dilution": "Probability of collision against a factor on the sigmas, with ours, the largest, and the levels",
}


def event_page(context: ConsoleContext, event_id: str, reader: ConsoleReader) -> Response:
    """Answer with the page of a conjunction. Raises UnknownAlert."""
    story = trace_event(context.lake, event_id)
    now_ns, newest = context.lake.clock.now_ns(), story.newest
    names = " – ".join(newest[f"object_name_{n}"] or "unnamed" for n in (1, 2))
    actions = known_actions(context.lake, context.settings.landing_uri, [story.alert_id]).get(story.alert_id, ())
    report = (
        alert_report(context.lake, context.settings, story, actions, with_contact=reader.may_act)
        if story.assessments
        else None
    )
    level, status = report.state if report else (newest["risk"], newest["status"] or "open")
    status = "; ".join((status, *_handled(actions)))
    title = element("h1", object_link(newest, 1, "../"), " – ", object_link(newest, 2, "../"))
    state = element(
        "p",
        badge(level),
        f" {report.why}; " if report and report.why else " ",
        f"{status}; TCA {iso(newest['tca_time_ns'])}, ",
        element("strong", ahead(newest["tca_time_ns"], now_ns)),
    )
    as_of = element("p", f"As of {iso_to_second(now_ns)}. ", element("code", event_id))
    notice = element("p", id="revised", hidden=True, role="status")
    body = report.sections(_pictures(report, event_id)) if report else _stated(story, actions)
    form = action_form(story, actions, reader, "../")
    script = element("script", src="../static/orbit_view.js", defer=True) if report and report.has_states else None
    return page(context, names, title, state, as_of, notice, form, body, script, root="../", event=event_id)


def _handled(actions: Sequence[Row]) -> Iterator[str]:
    """Say who acknowledged an alert last, and to whom it is assigned."""
    for last in acknowledgements_among(actions)[-1:]:
        yield f"revision {last['revision']} acknowledged by {last['acknowledged_by']}"
    if to := assignee(actions):
        yield f"assigned to {to}"


def event_picture(context: ConsoleContext, event_id: str, name: str) -> str | None:
    """Return a picture of PICTURES as SVG; None where the conjunction has none. Raises UnknownAlert."""
    history = event_history(context.lake, event_id)
    return PICTURES[name](history) if name == "history" or history.last["state_1"] else None


def alert_report(
    lake: Lake, settings: Settings, story: Trace, actions: Sequence[Row], *, with_contact: bool
) -> AlertReport:
    """Return the report of a conjunction that we have assessed, for its page and for a file."""
    history = EventHistory.of_correction_log(story.assessments, story.messages, policy_in_force(lake))
    last, members = history.last, {each.norad_id: each for each in fleet_of(settings)}
    numbers = {n: last[f"norad_id_{n}"] for n in (1, 2)}
    movable = [n for n in numbers if numbers[n] in members and members[numbers[n]].manoeuvrable is not False]
    tasked = {"Tasked observations": _tasked(story.tasks)} if story.tasks else {}
    more = tasked | {"Space weather": space_weather_table(settings, lake.clock.now_ns(), last["tca_time_ns"])}
    if movable and last["state_1"]:
        burns = _burns(last, history.thresholds["yellow"], lake.clock.now_ns(), movable)
        more = {"Burn options": burns} | more
    return AlertReport(
        story.alert_id,
        story.alerts,
        history,
        actions,
        list(trace_lines(story))[1:],
        story.rests_on,
        data_origins(lake, [last]),
        {
            number: {
                **_orbit(lake, number),
                **observing_facts(lake, number),
                **fleet_facts(members.values(), number, with_contact=with_contact),
            }
            for number in filter(None, numbers.values())
        },
        more,
    )


def _tasked(tasks: Sequence[Row]) -> Html:
    """Make the table of the observations that were scheduled for a conjunction, and what became of each."""
    rows = (
        (
            iso_to_second(each["start_time_ns"]),
            element("a", each["source_id"], href=f"../sensors/{each['source_id']}"),
            each["norad_id"],
            each["priority_class"],
            each["state"],
            each["detail"],
            each["observations"],
            f"{each['expected_gain']:.2f}",
            "" if each["realised_gain"] is None else f"{each['realised_gain']:.2f}",
            each["request"],
        )
        for each in tasks
    )
    note = "Gain: ln of the factor by which the one-sigma ellipse in the encounter plane shrinks."
    return joined(element("p", note), table("Tasked observations", _OF_TASKS, rows))


def _orbit(lake: Lake, norad_id: int) -> Mapping[str, str]:
    try:
        return orbit_facts(lake, one_object(lake, norad_id))
    except UnknownObject:
        return {}


def _burns(last: Row, goal: float, now_ns: int, movable: Sequence[int]) -> Html:
    if (last["collision_probability"] or 0.0) <= goal:
        return element("p", f"Without a burn, our own Pc of this encounter is not above {goal:.0e}.")
    options = burn_options(last, goal, now_ns, movable)
    if not options:
        return element("p", f"No burn of at most 1 m/s along the track brings this encounter to Pc {goal:.0e} in time.")
    rows = (
        (
            iso_to_second(each.time_ns),
            f"{each.revolutions:g}",
            each.norad_id,
            f"{each.dv_m_s:+.3f}",
            f"{each.miss_km:.3f}",
            probability_text(each.probability, 1),
            element("code", f"sda whatif --primary {each.norad_id} --burn {iso(each.time_ns)},0,{each.dv_m_s:.4f},0"),
        )
        for each in sorted(options, key=lambda each: each.time_ns)
    )
    header = ("burn at (UTC)", "revolutions before TCA", "satellite", "in-track m/s", "miss km", "2D Pc", "verify by")
    note = (
        f"The smallest burn along the track that brings this encounter to Pc {goal:.0e}, by two-body motion with the "
        "covariances as they are. Only the command regards all other objects."
    )
    return joined(element("p", note), table("Burn options", header, rows))


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
        "Pc": f"{probability_text(newest['stated_probability'])} by {newest['stated_by']}",
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

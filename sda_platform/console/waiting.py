"""What waits for a person: alerts without an acknowledgement, assignments, escalations, and decisions on data."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from sda_platform.catalog.held_lookup import newer_held_sets, set_name, why_held
from sda_platform.catalog.lookup import open_conflicts
from sda_platform.clock import iso
from sda_platform.conjunction.currency import words_of
from sda_platform.conjunction.level_colours import ALERT_LEVELS
from sda_platform.conjunction.selection import first_places, sort_key
from sda_platform.console.conjunctions import conjunction_table
from sda_platform.console.overview import Overview, Row
from sda_platform.console.page import ConsoleContext, ahead, badge, currency, page
from sda_platform.console.readers import ConsoleReader
from sda_platform.counts import counted
from sda_platform.foreign_text import Html
from sda_platform.html_elements import element, joined, labelled, section, table
from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.escalations import Escalation, escalations
from sda_platform.notification.late_channels import notification_problems
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.situation import AlertReader
from sda_platform.observability.red_tables import red_tables
from sda_platform.observability.status import letters_of_day
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.evaluation import advice
from sda_platform.orchestration.dispositions import RECORD_KINDS

_MOST: Final = 50
_MOST_ALERTS: Final = 20


class _Decision(NamedTuple):
    """What is to be decided, what is known of it, since when it waits, and how it is done."""

    what: str
    detail: str
    when: str
    remedy: object


def waiting_page(context: ConsoleContext, person: str, reader: ConsoleReader) -> Response:
    """Answer with what waits for a reader; ``person``: the name of a reader without a login."""
    overview, name = context.overviews.now(), reader.name or person
    alerts = [row for row in overview.rows if row["status"] and row["risk"] in ALERT_LEVELS]
    unseen = [row for row in alerts if not row["acknowledged_by"] or row["is_revised_since"]]
    mine = [row for row in alerts if row["assigned_to"] and name.casefold() in ("", row["assigned_to"].casefold())]
    sent, decisions = _escalations(context), list(_decisions(context))
    counts = {"to acknowledge": unseen, "assigned": mine, "escalations": sent, "decisions on data": decisions}
    line = ", ".join(f"{len(found):,} {what}" for what, found in counts.items())
    whose = f"Assigned to {name}" if name else "Assigned"
    live = (
        element("p", f"{line}.", class_="count"),
        section("To acknowledge", _listed(unseen, overview, "every alert is acknowledged at its newest revision")),
        section(whose, _listed(mine, overview, "no alert is assigned" + (f" to {name}" if name else ""))),
        section("Escalations", _escalated(sent, overview)),
        section("Decisions on data", _decided(decisions)),
    )
    return page(
        context,
        "What waits",
        element("h1", f"What waits for {name}" if name else "What waits"),
        element("div", currency(context, overview), id="live-currency"),
        None if reader.name else _who(person),
        element("div", *live, id="live"),
    )


def _who(person: str) -> Html:
    name = element("input", type="text", name="person", value=person, maxlength=100, autocomplete="name")
    return element(
        "form",
        labelled("Your name, to see only what is assigned to you", name),
        element("button", "Show", type="submit"),
        method="get",
    )


def _listed(rows: Iterable[Row], overview: Overview, nothing: str) -> Html:
    ordered = sorted(rows, key=lambda row: sort_key("level", row))
    if not ordered:
        return element("p", nothing)
    first = [ordered[place] for place in first_places((row["risk"] for row in ordered), _MOST_ALERTS)]
    more = element("p", f"The first {len(first):,} of {len(ordered):,} are shown; ", element("a", "all", href="./"))
    return joined(conjunction_table(first, overview.currency.now_ns), more if len(first) < len(ordered) else None)


def _escalations(context: ConsoleContext) -> Sequence[Escalation]:
    """Return the escalations, the first due first; none where the rules cannot be used, which is a decision."""
    settings = context.settings
    try:
        rules = NotifyRules.load(settings)
    except Misconfigured:
        return ()
    if rules is None:
        return ()
    now = AlertReader(context.lake, settings.landing_uri).now()
    return sorted(escalations(settings.home.absolute(), rules, now), key=lambda each: each.due_ns)


def _escalated(found: Sequence[Escalation], overview: Overview) -> Html:
    rows, now_ns = {row["event_id"]: row for row in overview.rows}, overview.currency.now_ns

    def alert(event_id: str) -> Html:
        row = rows.get(event_id)
        names = " – ".join(row[f"object_name_{n}"] or "unnamed" for n in (1, 2)) if row else event_id
        link = element("a", names, href=f"conjunctions/{event_id}")
        return joined(badge(row["risk"]), " ", link) if row else link

    shown = ((alert(each.event_id), each.rule, each.channel, "sent" if each.is_sent else "not yet",
              ahead(each.due_ns, now_ns)) for each in found)  # fmt: skip
    return table("Escalations", ("alert", "rule", "channel", "message", "due"), shown)


def _decisions(context: ConsoleContext) -> Iterator[_Decision]:
    """Yield what a person decides, what keeps alerts from people first."""
    settings, wall_s, now_ns = context.settings, time.time(), context.lake.clock.now_ns()
    for late in notification_problems(settings, wall_s):
        yield _Decision("people are not notified", late.text, _for(late.late_s), _code("sda channel test"))
    for red in red_tables(context.lake):
        if not red.acknowledged:
            detail = "; ".join(red.problems)
            yield _Decision(f"table {red.table} is red", detail, red.since_utc, _code(f"sda lake accept {red.table}"))
    for vital in history.load(settings.home.absolute()).red:
        name, side = vital.reading.vital, vital.reading.side
        yield _Decision(f"vital {name} ({side})", vital.reading.text, _for(wall_s - vital.since_s), advice(name))
    for claim in open_conflicts(context.lake):
        number = claim["norad_id"]
        claimed = joined(f"{claim['outcome']} edit of ", element("a", number, href=f"objects/{number}"))
        detail = f"{claim['attribute']}: {claim['value'] or 'none'}; {claim['reason'] or ''}"
        yield _Decision(claimed, detail, "", _code(f"sda catalog resolve {number} {claim['attribute']} VALUE"))
    for held in newer_held_sets(context.lake):
        number = element("a", held["norad_id"], href=f"objects/{held['norad_id']}")
        since = f"since {iso(held['held_since_ns'])[:16]}Z"
        command = f"sda catalog release {set_name(held)}"
        yield _Decision(joined("newer element set of ", number), why_held(held), since, _code(command))
    for kind in letters_of_day(context.lake, now_ns):
        known = RECORD_KINDS.get(kind.kind)
        detail = f"{known.meaning if known else ''} Mostly from {kind.source}."
        what = f"{counted(kind.letters, 'dead letter')} {kind.kind}"
        yield _Decision(
            what, detail, f"newest {kind.newest_utc[:19]}Z", _code(f"sda lake reprocess --kind {kind.kind}")
        )


def _decided(found: Sequence[_Decision]) -> Html:
    cut = element("p", f"The first {_MOST} of {len(found):,} are shown.") if len(found) > _MOST else None
    return joined(table("Decisions on data", ("what", "detail", "since", "see or do"), found[:_MOST]), cut)


def _for(seconds: float) -> str:
    return f"for {words_of(seconds)}" if seconds > 0 else ""


def _code(command: str) -> Html:
    return element("code", command)

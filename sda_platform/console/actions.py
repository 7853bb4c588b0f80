"""Acting on an alert in the console: the form of its page, and what is sent by it."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from sda_platform.conjunction.acknowledging import UnusableAction, act, assignee
from sda_platform.console.page import HEADERS, ConsoleContext
from sda_platform.console.readers import LOG_IN, ConsoleReader
from sda_platform.foreign_text import Html
from sda_platform.formats.acknowledgements import ACKNOWLEDGE, ASSIGN, COMMENT, MOST_CHARACTERS
from sda_platform.html_elements import element, labelled
from sda_platform.lake.correction_log import INSERT
from sda_platform.observability.trace import Trace, current_alert
from sda_platform.serving.bodies import Bodies
from sda_platform.serving.group_commit import Busy
from sda_platform.serving.requests import BadRequest, TooSlow

_FORM: Final = "application/x-www-form-urlencoded"
# A comment of the longest allowed, each character as %XX of four bytes, and the other fields.
_MOST_BYTES: Final = 12 * MOST_CHARACTERS + 4096
_MOST_DIGITS: Final = 18
_FIELDS: Final = ("action", "revision", "by", "comment", "assigned_to")


class NotAllowedToAct(Exception):
    """This reader may not act; the text says why."""


def action_form(story: Trace, actions: Any, reader: ConsoleReader, root: str) -> Html | None:
    """Make the form of an alert that is current, or say how it is acknowledged; None for what is no current alert."""
    if not story.alerts or story.alerts[-1]["op"] != INSERT:
        return None
    if not reader.may_act:
        command = element("code", f"sda alert ack {story.alert_id[:8]} --by NAME --comment TEXT")
        log_in = element("a", "Log in", href=f"{root}login?to={quote(f'conjunctions/{story.alert_id}', safe='')}")
        may = " as operator or admin, to acknowledge, assign and comment, or use " if reader.has_login else None
        first = (log_in, may) if reader.has_login else ("Acknowledge this revision: ",)
        return element("p", *first, command)
    revision, to = story.alerts[-1]["sequence"], assignee(actions)
    name = {"name": "by", "autocomplete": "name", "maxlength": 100, "required": True}
    texts = (
        element("p", f"You are {reader.name}.") if reader.name else _field("Your name", **name),
        _field("Comment", name="comment", maxlength=MOST_CHARACTERS, size=40),
        element("button", "Comment", name="action", value=COMMENT),  # the first one is that of the Enter key
        element("button", f"Acknowledge revision {revision}", name="action", value=ACKNOWLEDGE),
        _field("Assign to", name="assigned_to", maxlength=100, value=to or reader.name),
        element("button", "Assign", name="action", value=ASSIGN),
    )
    revised = element("input", type="hidden", name="revision", value=revision)
    return element("form", revised, *texts, method="post", class_="act", aria_label="Act on this alert")


def _field(label: str, **attributes: object) -> Html:
    return labelled(label, element("input", **attributes))


def forms() -> Bodies:
    """Make the bound on forms: apart from other bodies, because anybody may send one."""
    return Bodies(most_bytes=16 * _MOST_BYTES, largest_bytes=_MOST_BYTES)


async def sent_fields(request: Request, bodies: Bodies) -> Mapping[str, str]:
    """Read the fields of a form. Raises UnusableAction for another body, and for one that is too long or too slow."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise UnusableAction(f"a form is sent as {_FORM}")
    try:
        async with bodies.received(request) as body:
            text = body.decode()
        sent = parse_qs(text, keep_blank_values=True, strict_parsing=True, max_num_fields=len(_FIELDS))
    except (BadRequest, Busy, TooSlow) as error:
        raise UnusableAction(f"the form was not taken: {error}") from None
    except ValueError:
        raise UnusableAction("the form cannot be read, or has a field too many") from None
    if wrong := sorted(name for name, values in sent.items() if name not in _FIELDS or len(values) > 1):
        raise UnusableAction(f"the form has the field {wrong[0][:40]!r} too often, or no such field")
    return {name: values[0] for name, values in sent.items()}


def take_action(context: ConsoleContext, event_id: str, headers: Headers, sent: Mapping[str, str]) -> Response:
    """Record what the reader does about an alert, and lead back to its page.

    Raises UnusableAction, NotAllowedToAct, and UnknownAlert, also of one that is withdrawn.
    """
    reader = context.reader(headers.get("authorization", ""))
    if not reader.may_act:
        if reader.has_login and not reader.name:
            return Response("log in as operator or admin", 401, {**HEADERS, **LOG_IN}, "text/plain")
        raise NotAllowedToAct(
            f"{reader.name} is a viewer: operators and admins act on alerts" if reader.name
            else "other machines reach this console: name its users in SDA_WEBSERVER_USERS, to act in it"
        )  # fmt: skip
    alert = current_alert(context.lake, event_id)
    revision = sent.get("revision", "")
    is_number = revision.isascii() and revision.isdigit() and len(revision) <= _MOST_DIGITS
    if not is_number or int(revision) > alert["sequence"]:
        raise UnusableAction(f"{revision[:20]!r} is no revision of alert {alert['event_id']}")
    act(
        context.lake,
        context.settings.landing_uri,
        alert_id=alert["event_id"],
        revision=int(revision),
        by=reader.name or sent.get("by", ""),
        comment=sent.get("comment", "").replace("\r\n", "\n"),
        action=sent.get("action", ""),
        assigned_to=sent.get("assigned_to", "") if sent.get("action") == ASSIGN else "",
    )
    return Response("", 303, {**HEADERS, "Location": quote(alert["event_id"])})


def log_in(context: ConsoleContext, headers: Headers, to: str) -> Response:
    """Ask the browser for name and token, then lead to the page ``to`` of the console."""
    reader = context.reader(headers.get("authorization", ""))
    if reader.has_login and not reader.name:
        return Response("log in as a user of the platform", 401, {**HEADERS, **LOG_IN}, "text/plain")
    is_page = to.startswith("conjunctions/") and to.count("/") == 1 and not set(to) & set("\\:?#\r\n")
    return Response("", 303, {**HEADERS, "Location": f"./{quote(to)}" if is_page else "./"})

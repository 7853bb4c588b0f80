"""What people do about alerts: acknowledge, assign, comment. It lands like any other record, and is read here."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.audit_log import user
from sda_platform.conjunction.acknowledgement_decoding import decode
from sda_platform.conjunction.tables import ACKNOWLEDGEMENTS_FEED, ALERT_ACKNOWLEDGEMENTS
from sda_platform.foreign_text import is_plain
from sda_platform.formats.acknowledgements import (
    ACKNOWLEDGE,
    ASSIGN,
    AlertAcknowledgement,
    encode_acknowledgements,
)
from sda_platform.formats.errors import RecordError
from sda_platform.formats.reading import require_readable
from sda_platform.formats.segments import Sender
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.lake import Lake
from sda_platform.landing.record_rows import pending_rows
from sda_platform.landing.zone import LandingZone

_FORMAT: Final = "acknowledgements-jsonl"
_FACTS: Final = ["alert_id", "revision", "acknowledged_by", "comment", "action", "assigned_to", "acknowledged_time_ns"]
MOST_NAME: Final = 100
Actions = Mapping[str, Sequence[Mapping[str, Any]]]
"""By alert, what people did about it, oldest first."""


class UnusableAction(Misconfigured):
    """A person's action cannot be recorded; the text says what to change."""


def act(
    lake: Lake,
    landing_uri: str,
    *,
    alert_id: str,
    revision: int,
    by: str,
    comment: str = "",
    action: str = ACKNOWLEDGE,
    assigned_to: str = "",
) -> AlertAcknowledgement:
    """Record what a person does about a revision of an alert; when this ends, it is durable in the landing zone.

    Raises UnusableAction for what a reader of the landing zone would refuse, and for names that are none.
    """
    if not by.strip():
        raise UnusableAction("say who does it: the name is empty")
    for name in (by, assigned_to):
        if len(name) > MOST_NAME or not is_plain(name):
            raise UnusableAction(f"{name[:40]!r} is no name: it has one line of at most {MOST_NAME} characters")
    now_ns = lake.clock.now_ns()
    made = AlertAcknowledgement(alert_id, revision, by.strip(), comment, now_ns, action, assigned_to.strip())
    data = encode_acknowledgements([made])
    try:
        require_readable(data, _FORMAT, ACKNOWLEDGEMENTS_FEED)
    except RecordError as error:
        raise UnusableAction(str(error)) from None
    name = f"ack-{hashlib.sha256(data).hexdigest()[:24]}.acks"
    zone = LandingZone(landing_uri, ACKNOWLEDGEMENTS_FEED)
    zone.seal_at(now_ns, name, data, _FORMAT, sender=Sender(user()))
    return made


def known_actions(lake: Lake, landing_uri: str | None = None, alert_ids: Collection[str] | None = None) -> Actions:
    """Read every usable action, or those of some alerts, by alert, oldest first: consumed ones and pending ones."""
    rows = pending_rows(LandingZone(landing_uri, ACKNOWLEDGEMENTS_FEED), decode) if landing_uri is not None else []
    where = ds.field("error_kind").is_null()
    if alert_ids is not None:
        rows = [row for row in rows if row["alert_id"] in alert_ids]
        where &= ds.field("alert_id").isin(list(alert_ids))
    rows += lake.log(ALERT_ACKNOWLEDGEMENTS).rows(_FACTS, where).to_pylist()
    by_alert: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for facts in sorted({tuple(map(_recorded, _FACTS, map(row.get, _FACTS))) for row in rows}, key=_order):
        by_alert[facts[0]].append(dict(zip(_FACTS, facts, strict=True)))
    return dict(by_alert)


def _recorded(name: str, value: Any) -> Any:
    """Return a fact of an action, also of one by an earlier release, which recorded acknowledgements alone."""
    return value if value is not None else {"action": ACKNOWLEDGE}.get(name, "")


def _order(facts: tuple[Any, ...]) -> tuple[Any, ...]:
    return facts[-1], facts


def known_acknowledgements(
    lake: Lake, landing_uri: str | None = None, alert_ids: Collection[str] | None = None
) -> Actions:
    """Read the acknowledgements among the actions, as `known_actions`."""
    return acknowledgements_of(known_actions(lake, landing_uri, alert_ids))


def acknowledgements_of(actions: Actions) -> Actions:
    """Return the acknowledgements among actions, of the alerts that have one."""
    return {alert: found for alert, made in actions.items() if (found := acknowledgements_among(made))}


def acknowledgements_among(actions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the acknowledgements among ``actions`` of an alert."""
    return [each for each in actions if each["action"] == ACKNOWLEDGE]


def assignee(actions: Sequence[Mapping[str, Any]]) -> str:
    """Return to whom the last assignment among ``actions`` of an alert was; empty: there is none."""
    return next((each["assigned_to"] for each in reversed(actions) if each["action"] == ASSIGN), "")


def words_of_action(action: Mapping[str, Any]) -> str:
    """Say what a person did."""
    if action["action"] == ACKNOWLEDGE:
        return f"acknowledged revision {action['revision']}"
    return f"assigned to {action['assigned_to'] or 'nobody'}" if action["action"] == ASSIGN else "commented"

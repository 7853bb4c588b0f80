"""Received CDMs that state a conjunction at the level of an alert, where the alert is missing or of a lower level.

The rule `stated_by_other` of the alert policy makes alerts of them. Without the rule the difference is a fault of the
platform. It is over when the alert reaches the level, or when a newer message of the originator states less. It is
over, too, when an object has left the path of the message, or when the closest approach has passed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sda_platform.clock import iso
from sda_platform.conjunction.alert_policy import GREEN, RED, YELLOW
from sda_platform.conjunction.cdm_comparison import open_comparisons, reported_probability
from sda_platform.conjunction.policy_in_force import policy_in_force
from sda_platform.conjunction.stated_encounters import alert_ids
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.lake import Lake
from sda_platform.orbits.risk.levels import RISK_LEVELS, probability_text
from sda_platform.recovery.verification import current_keys

_DAY_AND_HOUR = 13


@dataclass(frozen=True)
class UnalertedCdm:
    """A message as a fault: its ``subject`` stays the same while the encounter is revised; ``text`` is for people."""

    subject: str
    text: str


def unalerted_cdms(lake: Lake, now_ns: int) -> Iterator[UnalertedCdm]:
    """Yield the newest message of each originator about each encounter after ``now_ns`` that no alert of ours
    matches.
    """
    policy, levels, alerts = policy_in_force(lake), _alert_levels(lake), alert_ids(lake, now_ns)
    for opinion in open_comparisons(lake, now_ns):
        message, event = opinion.message, opinion.event
        stated = reported_probability(message)
        if stated is None or opinion.superseded:
            continue
        yellow, red = policy.thresholds(message)
        level = RED if stated >= red else YELLOW if stated >= yellow else GREEN
        place = message["segment_sha256"], message["record_number"]
        if alerts is not None and place not in alerts:
            continue  # the next commit of alerts consumes it
        alert_id = alerts[place] if alerts is not None else event["event_id"] if event else ""
        ours = levels.get(alert_id, GREEN)
        if level > ours:
            yield UnalertedCdm(_subject(message), f"{_report(message, stated, level)}; {_answer(event, ours)}")


def _alert_levels(lake: Lake) -> dict[str, int]:
    log = lake.log(CONJUNCTION_ALERTS)
    if log.version() < 0:
        return {}
    rows = current_keys(log, ["risk"]).to_pylist()
    return {row["event_id"]: RISK_LEVELS.index(row["risk"]) for row in rows}


def _subject(message: Mapping[str, Any]) -> str:
    pair = " and ".join(_object(message, n) for n in (1, 2))
    return f"{message['originator'] or 'unknown originator'}: {pair}, {iso(message['tca_time_ns'])[:_DAY_AND_HOUR]}h"


def _object(message: Mapping[str, Any], n: int) -> str:
    number = message[f"norad_id_{n}"] or message[f"object_designator_{n}"] or "?"
    return f"{message[f'object_name_{n}'] or 'unnamed'} ({number})"


def _report(message: Mapping[str, Any], stated: float, level: int) -> str:
    pair = " and ".join(_object(message, n) for n in (1, 2))
    who, when = message["originator"] or "an organisation", iso(message["tca_time_ns"])
    return f"{who} reports Pc {probability_text(stated, 1)} ({RISK_LEVELS[level]}) of {pair}, TCA {when}"


def _answer(event: Mapping[str, Any] | None, ours: int) -> str:
    if event is None:
        return "our screening has no such event"
    alert = "no alert" if ours == GREEN else f"the alert is {RISK_LEVELS[ours]}"
    return f"our Pc is {probability_text(event['collision_probability'], 1)}, {alert} ({event['event_id'][:8]})"

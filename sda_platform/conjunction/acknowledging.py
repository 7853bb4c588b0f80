"""Acknowledgements of alerts: making one, which lands like any other record, and reading those that are known."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.dataset as ds

from sda_platform.audit_log import user
from sda_platform.conjunction.acknowledgement_decoding import decode
from sda_platform.conjunction.tables import ACKNOWLEDGEMENTS_FEED, ALERT_ACKNOWLEDGEMENTS
from sda_platform.formats.acknowledgements import AlertAcknowledgement, encode_acknowledgements
from sda_platform.formats.segments import Sender
from sda_platform.lake.lake import Lake
from sda_platform.landing.record_rows import pending_rows
from sda_platform.landing.zone import LandingZone

_FORMAT = "acknowledgements-jsonl"
_FACTS = ["alert_id", "revision", "acknowledged_by", "comment", "acknowledged_time_ns"]
Acknowledgements = Mapping[str, Sequence[Mapping[str, Any]]]


def acknowledge(
    lake: Lake, landing_uri: str, *, alert_id: str, revision: int, by: str, comment: str
) -> AlertAcknowledgement:
    """Acknowledge a revision of an alert; when this ends, the record is durable in the landing zone."""
    now_ns = lake.clock.now_ns()
    made = AlertAcknowledgement(alert_id, revision, by, comment, now_ns)
    data = encode_acknowledgements([made])
    name = f"ack-{hashlib.sha256(data).hexdigest()[:24]}.acks"
    zone = LandingZone(landing_uri, ACKNOWLEDGEMENTS_FEED)
    zone.seal_at(now_ns, name, data, _FORMAT, sender=Sender(user()))
    return made


def known_acknowledgements(lake: Lake, landing_uri: str | None = None) -> Acknowledgements:
    """Read every usable acknowledgement by alert, oldest first: consumed ones and pending ones."""
    rows = pending_rows(LandingZone(landing_uri, ACKNOWLEDGEMENTS_FEED), decode) if landing_uri is not None else []
    rows += lake.log(ALERT_ACKNOWLEDGEMENTS).rows(_FACTS, ds.field("error_kind").is_null()).to_pylist()
    by_alert: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for facts in sorted({tuple(row[name] for name in _FACTS) for row in rows}, key=lambda each: (each[-1], each)):
        by_alert[facts[0]].append(dict(zip(_FACTS, facts, strict=True)))
    return dict(by_alert)

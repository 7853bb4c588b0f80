"""A timeline as an OpenTelemetry trace, posted to a collector by OTLP over HTTP with JSON; off unless it is set.

The ids follow from the commits, so what is exported twice is one trace. Format: OpenTelemetry protocol 1.x, JSON
encoding (ids in hexadecimal, times as decimal strings of nanoseconds).
"""

import hashlib
from typing import Any

import httpx

from sda_platform.observability.timeline import AlertTimeline

_PATH = "/v1/traces"
_ANSWER_WITHIN_S = 5.0
_KIND_INTERNAL = 1


def trace_of(found: AlertTimeline) -> dict[str, Any]:
    """Make the request body for one timeline. A span's parent is the first that it consumed; others are links."""
    trace_id = _id(f"{found.alert_id}/{found.delivery}", 16)
    spans = []
    for number, span in enumerate(found.spans):
        parent, *others = [_id(f"{trace_id}/{each}", 8) for each in span.parents] or [""]
        spans.append(
            {
                "traceId": trace_id,
                "spanId": _id(f"{trace_id}/{number}", 8),
                "parentSpanId": parent,
                "name": span.name,
                "kind": _KIND_INTERNAL,
                "startTimeUnixNano": str(span.began_ns),
                "endTimeUnixNano": str(span.ended_ns),
                "attributes": [_attribute(f"sda.{name}", value) for name, value in span.facts.items()],
                "links": [{"traceId": trace_id, "spanId": other} for other in others],
            }
        )
    resource = {"attributes": [_attribute("service.name", "sda-platform"), _attribute("sda.alert", found.alert_id)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "sda"}, "spans": spans}]}]}


def export(endpoint: str, found: AlertTimeline) -> str | None:
    """Post the trace to ``endpoint`` (http://host:4318); why it was not taken, or None. Raises nothing."""
    try:
        answer = httpx.post(f"{endpoint.rstrip('/')}{_PATH}", json=trace_of(found), timeout=_ANSWER_WITHIN_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"the OpenTelemetry collector did not answer: {type(error).__name__}"
    return None if answer.is_success else f"the OpenTelemetry collector answered {answer.status_code}"


def _attribute(name: str, value: str | int) -> dict[str, Any]:
    # Integers are strings in the JSON encoding.
    return {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def _id(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]

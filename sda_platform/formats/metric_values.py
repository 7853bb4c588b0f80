"""Values of metrics at one time, as lines of JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import encodable, integer_field, json_object, number_field, text_field
from sda_platform.formats.records import RawRecord


@dataclass(frozen=True)
class MetricValue:
    """What ``process`` exported at ``sampled_time_ns`` (mission time) as ``sample`` of ``metric``.

    ``sample`` is the metric's name, for histograms with the suffix that Prometheus adds (`_bucket`, `_count`, `_sum`).
    """

    process: str
    metric: str
    sample: str
    labels: Mapping[str, str]
    value: float
    sampled_time_ns: int


def read_metric_value(record: RawRecord) -> MetricValue:
    """Return the value on one line; raises RecordError."""
    fields = json_object(record.payload)
    labels = fields.get("labels")
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise RecordError("bad_field", f"labels is {ascii(labels)[:80]}, must be an object whose values are text")
    return MetricValue(
        process=text_field(fields, "process"),
        metric=text_field(fields, "metric"),
        sample=text_field(fields, "sample"),
        labels={encodable(name, "labels"): encodable(value, "labels") for name, value in labels.items()},
        value=number_field(fields, "value"),
        sampled_time_ns=integer_field(fields, "sampled_time_ns"),
    )


def encode_metric_values(values: Iterable[MetricValue]) -> bytes:
    """Values as lines of JSON; equal ones give equal bytes."""
    return b"".join(json.dumps(asdict(value), sort_keys=True).encode() + b"\n" for value in values)

"""What one commit adds to the metrics: derived from its manifest, and from its rows where kinds are counted."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.lake.correction_log import RETRACT
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.landing.decoding import FATES
from sda_platform.units import SECOND_NS

KINDS = tuple(feed.name for feed in OBSERVATION_FEEDS)
_MS_PER_S = 1000.0
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class MetricSample:
    """A value of a metric of the catalogue (`telemetry`); ``labels`` in the order that it declares."""

    metric: str
    labels: tuple[str, ...]
    value: float


def samples_of(lake: Lake, table: Table, commit: Commit) -> Iterator[MetricSample]:
    """Yield the samples of one commit: increments of counters, observations of histograms, values of gauges."""
    yield from manifest_samples(commit)
    planned_ns = lake.clock.wall_ns(commit.manifest.as_of_ns)
    if planned_ns is not None:
        pause_ms = commit.timestamp_ms - planned_ns / _NS_PER_MS
        yield MetricSample("checkpoint_pause_duration_ms", (table.name,), max(pause_ms, 0.0))
    span = (commit.sequence - 1, commit.sequence)
    if "op" in (column.name for column in table.columns):
        ops = lake.log(table).rows_of(span, ["op"]).column("op").to_pylist()
        yield MetricSample("retractions_emitted_total", (table.name,), float(ops.count(RETRACT)))
    if table.name == DEAD_LETTERS.name:
        rows = lake.log(table).rows_of(span, ["stage", "error_kind"]).to_pylist()
        for (stage, kind), count in sorted(Counter((row["stage"], row["error_kind"]) for row in rows).items()):
            yield MetricSample("dlq_entries_total", (stage, kind), float(count))


def manifest_samples(commit: Commit) -> Iterator[MetricSample]:
    """Yield the samples that follow from the manifest alone. Pure."""
    manifest = commit.manifest
    name, counts = manifest.table, manifest.counts
    yield MetricSample("commits_total", (name,), 1.0)
    yield MetricSample("rows_committed_total", (name,), float(commit.rows_written))
    yield MetricSample("checkpoint_size_bytes", (name,), float(len(manifest.to_json())))
    for fate in FATES:
        if f"{fate}_segments" in counts:
            yield MetricSample("segments_total", (name, fate), float(counts[f"{fate}_segments"]))
    if "duplicate_segments" in counts:
        yield MetricSample("operator_discards_total", (name,), float(counts["duplicate_segments"]))
    if name == FUSED_TRACKS.name:
        yield from _fusion_samples(counts, manifest.watermarks)


def _fusion_samples(counts: Mapping[str, int], marks: Mapping[str, int]) -> Iterator[MetricSample]:
    yield MetricSample("late_events_dropped_total", (), float(counts.get("late", 0)))
    yield MetricSample("clock_skew_observed_total", (), float(counts.get("skewed", 0)))
    for kind in KINDS:
        for whose in ("source", "pipeline"):
            lag_ms = counts.get(f"{kind}_{whose}_lag_ms")
            if lag_ms is not None:
                yield MetricSample(f"{whose}_lag_seconds", (kind,), lag_ms / _MS_PER_S)
        if kind in marks:
            yield MetricSample("source_watermark_seconds", (kind,), marks[kind] / SECOND_NS)
    if PIPELINE in marks:
        yield MetricSample("pipeline_watermark_seconds", (), marks[PIPELINE] / SECOND_NS)

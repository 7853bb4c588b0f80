"""Report on the fusion: residuals and time-tag bias of each sensor, association, track map, watermarks.

It reads logs only and runs outside the alert pool: plots take about a second, which would delay alerts.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.arrays import FloatArray
from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.fusion.association_quality import AssociationOutcomes, sensor_table
from sda_platform.fusion.fit_quality import FitQuality
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FUSED_TRACKS, STATE_COLUMNS, TIME_TAG_BIASES, TRACKS
from sda_platform.fusion.time_bias import BIAS_SCHEMA, biases_of, corrected_rows
from sda_platform.fusion.time_bias_assets import known_corrections
from sda_platform.fusion.watermarks import window_start
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.orbits.frames import teme_to_itrf
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.materialization import in_ui, with_console
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import current_keys
from sda_platform.units import MINUTE_NS, SECOND_NS

KEY = dg.AssetKey(["reports", "fusion"])
SPAN_NS = 600 * SECOND_NS
"""Span of the report before the newest window, event time."""
_MIN_OBSERVATIONS = 20
_RECENT_COMMITS = 20
# All observations of these windows are evaluated: the span between two reports.
_ASSOCIATED_WINDOWS = 4
_WINDOW = (
    "norad_id", "epoch_time_ns", *STATE_COLUMNS, "chi_square", "degrees_of_freedom", "radar_count", "optical_count",
    "isl_count", "rejected_count", "observation_ids",
)  # fmt: skip


@dg.asset(
    key=KEY,
    group_name="fusion",
    deps=[FUSED_TRACKS.name, TRACKS.name, OBSERVATIONS.name, TIME_TAG_BIASES.name],
    pool=ORBIT_DETERMINATION.pool,
    kinds={"matplotlib"},
    check_specs=[
        dg.AssetCheckSpec(
            "biases_within_bounds",
            asset=KEY,
            description="No time-tag bias exceeds the bound of the clock's stated quality.",
        ),
        dg.AssetCheckSpec(
            "association_is_sound", asset=KEY, description="Residuals are consistent with the noise model."
        ),
        dg.AssetCheckSpec(
            "observations_match_objects",
            asset=KEY,
            description="Most observations match one object, at distances consistent with noise and element errors.",
        ),
    ],
)
def fusion_report(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster accepts only the bare class as an annotation
    """Residuals, time-tag biases, tracks and watermarks of the last ten minutes of event time, and association
    outcomes of the last two minutes.
    """
    return with_console(report(lake.open(), fusion.window_ns, fusion.network()), lake.home, "sensors")


def report(store: Lake, window_ns: int, sensors: SensorNetwork | None = None) -> dg.MaterializeResult[Any]:
    """Plots and figures as metadata, and the outcome of the checks."""
    # Importing the plot library takes a second, which every run's process would spend.
    from sda_platform.fusion import plots

    windows = recent_windows(store)
    observations = _observations(store, windows)
    quality = FitQuality.of(windows, observations)
    outcomes = recent_outcomes(store, observations, window_ns, sensors)
    biases = newest_biases(store)
    tracks = store.log(TRACKS).rows(["state", "epoch_time_ns", *STATE_COLUMNS[:3]])
    facts: dict[str, Any] = {
        "windows": quality.windows,
        "observations": quality.observations,
        "used": quality.used_share,
    }
    facts |= {"rejected": quality.rejected_share, "chi_square_per_degree": quality.chi_square_per_degree}
    if len(biases.source_id):
        facts["residuals"] = in_ui(plots.residuals(biases))
    if len(outcomes.outcome):
        facts["association"] = in_ui(plots.association(outcomes))
        facts["association_by_sensor"] = in_ui(sensor_table(outcomes))
    if tracks.num_rows:
        facts["track_map"] = in_ui(plots.track_map(*_places(tracks)))
    commits = store.log(FUSED_TRACKS).commits()
    if commits:
        facts["watermark_trail"] = in_ui(plots.watermark_trail(*_trail(commits)))
    wrong = bias_problems(biases)
    return dg.MaterializeResult(
        metadata=facts,
        check_results=[
            _checked("biases_within_bounds", wrong, {"sensors": len(biases.source_id), **_bias_texts(biases)}),
            _checked("association_is_sound", quality.problems(), {"windows": quality.windows}),
            _checked("observations_match_objects", outcomes.problems(), outcomes.shares()),
        ],
    )


def recent_windows(store: Lake) -> pa.Table:
    """Return the current fits of the report's span."""
    log = store.log(FUSED_TRACKS)
    upto = log.head().sequence
    newest_ns = pc.max(log.rows_of((upto - _RECENT_COMMITS, upto), ["window_start_ns"])["window_start_ns"]).as_py()
    since_ns = (newest_ns or 0) - SPAN_NS
    return current_keys(log, _WINDOW, where=ds.field("window_start_ns") >= since_ns)


def recent_outcomes(
    store: Lake, observations: pa.Table, window_ns: int, sensors: SensorNetwork | None = None
) -> AssociationOutcomes:
    """Association outcomes of the newest windows' ``observations`` against the current catalogue, with the fits' bias
    corrections.
    """
    newest_ns = window_start(pc.max(observations["sensor_time_ns"]).as_py() or 0, window_ns)
    starts_ns = range(newest_ns - (_ASSOCIATED_WINDOWS - 1) * window_ns, newest_ns + 1, window_ns)
    recent = observations.filter(pc.greater_equal(observations["sensor_time_ns"], starts_ns[0]))
    biases = known_corrections(store, store.log(TIME_TAG_BIASES).head().sequence, starts_ns, window_ns)
    propagator = catalogue_at(store, store.log(ORBITAL_CATALOG).version()).propagator
    return AssociationOutcomes.of(corrected_rows(recent, biases, window_ns), propagator, window_ns, sensors)


def newest_biases(store: Lake) -> TimeTagBiases:
    """Return the time-tag biases of the newest estimated term."""
    log = store.log(TIME_TAG_BIASES)
    upto = log.head().sequence
    newest_ns = pc.max(log.rows_of((upto - _RECENT_COMMITS, upto), ["term_start_ns"])["term_start_ns"]).as_py()
    return biases_of(log.rows(BIAS_SCHEMA.names, ds.field("term_start_ns") == (newest_ns or 0)))


def bias_problems(biases: TimeTagBiases) -> list[str]:
    """Texts for sources whose bias exceeds the bound of their clock quality by 3 sigma."""
    sure_s = np.abs(biases.offset_s) - 3 * biases.sigma_s
    wrong = (sure_s > biases.bound_s) & (biases.observation_count >= _MIN_OBSERVATIONS)
    return [
        f"{biases.source_id[n]} is {biases.offset_s[n] * 1e3:+.1f} ms biased (± {biases.sigma_s[n] * 1e3:.1f}), "
        f"the bound of its clock quality is {biases.bound_s[n] * 1e3:.3g} ms"
        for n in np.flatnonzero(wrong)
    ]


def _observations(store: Lake, windows: pa.Table) -> pa.Table:
    """Return the observations of the windows' span."""
    if not windows.num_rows:
        return OBSERVATIONS.arrow_schema.empty_table().select(OBSERVATION_COLUMNS)
    ends = pc.min_max(windows["epoch_time_ns"]).as_py()
    half_ns = 15 * SECOND_NS
    time_ns = ds.field("sensor_time_ns")
    span = (time_ns >= ends["min"] - half_ns) & (time_ns < ends["max"] + half_ns)
    return store.log(OBSERVATIONS).rows(OBSERVATION_COLUMNS, span)


def _places(tracks: pa.Table) -> tuple[FloatArray, FloatArray, list[str]]:
    """Longitude and latitude (n,) of each track's ground position, deg, and its state."""
    columns = arrays(tracks)
    place = np.stack([columns[name] for name in STATE_COLUMNS[:3]], axis=1)
    fixed = teme_to_itrf(place, columns["epoch_time_ns"])
    longitude = np.degrees(np.arctan2(fixed[:, 1], fixed[:, 0]))
    latitude = np.degrees(np.arctan2(fixed[:, 2], np.hypot(fixed[:, 0], fixed[:, 1])))
    return longitude, latitude, tracks["state"].to_pylist()


def _trail(commits: Sequence[Commit]) -> tuple[FloatArray, dict[str, FloatArray], dict[str, FloatArray]]:
    """Minutes before the newest commit (n,); by kind its lag behind the clock (n,), and its newest lags, s."""
    points = [commit.manifest for commit in reversed(commits)]
    as_of = np.array([p.as_of_ns for p in points], dtype=np.float64)
    kinds = [feed.name for feed in OBSERVATION_FEEDS]
    marks = {kind: np.array([p.watermarks.get(kind, np.nan) for p in points], dtype=np.float64) for kind in kinds}
    split = {}
    for kind in kinds:
        counts = next((p.counts for p in reversed(points) if f"{kind}_source_lag_ms" in p.counts), None)
        if counts is not None:
            split[kind] = np.array([counts[f"{kind}_source_lag_ms"], counts[f"{kind}_pipeline_lag_ms"]]) / 1e3
    lag_s = {kind: (as_of - mark) / SECOND_NS for kind, mark in marks.items()}
    return (as_of[-1] - as_of) / (MINUTE_NS), lag_s, split


def _bias_texts(biases: TimeTagBiases) -> dict[str, Any]:
    names = biases.source_id.tolist()
    return {
        name: f"{offset * 1e3:+.1f} ± {sigma * 1e3:.1f} ms"
        for name, offset, sigma in zip(names, biases.offset_s.tolist(), biases.sigma_s.tolist(), strict=True)
    }


def _checked(name: str, problems: list[str], facts: dict[str, Any]) -> dg.AssetCheckResult:
    return warning(problems, facts, name=name, asset_key=KEY)

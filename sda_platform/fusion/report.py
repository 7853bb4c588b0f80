"""How well the fusion is doing: residuals and clock of each sensor, the map of tracks, the trail of watermarks.

Read from logs alone, and drawn outside the hot pool: pictures cost a second, which no alert should wait for.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.fusion.association_quality import AssociationOutcomes, told
from sda_platform.fusion.fit_quality import FitQuality
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FUSED_TRACKS, STATE_COLUMNS, TIME_TAG_BIASES, TRACKS
from sda_platform.fusion.time_bias import CLOCK_SCHEMA, corrected_rows, offsets_of
from sda_platform.fusion.time_bias_assets import known_corrections
from sda_platform.fusion.watermarks import window_start
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import Commit
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.frames import teme_to_pef
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.resources import LakeResource
from sda_platform.recovery.verification import current_keys

KEY = dg.AssetKey(["reports", "fusion"])
SPAN_NS = 600 * NANOSECONDS_PER_SECOND
"""How far back the report looks from the newest window, event time."""
_LEAST_READINGS = 20
_RECENT_COMMITS = 20
# Looked at in every one of its readings: what comes between two reports.
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
        dg.AssetCheckSpec("clocks_keep_their_bounds", asset=KEY, description="No clock is off by more than it claims."),
        dg.AssetCheckSpec("association_is_sound", asset=KEY, description="Residuals are as large as the noise says."),
        dg.AssetCheckSpec(
            "readings_find_their_objects",
            asset=KEY,
            description="Most readings are of one catalogued object, and as near to it as noise and elements say.",
        ),
    ],
)
def fusion_report(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster knows it bare only
    """How well the fusion is doing, over the last ten minutes of event time: residuals, clocks, tracks, watermarks; and
    of the last two minutes, which readings find their objects."""
    return report(lake.open(), fusion.window_ns, fusion.network())


def report(store: Lake, window_ns: int, sensors: SensorNetwork | None = None) -> dg.MaterializeResult[Any]:
    """The pictures and figures as metadata, and the outcome of the checks."""
    # Drawing takes a second to import, which every run's process would spend.
    from sda_platform.fusion import plots

    windows = recent_windows(store)
    readings = _readings(store, windows)
    quality = FitQuality.of(windows, readings)
    verdicts = recent_verdicts(store, readings, window_ns, sensors)
    clocks = newest_offsets(store)
    tracks = store.log(TRACKS).rows(["state", "epoch_time_ns", *STATE_COLUMNS[:3]])
    facts: dict[str, Any] = {"windows": quality.windows, "readings": quality.readings, "used": quality.used_share}
    facts |= {"rejected": quality.rejected_share, "chi_square_per_degree": quality.chi_square_per_degree}
    if len(clocks.source_id):
        facts["residuals"] = dg.MetadataValue.md(plots.residuals(clocks))
    if len(verdicts.outcome):
        facts["association"] = dg.MetadataValue.md(plots.association(verdicts))
        facts["association_by_sensor"] = dg.MetadataValue.md(told(verdicts))
    if tracks.num_rows:
        facts["track_map"] = dg.MetadataValue.md(plots.track_map(*_places(tracks)))
    commits = store.log(FUSED_TRACKS).commits()
    if commits:
        facts["watermark_trail"] = dg.MetadataValue.md(plots.watermark_trail(*_trail(commits)))
    wrong = clock_problems(clocks)
    return dg.MaterializeResult(
        metadata=facts,
        check_results=[
            _checked("clocks_keep_their_bounds", wrong, {"sensors": len(clocks.source_id), **_told(clocks)}),
            _checked("association_is_sound", quality.problems(), {"windows": quality.windows}),
            _checked("readings_find_their_objects", verdicts.problems(), verdicts.shares()),
        ],
    )


def recent_windows(store: Lake) -> pa.Table:
    """The standing fits of the report's span."""
    log = store.log(FUSED_TRACKS)
    upto = log.head().sequence
    newest_ns = pc.max(log.rows_of((upto - _RECENT_COMMITS, upto), ["window_start_ns"])["window_start_ns"]).as_py()
    since_ns = (newest_ns or 0) - SPAN_NS
    return current_keys(log, _WINDOW, where=ds.field("window_start_ns") >= since_ns)


def recent_verdicts(
    store: Lake, readings: pa.Table, window_ns: int, sensors: SensorNetwork | None = None
) -> AssociationOutcomes:
    """Which of the newest windows' ``readings`` find their object in the catalogue of now, by the fits' clocks."""
    newest_ns = window_start(pc.max(readings["sensor_time_ns"]).as_py() or 0, window_ns)
    starts_ns = range(newest_ns - (_ASSOCIATED_WINDOWS - 1) * window_ns, newest_ns + 1, window_ns)
    recent = readings.filter(pc.greater_equal(readings["sensor_time_ns"], starts_ns[0]))
    clocks = known_corrections(store, store.log(TIME_TAG_BIASES).head().sequence, starts_ns, window_ns)
    propagator = catalogue_at(store, store.log(ORBITAL_CATALOG).version()).propagator
    return AssociationOutcomes.of(corrected_rows(recent, clocks, window_ns), propagator, window_ns, sensors)


def newest_offsets(store: Lake) -> TimeTagBiases:
    """The clocks of the sensors, by the newest term that told of any."""
    log = store.log(TIME_TAG_BIASES)
    upto = log.head().sequence
    newest_ns = pc.max(log.rows_of((upto - _RECENT_COMMITS, upto), ["term_start_ns"])["term_start_ns"]).as_py()
    return offsets_of(log.rows(CLOCK_SCHEMA.names, ds.field("term_start_ns") == (newest_ns or 0)))


def clock_problems(clocks: TimeTagBiases) -> list[str]:
    """The sources whose clocks are certainly further off than their quality allows (CS, DP3-I4)."""
    sure_s = np.abs(clocks.offset_s) - 3 * clocks.sigma_s
    wrong = (sure_s > clocks.bound_s) & (clocks.observation_count >= _LEAST_READINGS)
    return [
        f"{clocks.source_id[n]} is {clocks.offset_s[n] * 1e3:+.1f} ms off (± {clocks.sigma_s[n] * 1e3:.1f}), "
        f"its clock claims {clocks.bound_s[n] * 1e3:.3g} ms"
        for n in np.flatnonzero(wrong)
    ]


def _readings(store: Lake, windows: pa.Table) -> pa.Table:
    """The observations of the windows' span."""
    if not windows.num_rows:
        return OBSERVATIONS.arrow_schema.empty_table().select(OBSERVATION_COLUMNS)
    ends = pc.min_max(windows["epoch_time_ns"]).as_py()
    half_ns = 15 * NANOSECONDS_PER_SECOND
    time_ns = ds.field("sensor_time_ns")
    span = (time_ns >= ends["min"] - half_ns) & (time_ns < ends["max"] + half_ns)
    return store.log(OBSERVATIONS).rows(OBSERVATION_COLUMNS, span)


def _places(tracks: pa.Table) -> tuple[FloatArray, FloatArray, list[str]]:
    """Longitude and latitude (n,) below each track, deg, and its state."""
    columns = arrays(tracks)
    place = np.stack([columns[name] for name in STATE_COLUMNS[:3]], axis=1)
    fixed = teme_to_pef(place, columns["epoch_time_ns"])
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
        told = next((p.counts for p in reversed(points) if f"{kind}_source_lag_ms" in p.counts), None)
        if told is not None:
            split[kind] = np.array([told[f"{kind}_source_lag_ms"], told[f"{kind}_pipeline_lag_ms"]]) / 1e3
    lag_s = {kind: (as_of - mark) / NANOSECONDS_PER_SECOND for kind, mark in marks.items()}
    return (as_of[-1] - as_of) / (60 * NANOSECONDS_PER_SECOND), lag_s, split


def _told(clocks: TimeTagBiases) -> dict[str, Any]:
    names = clocks.source_id.tolist()
    return {
        name: f"{offset * 1e3:+.1f} ± {sigma * 1e3:.1f} ms"
        for name, offset, sigma in zip(names, clocks.offset_s.tolist(), clocks.sigma_s.tolist(), strict=True)
    }


def _checked(name: str, problems: list[str], facts: dict[str, Any]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=KEY,
        check_name=name,
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(problems)[:1000] or None,
        metadata=facts,
    )

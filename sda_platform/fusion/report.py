"""How well the fusion is doing: residuals and clock of each sensor, the map of tracks, the trail of watermarks.

Read from logs alone, and drawn outside the hot lane: pictures cost a second, which no alert should wait for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.fusion.discovery import READING_COLUMNS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import Commit
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.verification import standing_keys
from sda_platform.orbits.covariance import transport
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.frames import teme_to_pef
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.clock_bias import ClockOffsets, clock_offsets

KEY = dg.AssetKey(["reports", "fusion"])
SPAN_NS = 600 * NANOSECONDS_PER_SECOND
"""How far back the report looks from the newest window, event time."""
# A satellite that reports its own state over a window is known to some 20 m along its motion.
_REFERENCE_SIGMA_S = 0.003
_LEAST_READINGS = 20
_RECENT_COMMITS = 20
# Chi-square per degree of freedom of all windows: far from one, the noise or the orbits are not what we think.
_CHI_SQUARE = (0.3, 2.0)
_MOST_REJECTED = 0.1
_STATE = ("x_km", "y_km", "z_km", "vx_km_s", "vy_km_s", "vz_km_s")
_WINDOW = (
    "norad_id", "epoch_time_ns", *_STATE, "chi_square", "degrees_of_freedom", "radar_count", "optical_count",
    "isl_count", "rejected_count", "observation_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Association:
    """Of the windows in the report's span, how readings were taken in; shares in [0, 1]."""

    windows: int
    readings: int
    used_share: float
    rejected_share: float
    chi_square_per_degree: float

    def problems(self) -> list[str]:
        """What is wrong, in words."""
        low, high = _CHI_SQUARE
        found = []
        if self.windows and not low <= self.chi_square_per_degree <= high:
            found.append(f"chi-square per degree of freedom is {self.chi_square_per_degree:.2f}, not {low} to {high}")
        if self.rejected_share > _MOST_REJECTED:
            found.append(f"{self.rejected_share:.0%} of the readings in fits are rejected, no more than 10% may be")
        return found


@dg.asset(
    key=KEY,
    group_name="fusion",
    deps=[FUSED_TRACKS.name, TRACKS.name, OBSERVATIONS.name],
    pool="catalog",
    kinds={"matplotlib"},
    check_specs=[
        dg.AssetCheckSpec("clocks_keep_their_bounds", asset=KEY, description="No clock is off by more than it claims."),
        dg.AssetCheckSpec("association_is_sound", asset=KEY, description="Residuals are as large as the noise says."),
    ],
)
def fusion_report(lake: LakeResource) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster knows it bare only
    """How well the fusion is doing, over the last ten minutes of event time: residuals, clocks, tracks, watermarks."""
    return report(lake.open())


def report(store: Lake) -> dg.MaterializeResult[Any]:
    """The pictures and figures as metadata, and the outcome of both checks."""
    # Drawing takes a second to import, which every run's process would spend.
    from sda_platform.fusion import pictures

    windows = recent_windows(store)
    readings = _readings(store, windows)
    quality = association(windows, readings)
    clocks = sensor_clocks(store, windows, readings)
    tracks = store.log(TRACKS).rows(["state", "epoch_time_ns", *_STATE[:3]])
    facts: dict[str, Any] = {"windows": quality.windows, "readings": quality.readings, "used": quality.used_share}
    facts |= {"rejected": quality.rejected_share, "chi_square_per_degree": quality.chi_square_per_degree}
    if len(clocks.source_id):
        facts["residuals"] = dg.MetadataValue.md(pictures.residuals(clocks))
    if tracks.num_rows:
        facts["track_map"] = dg.MetadataValue.md(pictures.track_map(*_places(tracks)))
    commits = store.log(FUSED_TRACKS).commits()
    if commits:
        facts["watermark_trail"] = dg.MetadataValue.md(pictures.watermark_trail(*_trail(commits)))
    wrong = clock_problems(clocks)
    return dg.MaterializeResult(
        metadata=facts,
        check_results=[
            _checked("clocks_keep_their_bounds", wrong, {"sensors": len(clocks.source_id), **_told(clocks)}),
            _checked("association_is_sound", quality.problems(), {"windows": quality.windows}),
        ],
    )


def recent_windows(store: Lake) -> pa.Table:
    """The standing fits of the report's span."""
    log = store.log(FUSED_TRACKS)
    upto = log.head().sequence
    newest_ns = pc.max(log.rows_of((upto - _RECENT_COMMITS, upto), ["window_start_ns"])["window_start_ns"]).as_py()
    since_ns = (newest_ns or 0) - SPAN_NS
    return standing_keys(log, _WINDOW, where=ds.field("window_start_ns") >= since_ns)


def association(windows: pa.Table, readings: pa.Table) -> Association:
    """How the readings of the span were taken into fits."""
    used = sum(map(len, windows["observation_ids"].to_pylist()))
    rejected, freedom = (pc.sum(windows[name]).as_py() or 0 for name in ("rejected_count", "degrees_of_freedom"))
    return Association(
        windows=windows.num_rows,
        readings=readings.num_rows,
        used_share=used / max(readings.num_rows, 1),
        rejected_share=rejected / max(used + rejected, 1),
        chi_square_per_degree=(pc.sum(windows["chi_square"]).as_py() or 0.0) / max(freedom, 1),
    )


def sensor_clocks(store: Lake, windows: pa.Table, readings: pa.Table) -> ClockOffsets:
    """The clocks of sensors on the ground, against satellites that told their own state in the same window."""
    told = windows.filter(pc.greater(windows["isl_count"], 0))
    row_of = {reading: row for row, ids in enumerate(told["observation_ids"].to_pylist()) for reading in ids}
    seen = readings.filter(pc.not_equal(readings["source_kind"], "isl"))
    row = np.array([row_of.get(reading, -1) for reading in seen["observation_id"].to_pylist()], dtype=np.int64)
    observations = ObservationArrays.from_columns(arrays(seen)).take(np.flatnonzero(row >= 0))
    numbers = np.asarray(told["norad_id"].to_numpy())
    propagator = catalogue_at(store, store.log(ORBITAL_CATALOG).version()).propagator
    known = np.isin(numbers, propagator.elements.norad_id)
    chosen = known[row[row >= 0]]
    paths = _Paths.of(told, propagator, row[row >= 0][chosen])
    return clock_offsets(observations.take(chosen), paths.at, reference_sigma_s=_REFERENCE_SIGMA_S)


@dataclass(frozen=True, eq=False)
class _Paths:
    """For each reading, the window fit of its object, carried along the catalogue's prediction."""

    propagator: Propagator
    index: IntArray
    epoch_ns: IntArray
    reference: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, windows: pa.Table, propagator: Propagator, row: IntArray) -> "_Paths":
        columns = arrays(windows, ("norad_id", "epoch_time_ns", *_STATE))
        index = np.searchsorted(propagator.elements.norad_id, columns["norad_id"])[row]
        epoch_ns = columns["epoch_time_ns"][row]
        _, r, v = propagator.at(index, epoch_ns)
        reference = np.hstack([r, v])
        state = np.stack([columns[name] for name in _STATE], axis=1)[row]
        return cls(propagator, index, epoch_ns, reference, state - reference)

    def at(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States at times, one of each reading."""
        elapsed_s = (time_ns - self.epoch_ns) / NANOSECONDS_PER_SECOND
        none = np.zeros((len(time_ns), 6, 6))
        moved, _ = transport(self.deviation, none, self.reference[:, :3], self.reference[:, 3:], elapsed_s)
        _, r, v = self.propagator.at(self.index, time_ns)
        return r + moved[:, :3], v + moved[:, 3:]


def clock_problems(clocks: ClockOffsets) -> list[str]:
    """The sources whose clocks are certainly further off than their quality allows (CS, DP3-I4)."""
    sure_s = np.abs(clocks.offset_s) - 3 * clocks.sigma_s
    wrong = (sure_s > clocks.bound_s) & (clocks.readings >= _LEAST_READINGS)
    return [
        f"{clocks.source_id[n]} is {clocks.offset_s[n] * 1e3:+.1f} ms off (± {clocks.sigma_s[n] * 1e3:.1f}), "
        f"its clock claims {clocks.bound_s[n] * 1e3:.3g} ms"
        for n in np.flatnonzero(wrong)
    ]


def _readings(store: Lake, windows: pa.Table) -> pa.Table:
    """The observations of the windows' span."""
    if not windows.num_rows:
        return OBSERVATIONS.arrow_schema.empty_table().select(READING_COLUMNS)
    ends = pc.min_max(windows["epoch_time_ns"]).as_py()
    half_ns = 15 * NANOSECONDS_PER_SECOND
    time_ns = ds.field("sensor_time_ns")
    span = (time_ns >= ends["min"] - half_ns) & (time_ns < ends["max"] + half_ns)
    return store.log(OBSERVATIONS).rows(READING_COLUMNS, span)


def _places(tracks: pa.Table) -> tuple[FloatArray, FloatArray, list[str]]:
    """Longitude and latitude (n,) below each track, deg, and its state."""
    columns = arrays(tracks)
    place = np.stack([columns[name] for name in _STATE[:3]], axis=1)
    fixed = teme_to_pef(place, columns["epoch_time_ns"])
    longitude = np.degrees(np.arctan2(fixed[:, 1], fixed[:, 0]))
    latitude = np.degrees(np.arctan2(fixed[:, 2], np.hypot(fixed[:, 0], fixed[:, 1])))
    return longitude, latitude, tracks["state"].to_pylist()


def _trail(commits: Sequence[Commit]) -> tuple[FloatArray, dict[str, FloatArray], dict[str, FloatArray]]:
    """Minutes before the newest commit (n,); by kind its lag behind the clock (n,), and its newest lags, s."""
    points = [commit.checkpoint for commit in reversed(commits)]
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


def _told(clocks: ClockOffsets) -> dict[str, Any]:
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

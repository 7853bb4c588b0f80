"""The report on the fusion: pictures that are small, and checks that see a wrong clock and a wrong noise."""

import base64
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.fusion.fuse import window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, live_tracks
from sda_platform.fusion.report import recent_outcomes, report
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.fusion.time_bias import BIAS_SCHEMA, estimated
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.scenes import START_NS, catalogue
from sda_platform_tests.support.windows import WINDOW_NS, published, watched_beacons

WINDOWS = 3
AS_OF_NS = START_NS + WINDOWS * WINDOW_NS


def lake_with(root: Path, observed: list[pa.Table], unknown: int = 0, **altered: Any) -> Lake:
    """A lake that fused these windows, without some objects in its catalogue, with columns of the fits altered."""
    lake = lake_at(root, now_ns=AS_OF_NS)
    numbers = {int(name[4:]) for rows in observed for name in rows["source_id"].to_pylist() if name.startswith("isl-")}
    known = catalogue().elements.take(np.flatnonzero(np.isin(catalogue().elements.norad_id, sorted(numbers)[unknown:])))
    propagator = Propagator(known.take(np.argsort(known.norad_id)))
    fits = pa.concat_tables([window_fuser(propagator, WINDOW_NS)(rows) for rows in observed])
    commit(lake, ORBITAL_CATALOG, published(propagator))
    commit(lake, OBSERVATIONS, [row for rows in observed for row in rows.to_pylist()])
    marks = {"optical": AS_OF_NS - 30 * 10**9, "isl": AS_OF_NS - 10**10, "pipeline": AS_OF_NS - 30 * 10**9}
    lags = {"optical_source_lag_ms": 9_000, "optical_pipeline_lag_ms": 2_500, "isl_source_lag_ms": 400}
    journal = [{**row, "sequence": 0, "op": "insert", **altered} for row in fits.to_pylist()]
    counts = {**lags, "isl_pipeline_lag_ms": 2_400}
    commit(lake, FUSED_TRACKS, journal, watermarks=marks, counts=counts, as_of_ns=AS_OF_NS)
    told = estimated(pa.concat_tables(observed), BIAS_SCHEMA.empty_table(), propagator, START_NS, WINDOW_NS, AS_OF_NS)
    commit(lake, TIME_TAG_BIASES, told.to_pylist())
    tracks = live_tracks(fits, fits.select(CHANGE_COLUMNS), TRACK_SCHEMA.empty_table(), propagator, AS_OF_NS)
    commit(lake, TRACKS, tracks.to_pylist())
    return lake


def outcome(found: dg.MaterializeResult[Any]) -> dict[str, str | None]:
    """What each check that failed states."""
    return {check.check_name or "": check.description for check in found.check_results or [] if not check.passed}


def test_sound_fusion_is_shown_in_small_pictures_and_checked(tmp_path: Path) -> None:
    found = report(lake_with(tmp_path, watched_beacons(20, WINDOWS)), WINDOW_NS)
    assert outcome(found) == {}
    metadata = found.metadata or {}
    for name in ("residuals", "association", "track_map", "watermark_trail"):
        text = str(metadata[name].value)  # type: ignore[union-attr]
        picture = base64.b64decode(text.partition("base64,")[2].rstrip(")"))
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 60_000


def test_a_bias_above_the_bound_of_its_clock_quality_is_reported__DP3_I4(tmp_path: Path) -> None:
    failed = outcome(report(lake_with(tmp_path, watched_beacons(20, WINDOWS, ahead_ms=80.0)), WINDOW_NS))
    text = failed["biases_within_bounds"] or ""
    assert "optical-" in text and "the bound of its clock quality is 10 ms" in text
    offsets = [float(part.split(" ")[2]) for part in text.split("; ")]
    assert np.median(offsets) == pytest.approx(80.0, abs=3.0)


def test_observations_are_associated_with_the_bias_corrections_of_the_fits__CS(tmp_path: Path) -> None:
    right, wrong = (watched_beacons(20, 1, ahead_ms, kind="radar") for ahead_ms in (0.0, 80.0))
    lake = lake_with(tmp_path, wrong)

    def levels(observed: list[pa.Table]) -> np.ndarray:
        found = recent_outcomes(lake, pa.concat_tables(observed), WINDOW_NS)
        return np.sort(found.level[found.source_id != "isl"])

    true, off = levels(right), levels(wrong)
    this_term = {"term_start_ns": 0, "holds_from_ns": START_NS, "is_applied": True, "correction_sigma_s": 1e-4}
    told = lake.log(TIME_TAG_BIASES).rows(BIAS_SCHEMA.names).to_pylist()
    commit(lake, TIME_TAG_BIASES, [{**row, **this_term} for row in told])
    assert np.nanmax(np.abs(levels(wrong) - true)) < 0.1 * np.nanmax(np.abs(off - true))


def test_fits_that_noise_cannot_explain_are_seen(tmp_path: Path) -> None:
    worse = lake_with(tmp_path, watched_beacons(5, WINDOWS), chi_square=1e4)
    assert "chi-square per degree of freedom is" in (outcome(report(worse, WINDOW_NS))["association_is_sound"] or "")


def test_many_rejected_observations_are_reported(tmp_path: Path) -> None:
    worse = lake_with(tmp_path, watched_beacons(5, WINDOWS), rejected_count=40)
    assert "of the observations in fits are rejected" in (
        outcome(report(worse, WINDOW_NS))["association_is_sound"] or ""
    )


def test_a_sensor_with_uncorrelated_observations_is_named(tmp_path: Path) -> None:
    text = outcome(report(lake_with(tmp_path, watched_beacons(20, WINDOWS), unknown=15), WINDOW_NS))
    said = text["observations_match_objects"] or ""
    assert "optical-" in said and "observations match no object" in said


def test_an_empty_lake_is_reported_without_pictures(tmp_path: Path) -> None:
    found = report(lake_at(tmp_path), WINDOW_NS)
    assert outcome(found) == {}
    assert not {"residuals", "association", "track_map", "watermark_trail"} & set(found.metadata or {})

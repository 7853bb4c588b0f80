"""Simulated worlds: reproducible, true to what the sensors can see, and honest in their truth."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import describe_segment
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.frames import site_is_dark, site_to_teme, sun_teme_km, sunlit_fraction, topocentric
from sda_platform.orbits.sensing.light import echo_range_km, seen_state
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import SensorNetwork, sensor_registry
from sda_platform.simulation.breakup import Breakup
from sda_platform.simulation.corruption import LATENESS_BOUND_NS, FaultRates
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.reference import REFERENCE_TIME_NS, reference_catalogue
from sda_platform.simulation.scenarios import Incidents, Outage
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import SimulatedSegment, simulate, write_truth
from sda_platform_tests.support.observations import decode_observations
from sda_platform_tests.support.sampling import sampled

SECOND_NS = 1_000_000_000
# Three of the four telescope sites are dark at this hour.
START_NS = REFERENCE_TIME_NS + 12 * 3600 * SECOND_NS
RATES = FaultRates(late=0.1, duplicate=0.05, corrupt=0.03)


@cache
def catalogue() -> bytes:
    lines = reference_catalogue().splitlines(keepends=True)
    return b"".join([lines[0], *lines[1::90]])


@cache
def world(scenario: str = "nominal", seed: int = 1) -> tuple[SimulatedSegment, ...]:
    source = reference_catalogue() if scenario == "fragmentation" else catalogue()
    followed = norad_ids()
    segments = simulate(
        scenario,
        start_time_ns=START_NS,
        duration_s=150,
        seed=seed,
        objects=followed,
        catalogue=source,
        rates=RATES,
        plan=ObservingPlan(radar_interval_s=5.0),
    )
    return tuple(segments)


@cache
def norad_ids() -> tuple[int, ...]:
    ids = decode_element_sets(catalogue(), segment_format="omm-csv")["norad_id"].to_pylist()
    return tuple(ids)


def sensor_segments(segments: Sequence[SimulatedSegment]) -> list[SimulatedSegment]:
    return [segment for segment in segments if segment.feed != "elements"]


def decoded(segment: SimulatedSegment) -> pa.Table:
    return decode_observations(
        segment.data,
        feed=segment.feed,
        segment_format=segment.segment_format,
        sealed_time_ns=segment.available_time_ns,
    )


def truth(segments: Sequence[SimulatedSegment]) -> pa.Table:
    return pa.concat_tables([segment.truth for segment in segments])


def column(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()


def test_the_reference_catalogue_is_whole() -> None:
    table = decode_element_sets(reference_catalogue(), segment_format="omm-csv")
    assert table.num_rows == 26_834
    assert table["error"].null_count == 26_834
    assert max(table["norad_id"].to_pylist()) == 270_387


@pytest.mark.parametrize("scenario", sampled(["nominal", "outage"], "nominal"))
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(scenario: str) -> None:
    first, again = world(scenario), world.__wrapped__(scenario)
    assert [(s.data, s.meta, s.available_time_ns) for s in first] == [
        (s.data, s.meta, s.available_time_ns) for s in again
    ]
    assert all(a.truth.equals(b.truth) for a, b in zip(first, again, strict=True))
    assert [s.data for s in world(scenario, seed=2)] != [s.data for s in first]


@pytest.mark.parametrize("scenario", ["nominal", "outage", "fragmentation"])
def test_segments_arrive_in_order_and_say_what_they_hold(scenario: str) -> None:
    segments = world(scenario)
    times = [segment.available_time_ns for segment in segments]
    assert times == sorted(times)
    for segment in segments:
        assert segment.meta == describe_segment(
            segment.data,
            feed=segment.feed,
            segment_format=segment.segment_format,
            sealed_time_ns=segment.available_time_ns,
            sealed_wall_time_ns=segment.available_time_ns,
            first_event_time_ns=segment.meta.first_event_time_ns,
            last_event_time_ns=segment.meta.last_event_time_ns,
            source_watermark_ns=segment.meta.source_watermark_ns,
        )
    names = [(segment.feed, segment.available_time_ns) for segment in segments]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scenario", ["nominal", "outage", "fragmentation"])
def test_every_record_is_good_repeated_or_corrupt_and_the_truth_knows_which(scenario: str) -> None:
    seen: Counter[str] = Counter()
    for segment in sensor_segments(world(scenario)):
        rows, known = decoded(segment), segment.truth
        assert rows.num_rows == known.num_rows == segment.meta.records
        is_corrupt = column(known, "fault") == "corrupt"
        assert (column(rows, "error_kind") != np.array(None)).tolist() == is_corrupt.tolist()
        assert rows["observation_id"].to_pylist() == known["observation_id"].to_pylist()
        decodable = pa.array(~is_corrupt)
        for name in ("source_id", "sensor_time_ns", "received_time_ns"):
            assert rows[name].filter(decodable).to_pylist() == known[name].filter(decodable).to_pylist()
        seen.update(known["fault"].to_pylist())
    everything = truth(world(scenario))
    assert sum(seen.values()) == everything.num_rows == sum(s.meta.records for s in sensor_segments(world(scenario)))
    assert set(seen) == {"none", "duplicate", "corrupt"}
    good = everything.filter(pa.array(column(everything, "fault") == "none"))
    repeated = everything.filter(pa.array(column(everything, "fault") == "duplicate"))
    assert len(set(good["observation_id"].to_pylist())) == good.num_rows
    assert set(repeated["observation_id"].to_pylist()) <= set(good["observation_id"].to_pylist())


def test_fault_rates_are_what_was_asked() -> None:
    everything = truth(world())
    shares = {kind: np.mean(column(everything, "fault") == kind) for kind in ("duplicate", "corrupt")}
    assert shares["duplicate"] == pytest.approx(RATES.duplicate, rel=0.3)
    assert shares["corrupt"] == pytest.approx(RATES.corrupt, rel=0.3)


def test_no_faults_asked_none_made() -> None:
    quiet = FaultRates(late=0.0, duplicate=0.0, corrupt=0.0)
    segments = list(
        simulate("nominal", start_time_ns=START_NS, duration_s=10, seed=1, catalogue=catalogue(), rates=quiet)
    )
    assert set(truth(segments)["fault"].to_pylist()) == {"none"}


@pytest.mark.parametrize("scenario", ["nominal", "fragmentation"])
def test_every_observation_arrives_within_its_source_lateness_bound(scenario: str) -> None:
    for segment in sensor_segments(world(scenario)):
        rows = decoded(segment)
        rows = rows.filter(rows["error"].is_null())
        late_ns = column(rows, "received_time_ns") - column(rows, "sensor_time_ns")
        assert np.all(late_ns <= LATENESS_BOUND_NS[segment.feed])
        assert np.all(column(segment.truth, "received_time_ns") > column(segment.truth, "true_time_ns"))
        assert np.all(column(segment.truth, "received_time_ns") < segment.available_time_ns)


def test_no_observation_is_older_than_the_watermark_of_an_earlier_segment_of_its_feed() -> None:
    watermark = dict.fromkeys(LATENESS_BOUND_NS, 0)
    for segment in sensor_segments(world()):
        assert (segment.meta.first_event_time_ns or 0) >= watermark[segment.feed]
        assert segment.meta.source_watermark_ns is not None
        watermark[segment.feed] = segment.meta.source_watermark_ns


def test_every_feed_speaks() -> None:
    assert {segment.feed for segment in world()} == {"radar", "optical", "isl"}


def test_radars_and_telescopes_see_above_their_horizon_and_within_their_range() -> None:
    everything = truth(world())
    for source_id, sensor in sensor_registry().items():
        rows = everything.filter(pa.array(column(everything, "source_id") == source_id))
        r_km, v_km_s, time_ns = states(rows)
        _, elevation_rad, range_km, _ = topocentric(
            r_km, v_km_s, sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m, time_ns
        )
        assert np.all(np.degrees(elevation_rad) >= sensor.min_elevation_deg - 1e-9)
        assert np.all(range_km <= sensor.max_range_km + 1e-6)


def test_telescopes_see_only_lit_objects_over_dark_sites() -> None:
    everything = truth(world())
    rows = everything.filter(pa.array(column(everything, "feed") == "optical"))
    r_km, _, time_ns = states(rows)
    assert len(r_km) > 20
    sites = [sensor_registry()[source_id] for source_id in rows["source_id"].to_pylist()]
    latitude, longitude = [site.latitude_deg for site in sites], [site.longitude_deg for site in sites]
    assert np.all(site_is_dark(latitude, longitude, time_ns))
    assert np.all(sunlit_fraction(r_km, sun_teme_km(time_ns)) == 1.0)


def states(rows: pa.Table) -> tuple[Any, Any, Any]:
    """True positions km, velocities km/s and times of truth rows."""
    r_km = np.stack([column(rows, name) for name in ("x_m", "y_m", "z_m")], axis=1) / 1e3
    v_km_s = np.stack([column(rows, name) for name in ("vx_m_s", "vy_m_s", "vz_m_s")], axis=1) / 1e3
    return r_km, v_km_s, column(rows, "true_time_ns")


def test_radar_observations_scatter_about_the_truth_by_their_own_sigma() -> None:
    residuals = []
    for segment in world():
        if segment.feed != "radar":
            continue
        rows, known = decoded(segment), segment.truth
        sensors = [sensor_registry()[name] for name in known["source_id"].to_pylist()]
        site = [
            np.array([getattr(s, name) for s in sensors]) for name in ("latitude_deg", "longitude_deg", "altitude_m")
        ]
        r_km, v_km_s, time_ns = states(known)
        site_km, site_km_s = site_to_teme(site[0], site[1], site[2], time_ns)
        range_km = echo_range_km(seen_state(r_km, v_km_s, site_km)[0], site_km, site_km_s)
        good = column(known, "fault") == "none"
        difference_m = column(rows, "range_m") - range_km * 1e3
        residuals.append((difference_m / column(rows, "range_sigma_m"))[good])
    scatter = np.concatenate(residuals)
    assert np.mean(scatter) == pytest.approx(0.0, abs=0.1)
    assert np.std(scatter) == pytest.approx(1.0, abs=0.1)


def test_observations_do_not_name_their_object() -> None:
    for segment in world():
        if segment.feed == "isl":
            continue
        rows, known = decoded(segment), segment.truth
        natives, ids = rows["native_track_id"].to_pylist(), known["norad_id"].to_pylist()
        assert all(native != str(norad_id) for native, norad_id in zip(natives, ids, strict=True))


@pytest.mark.parametrize("scenario", ["outage", "nominal"])
def test_a_silent_radar_catches_up_and_the_others_do_not_notice(scenario: str) -> None:
    busiest = Counter(truth(world())["source_id"].to_pylist())
    silent = next(name for name, _ in busiest.most_common() if name.startswith("radar"))
    at_will = Outage.of_middle_third(START_NS, 60 * SECOND_NS, silent)
    silent, outages = ("radar-1", ()) if scenario == "outage" else (silent, (at_will,))
    segments = list(
        simulate(
            scenario,
            start_time_ns=START_NS,
            duration_s=60,
            seed=1,
            objects=norad_ids(),
            catalogue=catalogue(),
            incidents=Incidents(outages=outages),
        )
    )
    everything = truth(segments)
    received = column(everything, "received_time_ns") - START_NS
    is_silent = column(everything, "source_id") == silent
    during = (received >= 20 * SECOND_NS) & (received < 40 * SECOND_NS)
    assert not np.any(is_silent & during)
    measured = (column(everything, "true_time_ns") - START_NS)[is_silent]
    assert np.any((measured > 20 * SECOND_NS) & (measured < 39 * SECOND_NS))
    assert np.any(during & ~is_silent)


def test_debris_comes_from_where_its_parent_was_and_is_published_after_it_is_seen() -> None:
    segments = world("fragmentation")
    (published,) = (segment for segment in segments if segment.feed == "elements")
    debris = decode_element_sets(published.data, segment_format="omm-csv")
    assert debris.num_rows == 120
    assert debris["error"].null_count == 120
    ids = set(debris["norad_id"].to_pylist())
    assert min(ids) > 900_000
    everything = truth(segments)
    of_debris = everything.filter(pa.array(np.isin(column(everything, "norad_id"), list(ids))))
    assert of_debris.num_rows > 0
    first_seen_ns = min(of_debris["true_time_ns"].to_pylist())
    assert START_NS + 30 * SECOND_NS <= first_seen_ns < published.available_time_ns
    early = of_debris.filter(pa.array(column(of_debris, "true_time_ns") < first_seen_ns + 5 * SECOND_NS))
    r_km, _, _ = states(early)
    assert np.max(np.linalg.norm(r_km - r_km.mean(axis=0), axis=1)) < 60.0


def test_an_unknown_scenario_or_parent_is_refused() -> None:
    with pytest.raises(ValueError, match="none of nominal"):
        list(simulate("apocalypse", start_time_ns=START_NS, duration_s=1, seed=1, catalogue=catalogue()))
    with pytest.raises(ValueError, match="123456789"):
        nobody = Breakup(parent_norad_id=123_456_789)
        list(simulate("fragmentation", start_time_ns=START_NS, duration_s=1, seed=1, breakup=nobody))


def test_truth_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "truth.parquet"
    assert write_truth(world(), path) == truth(world()).num_rows
    assert pq.read_table(path).equals(truth(world()))


def test_calls_with_one_beginning_of_truth_show_one_world_at_different_times() -> None:
    later = START_NS + 900 * SECOND_NS
    shown = simulate(
        "nominal", start_time_ns=later, duration_s=10, seed=1, catalogue=catalogue(), truth_from_ns=START_NS
    )
    rows = truth([segment for segment in shown if segment.feed == "radar"])
    r_km, _, time_ns = states(rows)
    deviations = []
    for from_ns in (START_NS, later):
        sky = Sky.of_catalogue(
            decode_element_sets(catalogue(), segment_format="omm-csv"),
            objects=None,
            seed=1,
            catalogue_error_s=ObservingPlan().catalogue_error_s,
            start_time_ns=from_ns,
        )
        index = np.array([int(np.flatnonzero(sky.norad_id == number)[0]) for number in column(rows, "norad_id")])
        deviations.append(np.linalg.norm(sky.states(index, time_ns)[1] - r_km, axis=1).max())
    assert len(rows) > 20
    assert deviations[0] < 1e-9
    assert deviations[1] > 0.01, "another beginning is another world"


def test_a_break_up_is_the_same_in_a_later_stretch_of_its_world() -> None:
    later = simulate(
        "fragmentation", start_time_ns=START_NS + 100 * SECOND_NS, duration_s=40, seed=1, objects=norad_ids(),
        catalogue=reference_catalogue(), truth_from_ns=START_NS, plan=ObservingPlan(radar_interval_s=5.0),
    )  # fmt: skip
    segments = list(later)
    assert "elements" not in {segment.feed for segment in segments}, "its debris was published before"
    seen = [places(truth(sensor_segments(each))) for each in (segments, world("fragmentation"))]
    common = seen[0].keys() & seen[1].keys()
    assert {norad_id for norad_id, _ in common} > set(norad_ids()) & {norad_id for norad_id, _ in seen[0]}, "debris"
    assert max(np.linalg.norm(seen[0][key] - seen[1][key]) for key in common) < 1e-6


def places(rows: pa.Table) -> dict[tuple[int, int], Any]:
    """True positions, km, by object and time."""
    r_km, _, time_ns = states(rows)
    return dict(zip(zip(column(rows, "norad_id").tolist(), time_ns.tolist(), strict=True), r_km, strict=True))


def test_telescopes_and_radars_report_in_the_references_of_their_list() -> None:
    """Reduced again, their errors are their noise; read as TEME of date without refraction, they are not."""
    stated: dict[str, dict[str, Any]] = {
        "optical": {"angle_frame": "EME2000", "angle_aberration": "annual"},
        "radar": {"angle_refraction": "included"},
    }
    network = SensorNetwork([dataclasses.replace(s, **stated[s.kind]) for s in sensor_registry().values()])
    plan = ObservingPlan(radar_interval_s=5.0, sensors=network)
    segments = sensor_segments(
        list(
            simulate(
                "nominal", start_time_ns=START_NS, duration_s=20, seed=1, objects=norad_ids(), catalogue=catalogue(),
                rates=FaultRates(), plan=plan,
            )
        )
    )  # fmt: skip
    rows = pa.concat_tables(decoded(segment) for segment in segments)
    truth = pa.concat_tables(segment.truth for segment in segments)
    place = {name: row for row, name in enumerate(truth["observation_id"].to_pylist())}
    for kind in stated:
        mine = rows.filter(pc.and_(pc.equal(rows["source_kind"], kind), pc.is_null(rows["error_kind"])))
        r, v = (
            np.stack([truth[name].to_numpy() for name in names], axis=1)[
                [place[name] for name in mine["observation_id"].to_pylist()]
            ]
            / 1e3
            for names in (("x_m", "y_m", "z_m"), ("vx_m_s", "vy_m_s", "vz_m_s"))
        )
        columns = arrays(mine)
        assert set(columns["angle_frame"].tolist()) == ({"EME2000"} if kind == "optical" else {""})
        right = _normalised_rms(ObservationArrays.from_columns(columns, network), r, v)
        unstated = {name: column for name, column in columns.items() if name not in ANGLE_REFERENCES}
        wrong = _normalised_rms(ObservationArrays.from_columns(unstated), r, v)
        assert right < 1.2 < 2 < wrong, kind


def _normalised_rms(observations: ObservationArrays, r: FloatArray, v: FloatArray) -> float:
    line = prepare(observations).linearise(r, v)
    squared = np.einsum("mi,mi->m", line.residual, np.linalg.solve(line.noise, line.residual[:, :, None])[:, :, 0])
    return float(np.sqrt(squared.sum() / prepare(observations).present.sum()))

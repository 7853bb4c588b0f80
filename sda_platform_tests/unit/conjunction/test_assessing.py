"""Candidates assessed: every column of the table, better states where there are some, and what the risk rests on."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sda_platform
from sda_platform.catalog.orbits import Catalogue
from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.assess import ASSESSED_SCHEMA, TRACK_COLUMNS, assess_candidates
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.lake.journal import fact_types
from sda_platform.operations.screen_catalogue import read_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.best_probability import METHODS
from sda_platform.orbits.risk.probability import HARD_BODY_RADIUS_M

CATALOGUE = Path(sda_platform.__file__).parent / "simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"
EVENTS = Path(__file__).parents[2] / "data" / "screening" / "fleet_events_24h_5km_2024-11-01.csv"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    elements = read_elements(CATALOGUE).elements
    return Catalogue(Propagator(elements), tuple(f"OBJECT {n} DEB" for n in elements.norad_id.tolist()))


@pytest.fixture(scope="module")
def candidates() -> pa.Table:
    with EVENTS.open() as file:
        rows = list(csv.DictReader(file))
    columns = {
        "event_id": pa.array([str(number) for number in range(len(rows))]),
        "norad_id_1": pa.array([int(row["norad_lo"]) for row in rows]),
        "norad_id_2": pa.array([int(row["norad_hi"]) for row in rows]),
        "tca_time_ns": pa.array([parse_iso_ns(row["tca_utc"]) for row in rows]),
    }
    types = {"track_id": pa.string(), "epoch_time_ns": pa.int64(), "covariance": pa.list_(pa.float64())}
    for number in (1, 2):
        for name in TRACK_COLUMNS:
            columns[f"{name}_{number}"] = pa.nulls(len(rows), types.get(name, pa.float64()))
    return pa.table(columns)


def test_the_assessor_fills_every_column_of_the_table_in_its_order() -> None:
    assert ASSESSED_SCHEMA.names == [part.split()[0] for part in fact_types(CONJUNCTION_ASSESSMENTS).split(", ")]


def test_real_approaches_are_assessed_by_the_model_and_say_so(catalogue: Catalogue, candidates: pa.Table) -> None:
    found = assess_candidates(candidates, catalogue)
    assert found.num_rows == candidates.num_rows
    assert pc.all(found.column("is_screening_only")).as_py()
    assert set(found.column("probability_method").to_pylist()) <= set(METHODS)
    assert set(found.column("object_type_1").to_pylist()) <= set(HARD_BODY_RADIUS_M)
    assert pc.all(found.column("is_2d_valid")).as_py()
    assert found.column("collision_probability").equals(found.column("probability_2d"))
    least = pc.subtract(found.column("maximum_probability"), found.column("collision_probability"))
    assert pc.min(least).as_py() >= 0
    speed = np.sqrt(
        sum(found.column(c).to_numpy() ** 2 for c in found.column_names if c.startswith("relative_velocity"))
    )
    np.testing.assert_allclose(speed, found.column("relative_speed_km_s").to_numpy(), rtol=1e-12)
    half_km = found.column("time_within_5_km_s").to_numpy() / 2 * speed
    np.testing.assert_allclose(np.hypot(half_km, found.column("miss_distance_km").to_numpy()), 5, atol=1e-9)


def test_a_track_takes_the_place_of_the_model(catalogue: Catalogue, candidates: pa.Table) -> None:
    one = candidates.slice(0, 1)
    time_ns = one.column("tca_time_ns").to_numpy()
    for number in (1, 2):
        row = catalogue.positions(one.column(f"norad_id_{number}").to_pylist())
        _, r, v = catalogue.propagator.at(row, time_ns)
        lower = np.diag([1e-4, 1e-4, 1e-4, 1e-12, 1e-12, 1e-12])[np.tril_indices(6)]
        track = ["a track", int(time_ns[0]), *np.concatenate([r[0], v[0]]).tolist(), lower.tolist()]
        for name, value in zip(TRACK_COLUMNS, track, strict=True):
            field = one.schema.field(f"{name}_{number}")
            one = one.set_column(one.schema.get_field_index(field.name), field, pa.array([value], field.type))
    (found,) = assess_candidates(one, catalogue).to_pylist()
    (before,) = assess_candidates(candidates.slice(0, 1), catalogue).to_pylist()
    assert (found["state_source_1"], found["state_source_2"], found["is_screening_only"]) == ("fused_track",) * 2 + (
        False,
    )
    assert found["miss_distance_km"] == pytest.approx(before["miss_distance_km"], abs=1e-6)
    assert found["mahalanobis_distance"] == pytest.approx(found["miss_distance_km"] / np.sqrt(2e-4), rel=1e-3)

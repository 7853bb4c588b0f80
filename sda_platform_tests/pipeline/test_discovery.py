"""A break-up that no one has published: its fragments are found, numbered, catalogued and screened."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.tables import ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.lake.arrow import arrays
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.orbit_determination.uncorrelated_tracks import ANALYST_SATELLITE_IDS
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.simulation.breakup import FIRST_FRAGMENT_ID, Breakup
from sda_platform.simulation.segments import SimulatedSegment
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, land

CHAIN = ["raw_records", "observations", "fused_tracks"]
SECONDS = 240
FRAGMENTS = 8
FOLLOWED = catalogue_ids()[:4]


@cache
def simulated() -> tuple[SimulatedSegment, ...]:
    """Radars watch fragments of a rocket stage, and a few satellites that keep the links' watermark going."""
    breakup = Breakup(fragments=FRAGMENTS, after_s=5.0, published_after_s=None)
    world = simulate(
        "fragmentation", start_time_ns=START_NS, duration_s=SECONDS, seed=7, objects=FOLLOWED, breakup=breakup
    )
    return tuple(segment for segment in world if segment.feed in ("radar", "isl"))


def fragments() -> pa.Table:
    """The truth of the fragments, by observation."""
    truth = pa.concat_tables([segment.truth for segment in simulated() if segment.feed == "radar"])
    return truth.filter(pc.greater_equal(truth["norad_id"], FIRST_FRAGMENT_ID))


def test_fragments_that_no_one_published_are_found_catalogued_and_screened(platform: Platform) -> None:
    known = {*catalogue_ids()[::60], *FOLLOWED}
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(known))
    platform.run("catalog_to_alerts", only=["element_sets", "orbital_catalog", "conjunction_candidates"])
    first = [s for s in simulated() if s.available_time_ns <= after(200)]
    for seconds, segments in ((200, first), (SECONDS + 5, [s for s in simulated() if s not in first])):
        platform.at(after(seconds))
        platform.land(segments)
        platform.run("observations_to_alerts", only=CHAIN)
    found = platform.run("orbit_determination")
    assert all(correctness(found).values()), correctness(found)

    rows = platform.rows(PROVISIONAL_ELEMENTS)
    owner = dict(zip(fragments()["observation_id"].to_pylist(), fragments()["norad_id"].to_pylist(), strict=True))
    seen = {row["norad_id"]: {owner.get(reading, 0) for reading in row["observation_ids"]} for row in rows.to_pylist()}
    assert all(len(objects) == 1 for objects in seen.values()), "no orbit mixes two objects"
    assert len({min(objects) for objects in seen.values()}) == FRAGMENTS
    assert set(seen) <= set(ANALYST_SATELLITE_IDS)
    assert max(misses_m(rows)) < 1_000
    resources = platform.definitions.resources or {}
    (again,) = replay_lake(platform.lake, str(platform.home / "shadow"), resources, tables=[PROVISIONAL_ELEMENTS])
    assert again.differences == ()

    (segment,) = platform.zone(ELEMENTS_FEED).pending_names()
    assert segment.startswith("provisional_elements-"), "the job publishes what it found"
    result = platform.run("catalog_to_alerts", only=["element_sets", "orbital_catalog", "conjunction_candidates"])
    assert all(correctness(result).values()), correctness(result)
    entries = platform.rows(ORBITAL_CATALOG, "norad_id", "originator", "object_name").to_pylist()
    provisional = {row["norad_id"]: row for row in entries if row["norad_id"] in seen}
    assert set(provisional) == set(seen)
    assert {row["originator"] for row in provisional.values()} == {OWN_ORIGINATOR}
    told = {e.asset_key.to_user_string(): e.materialization.metadata for e in result.get_asset_materialization_events()}  # type: ignore[union-attr]
    screened = told["conjunction_candidates"]
    assert (screened["screening"].value, screened["changed"].value) == ("changed objects", len(seen))


def misses_m(rows: pa.Table) -> list[float]:
    """How far each orbit is from the truth of its own observations, at the one nearest to its epoch."""
    truth = {row["observation_id"]: row for row in fragments().to_pylist()}
    propagator, found = Propagator(ElementSets.from_columns(arrays(rows))), []
    for number, row in enumerate(rows.to_pylist()):
        readings = [truth[reading] for reading in row["observation_ids"]]
        near = min(readings, key=lambda r: abs(r["true_time_ns"] - row["epoch_time_ns"]))
        _, place, _ = propagator.at([number], [near["true_time_ns"]])
        found.append(float(np.linalg.norm(place[0] * 1e3 - [near["x_m"], near["y_m"], near["z_m"]])))
    return found

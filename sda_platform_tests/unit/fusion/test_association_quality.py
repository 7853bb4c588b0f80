"""Association told in shares and distances: as expected for honest elements, and red for those that err more."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.fusion.association_quality import (
    AMBIGUOUS,
    ASSOCIATED,
    OUTCOMES,
    UNMATCHED,
    AssociationOutcomes,
    sensor_table,
)
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.windows import WINDOW_NS, some_catalogue, tracked_windows


def outcomes(ahead_deg: float = 0.0) -> AssociationOutcomes:
    """On what radars see in two windows of objects that err as elements do, by elements that are so far ahead."""
    elements = some_catalogue().elements
    moved = Propagator(replace(elements, mean_anomaly_deg=(elements.mean_anomaly_deg + ahead_deg) % 360))
    return AssociationOutcomes.of(pa.concat_tables(tracked_windows(150, 2, readings=4)[0]), moved, WINDOW_NS)


def test_honest_elements_give_distances_spread_as_chi_square_is() -> None:
    found = outcomes()
    assert found.problems() == []
    assert found.share(ASSOCIATED) + found.share(AMBIGUOUS) > 0.95
    assert sum(found.share(outcome) for outcome in OUTCOMES) == pytest.approx(1.0)
    assert len(found.levels) >= 140 and np.mean(found.levels) == pytest.approx(0.5, abs=0.1)
    text = sensor_table(found)
    assert all(f"| {name} |" in text for name, _ in found.of_sensors())


def test_elements_with_larger_errors_than_modelled_show_in_the_distances() -> None:
    (problem,) = outcomes(ahead_deg=0.02).problems()
    assert "are beyond the 95 % point of their distance, 5 % should be" in problem


def test_a_catalogue_of_other_orbits_matches_nothing() -> None:
    problems = outcomes(ahead_deg=20.0).problems()
    assert problems and all("observations match no object" in problem for problem in problems)


def test_observations_that_fit_two_objects_alike_are_reported() -> None:
    found = outcomes()
    doubled = replace(found, outcome=np.where(np.arange(len(found.outcome)) % 3 == 0, AMBIGUOUS, ASSOCIATED))
    assert doubled.problems() == ["33% of the observations fit several objects about as well"]
    assert UNMATCHED not in doubled.outcome

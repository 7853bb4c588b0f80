"""The rule of covariances, against the eigenvalues of each matrix."""

import numpy as np
import pytest

from sda_platform.lake.number_rules import is_semidefinite


@pytest.mark.parametrize("size", [1, 3, 6, 8])
def test_a_covariance_is_what_has_no_negative_eigenvalue_beyond_rounding(size: int) -> None:
    chance = np.random.default_rng(size)
    count = 5000
    vectors, _ = np.linalg.qr(chance.normal(size=(count, size, size)))
    values = 10.0 ** chance.uniform(-9, 0, size=(count, size))
    values[::2, 0] = chance.choice([-1, 0, 1], count // 2) * 10.0 ** chance.uniform(-9, -3, count // 2)
    scale = 10.0 ** chance.uniform(-9, 9, size=(count, size))
    matrices = (vectors * values[:, None]) @ vectors.swapaxes(1, 2) * scale[:, :, None] * scale[:, None, :]

    variances = np.diagonal(matrices, axis1=1, axis2=2)
    unit = np.sqrt(np.where(variances > 0, variances, 1.0))
    least = np.linalg.eigvalsh(matrices / (unit[:, :, None] * unit[:, None, :]))[:, 0]
    expected = (variances >= 0).all(axis=1) & (least >= -1e-6)
    clear = np.abs(least + 1e-6) > 1e-12
    found = is_semidefinite(matrices[:, *np.tril_indices(size)], size)

    np.testing.assert_array_equal(found[clear], expected[clear])
    assert clear.sum() > 0.99 * count
    assert 0.1 * count < expected.sum() < count


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_sound_covariance_of_any_unit_is_judged_without_its_eigenvalues(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take many times as long; a segment has thousands of covariances."""
    monkeypatch.delattr(np.linalg, "eigvalsh")
    roots = np.random.default_rng(7).normal(size=(3000, 6, 6)) + 2 * np.eye(6)
    matrices = roots @ roots.swapaxes(1, 2) * scale
    assert is_semidefinite(matrices[:, *np.tril_indices(6)], 6).all()

"""Set-up compiles what the first run would otherwise wait for."""

from typing import Any

import pytest

from sda_platform.orbits import two_body
from sda_platform.orbits.kernels import compile_all
from sda_platform.orbits.risk import probability
from sda_platform.orbits.screening import near_pairs
from sda_platform.orbits.sensing import accumulated_equations, fit_kernels, measurement_model

# What the pools call by themselves; what these call in turn is compiled with them.
KERNELS = [
    two_body._transitions,
    two_body._lagrange_coefficients,
    measurement_model.innovations,
    fit_kernels.normal_equations,
    fit_kernels.deletion_residuals,
    accumulated_equations.add,
    accumulated_equations.accumulate,
    accumulated_equations.deletion_residuals,
    near_pairs._search_one,
    near_pairs._search_two,
    probability._quadrature,
]


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.__module__}.{kernel.__name__}")
def test_every_kernel_of_the_pools_is_compiled(kernel: Any) -> None:
    assert kernel.signatures

"""Levels of a probability of collision, and whether its errors dilute it."""

import numpy as np
import numpy.typing as npt

RISK_LEVELS = ("green", "yellow", "red")
"""From the lowest to the highest; "unknown" where there is no probability is additional."""
RED_FROM = 1e-4
YELLOW_FROM = 1e-7
DILUTED = "diluted"
"""Flag of a pass whose probability smaller errors would raise."""
_LEAST_SHOWN = 1e-15


def risk_level(probability: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Level by NASA CARA's thresholds, same shape: red, yellow, green, and unknown for NaN."""
    pc = np.asarray(probability, dtype=np.float64)
    return np.select([np.isnan(pc), pc >= RED_FROM, pc >= YELLOW_FROM], ["unknown", "red", "yellow"], default="green")


def probability_text(probability: float, decimals: int = 2) -> str:
    """Write a probability of collision for people. Below 1e-15 its digits say nothing about the encounter."""
    return f"{probability:.{decimals}e}" if probability >= _LEAST_SHOWN else f"<{_LEAST_SHOWN:.0e}"

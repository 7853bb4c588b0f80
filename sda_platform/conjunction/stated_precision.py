"""The precision of an alert's numbers: to which a person acts on them."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final


def _significant(value: float) -> float:
    return float(f"{value:.2e}") if math.isfinite(value) else value


_ROUNDING: Final[Mapping[str, Callable[[Any], Any]]] = {
    "tca_time_ns": lambda time_ns: round(time_ns / 1e6) * 1_000_000,
    "miss_distance_km": lambda miss_km: round(miss_km, 3),
    "relative_speed_km_s": lambda speed_km_s: round(speed_km_s, 4),
    "collision_probability": _significant,
    "maximum_probability": _significant,
    "mahalanobis_distance": _significant,
    "stated_probability": _significant,
}


def rounded(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return those numbers of ``fact`` that an alert has, rounded: TCA to 1 ms, miss to 1 m, Pc to three digits.

    A null stays one.
    """
    return {
        name: None if fact[name] is None else rounding(fact[name])
        for name, rounding in _ROUNDING.items()
        if name in fact
    }

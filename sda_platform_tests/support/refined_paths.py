"""Rows of `refined_ephemerides`."""

from typing import Any

from sda_platform_tests.support.scenes import SECOND_NS, START_NS


def refined_row(norad_id: int = 25544, **changed: Any) -> dict[str, Any]:
    times = [START_NS + n * 60 * SECOND_NS + 1 for n in range(5)]
    states = [[7000.1 + n, 450 * n - 1 / 3 * n, 12.5, 0.1, 7.5, 1e-3 * n] for n in range(5)]
    lower = [[float(1 + i) if i == j else 1e-4 * (i + j) / 3 for i in range(6) for j in range(i + 1)]] * 2
    facts = {
        "norad_id": norad_id,
        "object_name": "ISS (ZARYA)",
        "international_designator": "1998-067A",
        "epoch_time_ns": times[0],
        "usable_from_ns": times[0],
        "usable_until_ns": times[3],
        "state_time_ns": times,
        "state": [value for state in states for value in state],
        "covariance_time_ns": [times[0], times[4]],
        "covariance": [value for each in lower for value in each],
        "position_sigma_m": 12.25,
        "published_epoch_ns": START_NS,
        "published_sigma_m": 900.0,
        "windows": 20,
        "arc_s": 600.0,
        "held_back_windows": 3,
        "held_back_rms": 1.04,
        "published_held_back_rms": 9.5,
        "as_of_ns": times[4],
    }
    return {**facts, **changed}

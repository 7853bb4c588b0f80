"""What observations of a task changed, in the measure of the gain that the scheduler expected of it. Pure.

Before is what the request rested on: the assessment in force when the task began, or the size of the covariance that
the expected gain came from. After is that with the information which the task's observations brought to the fits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.fusion.tables import STATE_COLUMNS, covariance_from_lower
from sda_platform.tasking.information import after_fix, believed, brought, encounter_gain, sphere_gain
from sda_platform.units import SECOND_NS

FIT_COLUMNS: Final = ("epoch_time_ns", *STATE_COLUMNS, "covariance", "predicted_covariance", "observation_ids")
ENCOUNTER_COLUMNS: Final = (
    "norad_id_1", "tca_time_ns", "state_1", "covariance_1", "state_2", "covariance_2",
)  # fmt: skip


@dataclass(frozen=True)
class AttributedFit:
    """A window fit, row of `fused_tracks` with FIT_COLUMNS, and the share of a task among its observations."""

    row: Mapping[str, Any]
    share: float


def realised_gain(
    norad_id: int, expected: float, fits: Sequence[AttributedFit], encounter: Mapping[str, Any] | None
) -> float | None:
    """Compute what the ``fits`` changed: 0 without one, None where their prior or the state before is not known.

    ``expected``: the gain of the request. ``encounter``: the assessment in force before the task, with
    ENCOUNTER_COLUMNS, of a task for a conjunction.
    """
    if not fits:
        return 0.0
    if any(fit.row["predicted_covariance"] is None for fit in fits):
        return None
    ordered = sorted(fits, key=lambda fit: int(fit.row["epoch_time_ns"]))
    priors = covariance_from_lower([fit.row["predicted_covariance"] for fit in ordered])
    information = brought(priors, covariance_from_lower([fit.row["covariance"] for fit in ordered]))
    information *= np.array([fit.share for fit in ordered])[:, None, None]
    epochs_ns = [int(fit.row["epoch_time_ns"]) for fit in ordered]
    if encounter is None:
        state = np.array([[ordered[-1].row[name] for name in STATE_COLUMNS]])
        before = believed([expected], priors[-1:])
        after = _after(state, before, information, [(epochs_ns[-1] - each) / SECOND_NS for each in epochs_ns])
        gain = sphere_gain(before, after)
    else:
        if not (encounter["covariance_1"] and encounter["covariance_2"]):
            return None
        mine, other = (1, 2) if norad_id == encounter["norad_id_1"] else (2, 1)
        state, its_state = (np.array([encounter[f"state_{n}"]], dtype=np.float64) for n in (mine, other))
        before, its = (covariance_from_lower([encounter[f"covariance_{n}"]]) for n in (mine, other))
        leads_s = [(encounter["tca_time_ns"] - each) / SECOND_NS for each in epochs_ns]
        after = _after(state, before, information, leads_s)
        gain = encounter_gain(its_state - state, before + its, after + its)
    return round(float(gain[0]), 2)


def _after(state: FloatArray, covariance: FloatArray, information: FloatArray, leads_s: Sequence[float]) -> FloatArray:
    for brought_by_one, lead_s in zip(information, leads_s, strict=True):
        covariance = after_fix(state, covariance, [lead_s], brought_by_one)
    return covariance

"""Whether a choice of element sets by their residuals predicts better than the newest set does.

    python benchmarks/choice_of_sets.py history.3le.gz

For each set of a real history the sets of its object that were known one and three days before compete: the newest, and
those within a day before it. Each is propagated to the later set's epoch; the in-track difference there is its error.
The residual of a set is its mean difference from the three sets before it, at their epochs, in units of what is usual
at that age. `hindsight` takes the set with the least error, which no rule can beat.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from element_jumps import SAME_SET_NS, read

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.element_errors import REGIMES, regimes
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_NS

LEADS_DAYS = (1.0, 3.0)
_CANDIDATES = 4
_BEFORE = 3
_MUCH_WORSE, _SOUND = 3.0, 1.5


def main() -> None:
    """Print the in-track error of each rule, relative to that of the newest set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    elements = spaced(read(parser.parse_args().history)[0])
    propagator = Propagator(elements)
    residuals, regime = residuals_of(propagator), regimes(elements)
    print(f"{len(elements):,} sets of {len(np.unique(elements.norad_id)):,} objects")
    for lead_days in LEADS_DAYS:
        late, candidates = competitors(elements, lead_days)
        errors = in_track_km(propagator, candidates, late)
        known = np.where(candidates >= 0, residuals[candidates], np.inf)
        print(f"\n{lead_days:g} d ahead: median, 90 % and mean of the error, relative to the newest set (sets judged)")
        for place, figures in enumerate(REGIMES):
            chosen = (regime[late] == place) & np.isfinite(known[:, 0]) & np.isfinite(errors[:, 0])
            if chosen.sum() >= 150:
                print(f"{figures.name:24s} {compared(errors[chosen], known[chosen])} ({chosen.sum():,})")


def compared(errors: FloatArray, residuals: FloatArray) -> str:
    """The rules by error (m, c) and residual (m, c) of the candidates, the newest first."""
    rows, newest = np.arange(len(errors)), np.zeros(len(errors), dtype=np.int64)
    worse = (residuals[:, 0] > _MUCH_WORSE) & (residuals[:, 1] < _SOUND)
    rules = {
        "least residual": np.argmin(np.where(np.isfinite(errors), residuals, np.inf), axis=1),
        "newest unless much worse": np.where(worse & np.isfinite(errors[:, 1]), 1, newest),
        "hindsight": np.nanargmin(np.where(np.isfinite(errors), errors, np.inf), axis=1),
    }
    base = errors[:, 0]
    texts = []
    for name, choice in rules.items():
        found = errors[rows, choice]
        ratios = [np.median(found) / np.median(base), *(f(found) / f(base) for f in (_high, np.mean))]
        texts.append(f"{name} {' '.join(f'{each:.2f}' for each in ratios)} (other {np.mean(choice > 0):.1%})")
    return "; ".join(texts)


def _high(values: FloatArray) -> float:
    return float(np.quantile(values, 0.9))


def spaced(elements: ElementSets) -> ElementSets:
    """Sets by object, then epoch, without those that follow another of their object at once."""
    order = np.lexsort((elements.epoch_time_ns, elements.norad_id))
    ids, epochs = elements.norad_id[order], elements.epoch_time_ns[order]
    repeats = (ids[1:] == ids[:-1]) & (epochs[1:] - epochs[:-1] < SAME_SET_NS)
    return elements.take(order[np.append(True, ~repeats)])


def before(elements: ElementSets, rows: IntArray, back: int) -> IntArray:
    """The row so many sets before each of ``rows`` (m,), of the same object; -1 where there is none."""
    found = rows - back
    return np.where((found >= 0) & (elements.norad_id[np.maximum(found, 0)] == elements.norad_id[rows]), found, -1)


def in_track_km(propagator: Propagator, candidates: IntArray, at: IntArray) -> FloatArray:
    """The in-track difference of ``candidates`` (m, c) from the sets ``at`` (m,), at their epochs; NaN for none."""
    elements = propagator.elements
    time_ns = elements.epoch_time_ns[at]
    _, r, v = propagator.at(at, time_ns)
    along = v / np.linalg.norm(v, axis=1, keepdims=True)
    errors = np.full(candidates.shape, np.nan)
    for column in range(candidates.shape[1]):
        rows = np.maximum(candidates[:, column], 0)
        _, predicted, _ = propagator.at(rows, time_ns)
        found = np.abs(np.einsum("ni,ni->n", predicted - r, along))
        errors[:, column] = np.where(candidates[:, column] >= 0, found, np.nan)
    return errors


def residuals_of(propagator: Propagator) -> FloatArray:
    """The residual (n,) of each set against the sets before it; infinite where fewer than three are known."""
    elements = propagator.elements
    rows = np.arange(len(elements))
    total = np.zeros(len(elements))
    regime = regimes(elements)
    for back in range(1, _BEFORE + 1):
        earlier = before(elements, rows, back)
        # The set itself is propagated backwards, to the epoch of the earlier one.
        difference = in_track_km(propagator, rows[:, None], np.maximum(earlier, 0))[:, 0]
        age_days = (elements.epoch_time_ns - elements.epoch_time_ns[np.maximum(earlier, 0)]) / DAY_NS
        total += np.where(earlier >= 0, difference / _usual_km(difference, age_days, regime, earlier >= 0), np.inf)
    return total / _BEFORE


def _usual_km(
    difference: FloatArray, age_days: FloatArray, regime: IntArray, is_known: npt.NDArray[np.bool_]
) -> FloatArray:
    """The median difference (n,) at the age of each, by regime."""
    usual = np.full(len(difference), np.nan)
    band = np.digitize(age_days, [0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    for each in np.unique(regime):
        for age in np.unique(band):
            chosen = (regime == each) & (band == age) & is_known
            if chosen.any():
                usual[chosen] = np.nanmedian(difference[chosen])
    return usual


def competitors(elements: ElementSets, lead_days: float) -> tuple[IntArray, IntArray]:
    """Rows (m,) of later sets, and (m, c) the sets that compete to predict them, the newest first; -1: none."""
    ids, epochs = elements.norad_id, elements.epoch_time_ns
    # One number that ascends by object, then time.
    span = np.int64(2**42)
    place = np.searchsorted(np.unique(ids), ids) * span + epochs // 10**6 - epochs.min() // 10**6
    newest = np.searchsorted(place, place - int(lead_days * DAY_NS) // 10**6, side="right") - 1
    late = np.flatnonzero((newest >= 0) & (ids[np.maximum(newest, 0)] == ids))
    columns = [before(elements, newest[late], back) for back in range(_CANDIDATES)]
    young = [
        np.where((each >= 0) & (epochs[newest[late]] - epochs[np.maximum(each, 0)] <= DAY_NS), each, -1)
        for each in columns
    ]
    return late, np.stack(young, axis=1)


if __name__ == "__main__":
    main()

"""Has a node failed? Suspicion by the phi accrual detector, and a declaration with hysteresis, per class of path.

Suspicion is continuous: phi is -log10 of the probability that a heartbeat is still to come. A declaration is discrete
and sticky: it ends only when the suspicion is well below. Time is passed in, monotonic, in seconds.

Source: Hayashibara et al., The phi accrual failure detector (2004), with normal intervals.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class PathClass:
    """How heartbeats behave on one kind of path; seconds, and values of phi."""

    name: str
    interval_s: float
    fixed_timeout_s: float
    """Counts until there are enough samples."""
    declare_phi: float = 8.0
    clear_phi: float = 1.0
    least_sigma_s: float = 0.001
    acceptable_pause_s: float = 0.0
    samples: int = 100
    warm_up: int = 10


INTRA_REGION = PathClass("intra-region", interval_s=0.05, fixed_timeout_s=0.15)
CROSS_REGION = PathClass("cross-region", interval_s=0.5, fixed_timeout_s=2.0, acceptable_pause_s=0.5)
PATH_CLASSES: Final[Mapping[str, PathClass]] = MappingProxyType(
    {each.name: each for each in (INTRA_REGION, CROSS_REGION)}
)


@dataclass
class PhiDetector:
    """The heartbeats of one node on one path."""

    path: PathClass
    _intervals: deque[float] = field(init=False)
    _last_s: float | None = None
    _last_beat_s: float | None = None
    _is_declared: bool = False
    _mean_s: float = 0.0
    _sigma_s: float = 1.0

    def __post_init__(self) -> None:
        self._intervals = deque(maxlen=self.path.samples)

    def heartbeat(self, now_s: float) -> None:
        """Note a heartbeat; one older than the last is ignored. The gap of a declared failure is no sample."""
        if self._last_beat_s is not None:
            if now_s <= self._last_beat_s:
                return
            if not self._is_declared:
                self._intervals.append(now_s - self._last_beat_s)
                count, mean_s = len(self._intervals), sum(self._intervals) / len(self._intervals)
                variance_s2 = sum([(each - mean_s) ** 2 for each in self._intervals]) / count
                self._mean_s, self._sigma_s = mean_s, max(math.sqrt(variance_s2), self.path.least_sigma_s)
        self._last_beat_s = now_s
        self._last_s = now_s if self._last_s is None else max(self._last_s, now_s)

    def alive(self, now_s: float) -> None:
        """Note other evidence of life than a heartbeat: it ends the silence and is no sample of the intervals."""
        if self._last_s is not None:
            self._last_s = max(self._last_s, now_s)

    def silence_s(self, now_s: float) -> float:
        """Return seconds since the last evidence of life; infinite for a node that never sent a heartbeat."""
        return math.inf if self._last_s is None else now_s - self._last_s

    def suspicion(self, now_s: float) -> float:
        """Phi at ``now_s``: infinite for a node that never sent a heartbeat; 0 or infinite while warming up."""
        if self._last_s is None:
            return math.inf
        elapsed_s = now_s - self._last_s
        if len(self._intervals) < self.path.warm_up:
            return math.inf if elapsed_s >= self.path.fixed_timeout_s else 0.0
        return phi((elapsed_s - self._mean_s - self.path.acceptable_pause_s) / self._sigma_s)

    @property
    def gap_s(self) -> tuple[float, float]:
        """Mean and sigma of the gaps between the newest heartbeats, seconds."""
        return self._mean_s, self._sigma_s

    def is_failed(self, now_s: float) -> bool:
        """Return the declaration at ``now_s``: begins at ``declare_phi``, ends below ``clear_phi``."""
        suspicion = self.suspicion(now_s)
        if suspicion >= self.path.declare_phi:
            self._is_declared = True
        elif suspicion < self.path.clear_phi:
            self._is_declared = False
        return self._is_declared


def phi(deviations: float) -> float:
    """-log10 of the chance that a normal variable exceeds its mean by so many sigmas; finite in the far tail."""
    tail = 0.5 * math.erfc(deviations / math.sqrt(2.0))
    if tail > 1e-300:
        return -math.log10(tail)
    # Asymptotic expansion of erfc, where it underflows.
    return deviations**2 / 2 / math.log(10) + math.log10(deviations * math.sqrt(2 * math.pi))


@lru_cache
def deviations_at(threshold: float) -> float:
    """Return the deviations at which `phi` is ``threshold``, by bisection: phi never falls."""
    low, high = -10.0, 1.0
    while phi(high) < threshold:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if phi(middle) < threshold else (low, middle)
    return high

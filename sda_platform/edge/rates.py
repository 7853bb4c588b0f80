"""Rates of sources: a mean with exponentially falling weights, time constant 30 s."""

from math import exp
from typing import Final

TIME_CONSTANT_S: Final = 30.0


class Rates:
    """Records per second by name."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int]] = {}
        self._rates: dict[str, float] = {}

    def add(self, name: str, count: int, now_s: float) -> None:
        """``count`` records since the start have come by ``now_s``."""
        before_s, before = self._last.get(name, (now_s, count))
        self._last[name] = (now_s, count)
        if now_s > before_s:
            weight = 1.0 - exp(-(now_s - before_s) / TIME_CONSTANT_S)
            rate = self._rates.get(name, 0.0)
            self._rates[name] = rate + weight * ((count - before) / (now_s - before_s) - rate)

    def of(self, name: str) -> float:
        """Return the rate of a source, 0 for one that is not known."""
        return self._rates.get(name, 0.0)

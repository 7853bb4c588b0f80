"""Which edge is the bottleneck: the rightmost one that was full over the last ten seconds.

The edge into the slowest stage is persistently full; those behind it are empty. Sampled at 10 Hz, kept for 30 s.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

SAMPLES: Final = 300
FULL: Final = 0.95


class Occupancy:
    """The last 300 samples of the share of each edge's capacity in use, edges in the order of the flow."""

    def __init__(self) -> None:
        self._samples: deque[Mapping[str, float]] = deque(maxlen=SAMPLES)

    def add(self, shares: Mapping[str, float]) -> None:
        """One sample: 0 to 1 by edge, upstream edges first."""
        self._samples.append(shares)

    def bottleneck(self) -> str | None:
        """Return the name of the edge; None where no edge is full."""
        recent = list(self._samples)[-SAMPLES // 3 :]
        if not recent:
            return None
        means = {name: sum(min(each.get(name, 0.0), 1.0) for each in recent) / len(recent) for name in recent[-1]}
        full = [name for name, mean in means.items() if mean >= FULL]
        return full[-1] if full else None

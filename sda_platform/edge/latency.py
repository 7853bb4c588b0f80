"""How long records took from the socket into a sealed segment, as a histogram weighted by records."""

from bisect import bisect_left
from typing import Final

BOUNDS_S: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.175, 0.2, 0.25, 0.35, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
)


class Latency:
    """Counts by upper bound, the last without one; total of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float, records: int) -> None:
        """``records`` took ``seconds`` each."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += records
        self.sum_s += seconds * records

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound and number of records up to it, as Prometheus has it."""
        total, found = 0, []
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found

    def quantile(self, share: float) -> float | None:
        """Return the upper bound of the bucket in which this share of the records is reached; None without records."""
        total, reached = sum(self.counts), 0
        for bound, count in zip((*BOUNDS_S, float("inf")), self.counts, strict=True):
            reached += count
            if total and reached >= share * total:
                return bound
        return None

"""How often a log without notifications is looked at: less and less often while nothing new is in it."""

from dataclasses import dataclass


@dataclass
class PollPace:
    """Says when the next look is due; each look that found nothing doubles the pause, up to ``longest_s``.

    A look that found something is followed by the next one at once. Times are monotonic, seconds.
    """

    shortest_s: float
    longest_s: float
    _pause_s: float = 0.0
    _next_s: float = -float("inf")

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time to look."""
        return now_s >= self._next_s

    def looked(self, now_s: float, *, has_found: bool) -> None:
        """A look was made."""
        self._pause_s = 0.0 if has_found else min(max(2 * self._pause_s, self.shortest_s), self.longest_s)
        self._next_s = now_s + self._pause_s

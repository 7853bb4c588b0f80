"""What a tier of the fault campaign found: the one form in which all of them answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Report:
    """Outcome of one tier. A failure states how to replay it; a point that was missed is a failure as well."""

    tier: str
    seed: int
    cases: int
    points_reached: frozenset[str] = frozenset()
    points_missed: frozenset[str] = frozenset()
    failures: tuple[str, ...] = ()
    recovery_seconds: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_green(self) -> bool:
        """Whether every case held and every point was reached."""
        return not self.failures and not self.points_missed

    def __str__(self) -> str:
        times = self.recovery_seconds
        recovery = f"recovery p50 {median(times):.2f} s, max {max(times):.2f} s" if times else "no recovery timed"
        verdict = "green" if self.is_green else "RED"
        counts = f"{len(self.points_reached)} points reached, {len(self.points_missed)} missed"
        counts = f"{self.cases} cases, {counts}, {len(self.failures)} failures"
        lines = [f"{self.tier}: {verdict}; {counts}; {recovery}; seed {self.seed}"]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  missed: {point}" for point in sorted(self.points_missed)]
        lines += [f"  failed: {failure}" for failure in self.failures]
        return "\n".join(lines)


def t2_command(seed: int, point: str) -> str:
    """The command that repeats the cases of T2 whose name matches the regular expression ``point``."""
    return f"python -m sda_platform_tests.campaign --tier t2 --seed {seed} --point {point!r}"


def joined(tier: str, seed: int, parts: Iterable[Report]) -> Report:
    """The parts of a tier as one report; a point that any part reached is not missed."""
    told = tuple(parts)
    reached = frozenset().union(*(part.points_reached for part in told))
    return Report(
        tier,
        seed,
        cases=sum(part.cases for part in told),
        points_reached=reached,
        points_missed=frozenset().union(*(part.points_missed for part in told)) - reached,
        failures=tuple(failure for part in told for failure in part.failures),
        recovery_seconds=tuple(seconds for part in told for seconds in part.recovery_seconds),
        notes=tuple(note for part in told for note in part.notes),
    )

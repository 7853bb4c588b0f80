"""Pauses between attempts: exponential with decorrelated jitter, so that those who failed together do not return
together (the scheme of AWS's architecture blog, "Exponential Backoff And Jitter", 2015)."""

from random import Random


def pause_s(attempt: int, *, base_s: float, cap_s: float, seed: str) -> float:
    """Seconds to wait after failed ``attempt`` (from 1): each drawn between ``base_s`` and thrice the one before.

    A pure function of its arguments: who remembers only how often it tried continues the sequence of ``seed``.
    """
    random, pause = Random(seed), base_s
    for _ in range(attempt):
        pause = min(cap_s, random.uniform(base_s, 3 * pause))
    return pause

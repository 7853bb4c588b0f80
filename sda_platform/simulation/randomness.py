"""Seeded randomness: streams for noise, and draws keyed by an object or source.

A keyed draw depends on the seed and the key alone. An object therefore keeps its error and a clock its bias, whatever
is observed, in any order and any division of time.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def stream(seed: int, *labels: object) -> np.random.Generator:
    """An independent generator for this seed and these labels."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, *labels), "little")))


def keyed_integers(seed: int, purpose: str, keys: Sequence[object]) -> NDArray[np.uint64]:
    """Draw one 64-bit number per key, (n,)."""
    numbers = (int.from_bytes(_digest(seed, purpose, key)[:8], "little") for key in keys)
    return np.fromiter(numbers, np.uint64, len(keys))


def keyed_uniform(seed: int, purpose: str, keys: Sequence[object]) -> NDArray[np.float64]:
    """Draw one number in [0, 1) per key, (n,)."""
    return (keyed_integers(seed, purpose, keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _digest(seed: int, *labels: object) -> bytes:
    text = "|".join([str(seed), *(str(label) for label in labels)])
    return hashlib.blake2b(text.encode(), digest_size=16).digest()

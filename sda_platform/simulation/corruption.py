"""Link faults between sensor and landing zone: delay, lateness, duplication, damage.

Every delivery keeps within its source's lateness bound. Damage is always detectable (wrong length, impossible value,
broken JSON). A changed bit that leaves a plausible observation is not simulated, because no decoder could detect it.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.simulation.simulated_observations import SimulatedObservations

LATENESS_BOUND_NS: Final[Mapping[str, int]] = {
    "radar": 100_000_000,
    "optical": 30_000_000_000,
    "isl": 10_000_000_000,
}
"""Longest time between an observation's sensor time and its reception, by feed."""

# (least, usual maximum, maximum) seconds of delay; the maximum leaves a margin for the clock's own error.
_DELAY_S: Final = {"radar": (0.005, 0.040, 0.099), "optical": (2.0, 10.0, 29.9), "isl": (0.05, 1.0, 9.9)}
_NAN: Final = struct.pack("<d", float("nan"))


@dataclass(frozen=True)
class FaultRates:
    """Shares of observations, each in [0, 1].

    `late` arrive in the later half of the bound, `duplicate` arrive twice, `corrupt` are damaged beyond decoding (and
    so lost).
    """

    late: float = 0.02
    duplicate: float = 0.01
    corrupt: float = 0.002


@dataclass(frozen=True)
class Delivery:
    """One record at its reception; `row` is its observation, `fault` none, duplicate or corrupt."""

    received_time_ns: int
    row: int
    payload: bytes
    fault: str


def delayed(
    observations: SimulatedObservations, rates: FaultRates, noise: np.random.Generator
) -> SimulatedObservations:
    """Return the observations with reception times within their feed's bound."""
    least, usual, most = _DELAY_S[observations.feed]
    count = len(observations)
    late = noise.random(count) < rates.late
    share = noise.random(count)
    delay_s = np.where(late, most / 2 + share * most / 2, least + share * (usual - least))
    return observations.received_at(observations.true_time_ns + _ns(delay_s))


def deliveries(observations: SimulatedObservations, rates: FaultRates, noise: np.random.Generator) -> list[Delivery]:
    """Every record received for these observations, in no particular order."""
    count = len(observations)
    corrupt = noise.random(count) < rates.corrupt
    duplicate = (noise.random(count) < rates.duplicate) & ~corrupt
    manner = noise.integers(0, 3, count).tolist()
    received = observations.received_time_ns
    latest = np.maximum(received, observations.true_time_ns + int(_DELAY_S[observations.feed][2] * 1e9))
    again = received + _ns(noise.random(count) * (latest - received) / 1e9)
    out = []
    for row, (time_ns, is_corrupt) in enumerate(zip(received.tolist(), corrupt.tolist(), strict=True)):
        payload = stamped(observations.feed, observations.payloads[row], time_ns)
        if is_corrupt:
            out.append(Delivery(time_ns, row, damaged(observations.feed, payload, manner[row]), "corrupt"))
        else:
            out.append(Delivery(time_ns, row, payload, "none"))
    for row in np.flatnonzero(duplicate).tolist():
        time_ns = int(again[row])
        out.append(Delivery(time_ns, row, stamped(observations.feed, observations.payloads[row], time_ns), "duplicate"))
    return out


def stamped(feed: str, payload: bytes, received_time_ns: int) -> bytes:
    """Return the payload as the collector writes it: optical records get `received_ns`, frames have it in their
    container.
    """
    if feed != "optical":
        return payload
    return payload[:-1] + f',"received_ns":{received_time_ns}}}'.encode()


def damaged(feed: str, payload: bytes, manner: int) -> bytes:
    """Return the payload damaged in one of three manners, none of which decodes."""
    if feed == "optical":
        if manner == 0:
            return payload[: len(payload) * 2 // 3]
        fields = json.loads(payload)
        if manner == 1:
            del fields["ra_rad"]
        else:
            fields["dec_rad"] = 9.99
        return json.dumps(fields, separators=(",", ":")).encode()
    if manner == 0:
        return payload[:-7]
    if manner == 1:
        return payload + bytes(4)
    # Bytes 16 to 23 are the radar's range and the first of the link's position.
    return payload[:16] + _NAN + payload[24:]


def _ns(seconds: FloatArray) -> IntArray:
    return (seconds * 1e9).astype(np.int64)

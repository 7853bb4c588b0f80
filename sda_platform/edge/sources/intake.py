"""From frames to batches: the priority of each frame by the rules of its zone, and the hand-over.

What does not decode is counted here and landed all the same, with low priority: the table refuses it as a dead letter,
with the bytes as they came.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.batch import BatchReceipt, ReceivedBatch
from sda_platform.edge.frames import Frames
from sda_platform.edge.packets import MAX_BATCH
from sda_platform.edge.priority import Priority
from sda_platform.edge.sources.source import Source
from sda_platform.formats.isl import ISL_FRAME_BYTES


class Intake(ABC):
    """Hands the frames of one source to its zone."""

    zone: str

    def __init__(self, source: Source) -> None:
        self.source = source
        self._entry = source.services.entry(self.zone)

    @abstractmethod
    def split(self, frames: Frames) -> list[tuple[Priority, NDArray[Any]]]:
        """Which rows have which priority, the most urgent first: masks or row numbers."""

    async def take(self, frames: Frames) -> BatchReceipt:
        """Hand over ``frames``; wait where the policy is to wait."""
        source, receipt = self.source, BatchReceipt()
        received_s = source.last_received_s = asyncio.get_running_loop().time()
        received_ns = source.services.clock.now_ns()
        is_kept = False
        try:
            for start in range(0, len(frames), MAX_BATCH):
                part = frames.where(np.arange(start, min(start + MAX_BATCH, len(frames))))
                for priority, rows in self.split(part):
                    chosen = part.where(rows)
                    if len(chosen):
                        data = chosen.packed(received_ns)
                        batch = ReceivedBatch(source.name, priority, data, len(chosen), received_s, receipt)
                        await self._entry.hand_over(batch)
            is_kept = receipt.lost == 0
        finally:
            if not is_kept:
                self.forget(frames)
        return receipt

    def forget(self, frames: Frames) -> None:  # noqa: B027 - most remember no frame
        """Some of ``frames`` were dropped: all of them must be taken when they are sent again."""


class RadarIntake(Intake):
    """Redundant samples are low (`redundancy`)."""

    zone = "radar"

    def split(self, frames: Frames) -> list[tuple[Priority, NDArray[Any]]]:
        """See `Intake.split`."""
        is_high, is_bad = self.source.services.recent_samples.are_high(frames)
        if is_bad.any():
            self.source.errors["bad_length"] += int(is_bad.sum())
        return [(Priority.HIGH, is_high), (Priority.LOW, ~is_high)]


class LinkIntake(Intake):
    """Every beacon is high: a satellite reports its own state once a second."""

    zone = "isl"

    def split(self, frames: Frames) -> list[tuple[Priority, NDArray[Any]]]:
        """See `Intake.split`."""
        is_whole = frames.lengths == ISL_FRAME_BYTES
        if not is_whole.all():
            self.source.errors["bad_length"] += int((~is_whole).sum())
        return [(Priority.HIGH, is_whole), (Priority.LOW, ~is_whole)]


class TelemetryIntake(Intake):
    """Emergency frames first, then the others in order of time; duplicates are counted and left out (F5).

    Routine frames hold up the socket for 0.2 s at most, because emergency frames come through it too (F3.29, F4.5).
    """

    zone = "telemetry"

    def split(self, frames: Frames) -> list[tuple[Priority, NDArray[Any]]]:
        """See `Intake.split`."""
        done = self.source.services.packets.process(frames)
        counts = {"duplicate": done.duplicates, "conflict": done.conflicts, "invalid": done.invalid}
        self.source.errors.update({reason: len(rows) for reason, rows in counts.items() if len(rows)})
        refused = np.concatenate([done.conflicts, done.invalid])
        return [(Priority.EMERGENCY, done.emergency), (Priority.HIGH, done.routine), (Priority.LOW, refused)]

    def forget(self, frames: Frames) -> None:
        """See `Intake.forget`."""
        self.source.services.packets.forget(frames)

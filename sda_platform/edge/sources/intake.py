"""From frames to batches: the priority of each frame by the rules of its zone, and the hand-over.

What does not decode is counted here and landed all the same, with low priority: the table refuses it as a dead letter,
with the bytes as they came.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sda_platform.edge.batch import BatchReceipt, ReceivedBatch
from sda_platform.edge.frames import Frames
from sda_platform.edge.packets import MAX_BATCH, Processed
from sda_platform.edge.priority import Priority
from sda_platform.edge.sources.source import Source
from sda_platform.formats.isl import ISL_FRAME_BYTES
from sda_platform.resilience import Quotas

_EMERGENCIES: Final = "emergency frames"


class Group(NamedTuple):
    """Which rows have which priority: a mask or row numbers; ``is_conflict`` as in `Origin`."""

    priority: Priority
    rows: NDArray[Any]
    is_conflict: bool = False


Groups = list[Group]


class Intake(ABC):
    """Hands the frames of one source to its zone."""

    zone: str
    longest_wait_s = 60.0
    """How long a source over its quota is not read. What it sends meanwhile stays in the kernel, or at a TCP sender."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._entry = source.services.entry(self.zone)

    async def take(self, frames: Frames, peer: str | None = None) -> BatchReceipt:
        """Hand over ``frames``, which ``peer`` sent; wait where the policy is to wait."""
        receipt = BatchReceipt()
        self.source.last_received_s = asyncio.get_running_loop().time()
        for start in range(0, len(frames), MAX_BATCH):
            await self._take_part(frames.where(np.arange(start, min(start + MAX_BATCH, len(frames)))), receipt, peer)
        self.source.services.quotas.spend(self.source.name, records=len(frames), bytes=int(frames.lengths.sum()))
        return receipt

    @abstractmethod
    async def _take_part(self, frames: Frames, receipt: BatchReceipt, peer: str | None) -> None:
        """Hand over at most `MAX_BATCH` frames."""

    async def _hand_over(self, frames: Frames, groups: Groups, receipt: BatchReceipt, peer: str | None) -> None:
        received_s, received_ns = asyncio.get_running_loop().time(), self.source.services.clock.now_ns()
        left = [(group, chosen) for group in groups if len(chosen := frames.where(group.rows))]
        try:
            while left:
                group, chosen = left[0]
                data = chosen.packed(received_ns)
                batch = ReceivedBatch(
                    self.source.name, group.priority, data, len(chosen), received_s, receipt, peer, group.is_conflict,
                    self.source.marking,
                )  # fmt: skip
                if not await self._entry.hand_over(batch):
                    self.forget(chosen)
                del left[0]
        finally:
            for _, chosen in left:
                self.forget(chosen)

    def forget(self, frames: Frames) -> None:  # noqa: B027 - most remember no frame
        """These frames were dropped: they must be taken when they are sent again."""


class SplitIntake(Intake):
    """Hands over every frame, with a priority that follows from the frame."""

    @abstractmethod
    def split(self, frames: Frames) -> Groups:
        """Which rows have which priority, the most urgent first: masks or row numbers."""

    async def _take_part(self, frames: Frames, receipt: BatchReceipt, peer: str | None) -> None:
        await self._hand_over(frames, self.split(frames), receipt, peer)


class RadarIntake(SplitIntake):
    """Redundant samples are low (`redundancy`)."""

    zone = "radar"

    def split(self, frames: Frames) -> Groups:
        """See `SplitIntake.split`."""
        is_high, is_bad = self.source.services.recent_samples.are_high(frames)
        self.source.count_refused_frames("bad_length", int(is_bad.sum()))
        return [Group(Priority.HIGH, is_high), Group(Priority.LOW, ~is_high)]


class LinkIntake(SplitIntake):
    """Every beacon is high: a satellite reports its own state once a second."""

    zone = "isl"

    def split(self, frames: Frames) -> Groups:
        """See `SplitIntake.split`."""
        is_whole = frames.lengths == ISL_FRAME_BYTES
        self.source.count_refused_frames("bad_length", int((~is_whole).sum()))
        return [Group(Priority.HIGH, is_whole), Group(Priority.LOW, ~is_whole)]


class TelemetryIntake(Intake):
    """Emergency frames first, then the others in order of time; duplicates are counted and left out.

    A sender flags what is an emergency. What exceeds `Source.emergencies_per_minute` counts as routine.
    Routine frames hold up the socket for 0.2 s at most, because emergency frames come through it too. A
    duplicate's receipt is that of its first copy. If that is dropped, the duplicate is handed over in its place.
    """

    zone = "telemetry"
    longest_wait_s = 0.2

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._emergencies: Quotas | None = None

    async def _take_part(self, frames: Frames, receipt: BatchReceipt, peer: str | None) -> None:
        firsts = self.source.services.first_copies
        while True:
            doubtful = firsts.in_hand()
            done = self.source.services.packets.process(frames)
            duplicates = frames.where(done.duplicates)
            with firsts.handing_over(receipt):
                await self._hand_over(frames, self._groups(done), receipt, peer)
            if not len(duplicates):
                return
            if not doubtful:
                break
            for each in doubtful:
                await each.wait()
            frames = duplicates
        self.source.errors["duplicate"] += len(duplicates)
        firsts.follow(receipt)

    def _groups(self, done: Processed) -> Groups:
        packets = self.source.services.packets
        conflicts = len(done.conflicts) + len(done.urgent_conflicts)
        self.source.count_refused_frames("invalid", len(done.invalid))
        urgent, too_many = self._permitted(done.emergency)
        urgent_conflicts, other_conflicts = self._permitted(done.urgent_conflicts)
        refused = len(too_many) + len(other_conflicts)
        counts = {
            "conflict": conflicts, "missing": packets.missing, "came_late": packets.late, "emergency_refused": refused,
        }  # fmt: skip
        self.source.errors.update({reason: count for reason, count in counts.items() if count})
        return [
            Group(Priority.EMERGENCY, urgent),
            Group(Priority.EMERGENCY, urgent_conflicts, is_conflict=True),
            Group(Priority.HIGH, np.concatenate([done.routine, too_many])),
            Group(Priority.LOW, np.concatenate([done.conflicts, other_conflicts]), is_conflict=True),
            Group(Priority.LOW, done.invalid),
        ]

    def _permitted(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split flagged rows into those that may be emergencies now, and the rest."""
        if self._emergencies is None:
            self._emergencies = Quotas({_EMERGENCIES: self.source.emergencies_per_minute})
        count = min(int(self._emergencies.left(self.source.name, _EMERGENCIES)), len(rows))
        if count:
            self._emergencies.spend(self.source.name, **{_EMERGENCIES: count})
        return rows[:count], rows[count:]

    def forget(self, frames: Frames) -> None:
        """See `Intake.forget`."""
        self.source.services.packets.forget(frames)

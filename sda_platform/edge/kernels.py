"""Compile what is compiled, so that no first frame waits: numba compiles at the first call and keeps the result.

python -m sda_platform.edge.kernels
"""

import numpy as np

from sda_platform.edge.frames import cut_stream, frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.redundancy import RecentSamples
from sda_platform.formats.radar import RADAR_FRAME_BYTES


def compile_kernels() -> None:
    """Call every kernel with arguments of the types that it is called with later."""
    frames = frames_of([bytes(RADAR_FRAME_BYTES)])
    writable = frames.where(np.array([True]))
    for buffer in (frames.buffer, frames.buffer.copy()):  # received bytes are read-only, a reused buffer is not
        same = type(frames)(buffer, writable.starts, writable.lengths)
        RecentSamples(slots=16).are_high(same)
        packets = PacketProcessor(remembered=16)
        packets.process(same)
        packets.forget(same)
        same.packed(0)
        cut_stream(buffer, is_big_endian=True)


if __name__ == "__main__":
    compile_kernels()

"""Cutting and packing frames without an object per frame."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.edge.frames import cut_stream, frames_of
from sda_platform.formats.framing.container import pack_records

payload_lists = st.lists(st.binary(max_size=40), max_size=12)


def stream(payloads: list[bytes], *, is_big_endian: bool) -> bytes:
    head = struct.Struct(">I" if is_big_endian else "<I")
    return b"".join(head.pack(len(payload)) + payload for payload in payloads)


@given(payloads=payload_lists, is_big_endian=st.booleans(), cut_at=st.integers(0, 600))
def test_whole_frames_are_cut_and_the_rest_is_left__F1(payloads: list[bytes], is_big_endian: bool, cut_at: int) -> None:
    data = stream(payloads, is_big_endian=is_big_endian)[:cut_at]
    cut = cut_stream(np.frombuffer(data, np.uint8), is_big_endian=is_big_endian)
    found = [cut.frames.payload(row) for row in range(len(cut.frames))]
    assert found == payloads[: len(found)]
    assert stream(found, is_big_endian=is_big_endian) == data[: cut.rest]
    assert not cut.is_violated
    if cut_at >= len(stream(payloads, is_big_endian=is_big_endian)):
        assert found == payloads


@given(data=st.binary(max_size=300), is_big_endian=st.booleans(), most=st.integers(0, 100))
def test_any_bytes_are_cut_within_their_bounds(data: bytes, is_big_endian: bool, most: int) -> None:
    cut = cut_stream(np.frombuffer(data, np.uint8), is_big_endian=is_big_endian, max_bytes=most)
    ends = cut.frames.starts + cut.frames.lengths
    assert (cut.frames.lengths <= most).all()
    assert (ends <= len(data)).all()
    assert 0 <= cut.rest <= len(data)


@pytest.mark.parametrize("is_big_endian", [True, False])
def test_a_length_above_the_bound_is_a_violation_behind_the_frames_before_it__F1(is_big_endian: bool) -> None:
    data = stream([b"good"], is_big_endian=is_big_endian) + b"\xff\xff\xff\xff" + b"x" * 50
    cut = cut_stream(np.frombuffer(data, np.uint8), is_big_endian=is_big_endian)
    assert cut.is_violated
    assert [cut.frames.payload(0)] == [b"good"]
    assert cut.rest == 8


@given(payloads=payload_lists, received=st.integers(0, 2**63 - 1), chosen=st.randoms(use_true_random=False))
def test_packed_frames_are_the_container_of_records(payloads: list[bytes], received: int, chosen: object) -> None:
    frames = frames_of(payloads)
    assert frames.packed(received) == pack_records(payloads, [received] * len(payloads))
    rows = np.arange(len(payloads))[::-2]
    assert frames.where(rows).packed(received) == pack_records(payloads[::-2], [received] * len(rows))

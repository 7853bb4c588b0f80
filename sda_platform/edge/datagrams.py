"""Read many datagrams at once: one system call (`recvmmsg`) and no Python object for each of them.

One system call per datagram would cost more than all else that a collector does with a radar frame. The kernel drops
what is not read in time, without regard to its priority. Where the system has no such call (macOS), each is read alone.
"""

import ctypes
import errno
import os
import socket
from typing import Any, Final

import numpy as np

from sda_platform.edge.frames import Frames
from sda_platform.edge.senders import ALL_SENDERS, NAME_BYTES, AllowedSenders

MAX_DATAGRAM_BYTES: Final = 1_500


class _Span(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("spans", ctypes.c_void_p),
        ("span_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (("header", _Header), ("received", ctypes.c_uint))


def _system_call() -> Any:
    """``recvmmsg`` of the C library, which runs without Python's lock; None where there is none."""
    found = getattr(ctypes.CDLL(None, use_errno=True), "recvmmsg", None)
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p]
    return found


_RECEIVE_MANY: Final = _system_call()


class DatagramReader:
    """Reads up to ``at_once`` datagrams of at most `MAX_DATAGRAM_BYTES` into one buffer, which the next read reuses.

    Those of senders that are not ``allowed`` are left out and counted in ``refused``.
    """

    def __init__(
        self,
        at_once: int = 1_024,
        *,
        allowed: AllowedSenders = ALL_SENDERS,
        reads_many: bool = _RECEIVE_MANY is not None,
    ) -> None:
        self.at_once, self.refused, self._reads_many, self._allowed = at_once, 0, reads_many, allowed
        self._buffer = np.empty(at_once * MAX_DATAGRAM_BYTES, np.uint8)
        self._starts = np.arange(at_once, dtype=np.int64) * MAX_DATAGRAM_BYTES
        memory = np.zeros((at_once, ctypes.sizeof(_Message)), np.uint8)
        self._spans, self._messages = (_Span * at_once)(), (_Message * at_once).from_buffer(memory.data)
        for row, (span, message) in enumerate(zip(self._spans, self._messages, strict=True)):
            span.base, span.length = self._buffer.ctypes.data + row * MAX_DATAGRAM_BYTES, MAX_DATAGRAM_BYTES
            message.header.spans, message.header.span_count = ctypes.addressof(span), 1
        # Columns of views: the fields of each message in which the system returns lengths.
        self._received = memory.view(np.uint32)[:, _Message.received.offset // 4]
        self._name_lengths = memory.view(np.uint32)[:, _Header.name_length.offset // 4]
        self._names = np.zeros((at_once, NAME_BYTES), np.uint8)
        for row, message in enumerate(self._messages) if allowed else ():
            message.header.name = self._names.ctypes.data + row * NAME_BYTES
        self._is_allowed = np.ones(at_once, bool)

    def read(self, opened: socket.socket) -> Frames:
        """Return the datagrams that wait at a non-blocking socket, none if none does. Raises OSError."""
        while True:
            count = self._read_many(opened) if self._reads_many else self._read_alone(opened)
            frames = Frames(self._buffer, self._starts[:count], self._received[:count].astype(np.int64))
            if not self._allowed or not count:
                return frames
            if self._reads_many:
                self._is_allowed[:count] = self._allowed.allows_each(self._names[:count])
            frames = frames.where(self._is_allowed[:count])
            self.refused += count - len(frames)
            if len(frames) or count < self.at_once:
                return frames

    def _read_many(self, opened: socket.socket) -> int:
        self._name_lengths[:] = NAME_BYTES if self._allowed else 0
        count = int(_RECEIVE_MANY(opened.fileno(), self._messages, self.at_once, 0, None))
        if count >= 0:
            return count
        number = ctypes.get_errno()
        if number in (errno.EAGAIN, errno.EINTR):
            return 0
        raise OSError(number, os.strerror(number))

    def _read_alone(self, opened: socket.socket) -> int:
        view = self._buffer.data
        for count in range(self.at_once):
            try:
                slot = view[count * MAX_DATAGRAM_BYTES : (count + 1) * MAX_DATAGRAM_BYTES]
                self._received[count], name = opened.recvfrom_into(slot)
                self._is_allowed[count] = self._allowed.allows(str(name[0]))
            except BlockingIOError:
                return count
        return self.at_once

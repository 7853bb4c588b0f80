"""A program with a wall clock of its own, which can be set while it runs: for servers that link no C library.

Go's programs read the clock in the vDSO, where nothing can stand in between. So the program is started without it: the
entry of its auxiliary vector is removed before its first instruction. Its reads of CLOCK_REALTIME are then system
calls, which a seccomp filter hands to this process. Monotonic time stays as it is. It needs no privilege, but Linux
5.14 or newer on x86-64.
"""

import ctypes
import errno
import fcntl
import functools
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_TRACE_ME, _PEEK_USER, _DETACH, _STACK_POINTER = 0, 3, 17, 19 * 8
_AT_NULL, _AT_IGNORE, _AT_SYSINFO_EHDR = 0, 1, 33
_NO_NEW_PRIVILEGES, _SECCOMP, _SET_FILTER, _NEW_LISTENER = 38, 317, 1, 8
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_REQUEST: Final = struct.Struct("=QIIiIQ6Q")
"""Id, process, flags; then number, architecture, place and arguments of the system call."""
_REPLY, _TIMESPEC, _WORD = struct.Struct("=QqiI"), struct.Struct("=qq"), struct.Struct("=Q")
_FIRST_ARGUMENT: Final = 6
_CLOCK_GETTIME, _REALTIME, _REALTIME_COARSE = 228, 0, 5
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_FILTER: Final = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_IF_EQUAL, 0, 4, _CLOCK_GETTIME),
        (_LOAD, 0, 0, 16),  # its first argument
        (_IF_EQUAL, 1, 0, _REALTIME),
        (_IF_EQUAL, 0, 1, _REALTIME_COARSE),
        (_RETURN, 0, 0, _NOTIFY),
        (_RETURN, 0, 0, _ALLOW),
    )
)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class SteppedClock:
    """The wall clock of one ``process``, which `started` starts with it."""

    def __init__(self, process: "subprocess.Popen[bytes]", listener: int) -> None:
        self.offset_s, self.reads = 0.0, 0
        self._process, self._listener = process, listener
        Thread(target=self._answer, daemon=True).start()

    def step(self, seconds: float) -> None:
        """Set the clock forward, or back, at once."""
        self.offset_s += seconds

    def _answer(self) -> None:
        """Answer each read of the clock until the process has ended."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        with suppress(OSError), Path(f"/proc/{self._process.pid}/mem").open("r+b", buffering=0) as memory:
            while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
                try:
                    self._answer_one(memory)
                except OSError as error:
                    # The system call was interrupted meanwhile, and is repeated.
                    if error.errno != errno.ENOENT:
                        raise
        os.close(self._listener)

    def _answer_one(self, memory: IO[bytes]) -> None:
        request = bytearray(_REQUEST.size)
        fcntl.ioctl(self._listener, _RECEIVE, request)
        identity, *rest = _REQUEST.unpack(request)
        now_ns = time.time_ns() + round(self.offset_s * 1e9)
        os.pwrite(memory.fileno(), _TIMESPEC.pack(*divmod(now_ns, 10**9)), rest[_FIRST_ARGUMENT])
        self.reads += 1
        fcntl.ioctl(self._listener, _ANSWER, bytearray(_REPLY.pack(identity, 0, 0, 0)))


def started(command: Sequence[str], **how: Any) -> "tuple[subprocess.Popen[bytes], SteppedClock]":
    """Start ``command``, an absolute path and arguments; ``how`` is as for Popen. Raises OSError where it cannot be."""
    here, there = socket.socketpair()
    with here, there:
        process = subprocess.Popen(command, preexec_fn=_before_the_program(there), **how)
        _, status = os.waitpid(process.pid, 0)
        if not os.WIFSTOPPED(status) or os.WSTOPSIG(status) != signal.SIGTRAP:
            raise OSError(f"{command[0]} did not stop before its first instruction: {status}")
        _remove_vdso(process.pid)
        _, (listener,), _, _ = socket.recv_fds(here, 1, 1)
    return process, SteppedClock(process, listener)


@functools.cache
def is_possible() -> bool:
    """Whether programs can have clocks of their own here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        process, _ = started(["/bin/true"])
    except (OSError, subprocess.SubprocessError, ValueError):
        return False
    return process.wait() == 0


def _before_the_program(there: socket.socket) -> Callable[[], None]:
    """What the new process does before it becomes the program; all that it needs exists before it is made."""
    instructions = ctypes.create_string_buffer(_FILTER)
    program = _Program(len(_FILTER) // 8, ctypes.addressof(instructions))

    def prepare() -> None:
        if _LIBC.ptrace(_TRACE_ME, 0, 0, 0) or _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError("neither traced nor confined")
        listener = _LIBC.syscall(_SECCOMP, _SET_FILTER, _NEW_LISTENER, ctypes.byref(program))
        if listener < 0 or not instructions:
            raise OSError("no filter with a listener")
        socket.send_fds(there, [b"."], [listener])
        os.close(listener)

    return prepare


def _remove_vdso(pid: int) -> None:
    """Take the vDSO out of the auxiliary vector of a process that has not begun, and let it begin."""
    trace = _LIBC.ptrace
    trace.restype, trace.argtypes = ctypes.c_long, (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    stack = trace(_PEEK_USER, pid, _STACK_POINTER, None) & (2**64 - 1)
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:

        def word(at: int) -> int:
            return int(_WORD.unpack(os.pread(memory.fileno(), _WORD.size, at))[0])

        # On the stack: the number of arguments, the arguments, 0, the environment, 0, and pairs of the vector.
        at = stack + 8 * (word(stack) + 2)
        while word(at):
            at += 8
        at += 8
        while (kind := word(at)) != _AT_NULL:
            if kind == _AT_SYSINFO_EHDR:
                os.pwrite(memory.fileno(), _WORD.pack(_AT_IGNORE), at)
            at += 16
    trace(_DETACH, pid, None, None)

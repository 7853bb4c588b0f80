"""Rename a local file where the new name is free, in one step: `os.rename` replaces what has that name."""

import ctypes
import errno
import os

_LIBC = ctypes.CDLL(None, use_errno=True)
_WORKING_DIRECTORY, _NO_REPLACE = -100, 1
# What a kernel or a file system answers that has no such call.
_WITHOUT_CALL = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def rename_new(source: str, target: str) -> bool:
    """Rename ``source`` as Linux's ``renameat2`` with ``RENAME_NOREPLACE`` does; other systems look up the target.

    False, and nothing is changed, where ``target`` exists or ``source`` does not. Raises OSError.
    """
    number = _renamed_in_one_step(source, target)
    if number in _WITHOUT_CALL:
        number = errno.EEXIST if os.path.lexists(target) else _renamed(source, target)
    if number in (0, errno.EEXIST, errno.ENOENT):
        return number == 0
    raise OSError(number, os.strerror(number), source, None, target)


def _renamed_in_one_step(source: str, target: str) -> int:
    """Return the error number, 0 if there was none."""
    call = getattr(_LIBC, "renameat2", None)
    if call is None:
        return errno.ENOSYS
    names = os.fsencode(source), os.fsencode(target)
    failed = call(_WORKING_DIRECTORY, names[0], _WORKING_DIRECTORY, names[1], _NO_REPLACE)
    return ctypes.get_errno() if failed else 0


def _renamed(source: str, target: str) -> int:
    try:
        os.rename(source, target)  # noqa: PTH104
    except FileNotFoundError:
        return errno.ENOENT
    return 0

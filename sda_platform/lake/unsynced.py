"""The mark of a table of which a sync failed: what it holds may be in memory only, though the next sync succeeds.

Linux reports a failed write-back once and then counts the pages as clean, so a repeated fsync proves nothing. A table
with the mark is neither planned on nor read by a plan. `sda lake verify --deep --repair` ends this, once it has read
all of it from a disk that was mounted anew. The mark itself need not be on disk: a power loss ends what it warns of.
"""

import errno
from contextlib import suppress

from upath import UPath

from sda_platform.lake import durable
from sda_platform.lake.errors import InvariantError

# In a table's log, where Delta, Spark and VACUUM pass over it.
MARK = "_unsynced"
_OF_WRITE_BACK = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT})


class SyncFailed(InvariantError):
    """A sync of a committed file failed, now or before: nothing may be built on the table."""


def reason(log: UPath) -> str | None:
    """Return which sync of the table with this log directory failed, in words; None where none did."""
    try:
        return (log / MARK).read_text(errors="replace") or "of an unknown file"
    except FileNotFoundError:
        return None


def require_none(log: UPath) -> None:
    """Raise SyncFailed where the table with this log directory has the mark."""
    failed = reason(log)
    if failed is not None:
        raise _refusal(log, failed)


def recorded(log: UPath, error: OSError) -> Exception:
    """Return what the failed sync means for the table: SyncFailed, and the mark, where a write-back failed; else
    ``error``.
    """
    if error.errno not in _OF_WRITE_BACK:
        return error
    failed = f"{error.filename or 'of an unknown file'} ({error.strerror})"
    with suppress(OSError):  # a disk that takes no mark takes no commit either
        (log / MARK).write_text(failed)
    return _refusal(log, failed)


def clear(log: UPath) -> None:
    """Remove the mark: everything the table holds was read from the disk."""
    (log / MARK).unlink(missing_ok=True)
    durable.sync([log])


def _refusal(log: UPath, failed: str) -> SyncFailed:
    return SyncFailed(
        f"{log.parent.name}: a sync failed: {failed}. What was committed last may not be on disk, and a further sync "
        "would not show it. Stop the platform, mount the disk anew, then run `sda lake verify --deep --repair`"
    )

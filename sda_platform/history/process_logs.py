"""The logs of the platform's processes: each is begun anew when it is large, and the one before it is kept."""

import os
import shutil
from pathlib import Path

KEPT_SUFFIX = ".1"


def bound_logs(directory: Path, most_bytes: int) -> int:
    """Begin each log above ``most_bytes`` anew; returns how many.

    Processes append to their open files, so the file stays and its content is copied. Lines that are written between
    the copy and the cut are lost.
    """
    large = [log for log in sorted(directory.glob("*.log")) if log.stat().st_size > most_bytes]
    for log in large:
        shutil.copyfile(log, log.with_name(log.name + KEPT_SUFFIX))
        os.truncate(log, 0)
    return len(large)

"""Merging of a table's files, which changes no row, through delta-rs in a process of its own.

The process can be killed at any moment: delta-rs puts a commit into the log whole or not at all, and only where its
version is free. What a killed one leaves are files that no commit names. The result is not synced.
"""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from sda_platform.lake import delta_log, durable, merge_process
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.merge_process import MergeRequest

IsStopped = Callable[[], bool]
# Carries out a request until it is done or stopped; returns how many files were replaced.
Merge = Callable[[MergeRequest, IsStopped], int]
_POLL_S: Final = 0.25
# While delta-rs writes a local file, its name ends in a number. No listing by delta-rs shows it, VACUUM's neither.
_UNFINISHED: Final = "*.parquet#[0-9]*"


class MergeStopped(Exception):
    """The merging was stopped on demand; what was committed before stays merged."""


class MergeFailed(Unavailable):
    """The merging ended with an error, as where another writer replaced the files; the next one begins anew."""


def in_own_process(request: MergeRequest, is_stopped: IsStopped) -> int:
    """Merge in a new process, which is killed as soon as ``is_stopped`` returns True; returns how many files went.

    ``is_stopped`` is called at once, and then several times a second. Nothing else may merge files of the table
    meanwhile. Raises MergeStopped, MergeFailed.
    """
    remove_unfinished(request.uri)
    command = [sys.executable, "-m", merge_process.__name__, request.to_json()]
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                output, errors = _ended(process, is_stopped)
            finally:
                process.kill()
    finally:
        remove_unfinished(request.uri)
    if process.returncode:
        reason = errors.strip().rpartition("\n")[2] or f"exit status {process.returncode}"
        raise MergeFailed(f"the files of {request.uri} were not merged: {reason}")
    return int(output)


def remove_unfinished(uri: str) -> None:
    """Remove the files that a killed process had not written to their end. An object store shows none."""
    directory = delta_log.table_directory(uri)
    if durable.is_synced_by_hand(directory):
        for file in directory.glob(_UNFINISHED):
            file.unlink(missing_ok=True)


def _ended(process: "subprocess.Popen[str]", is_stopped: IsStopped) -> tuple[str, str]:
    """Output and errors of the process once it has ended. Raises MergeStopped."""
    while not is_stopped():
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_POLL_S)
    raise MergeStopped

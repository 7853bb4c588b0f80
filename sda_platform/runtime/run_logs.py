"""What a run prints, kept in files for the UI, without a process beside the run.

Dagster follows each of the two files by a `tail`, which repeats it where the worker's own output goes. A Python process
beside each `tail` ends it. These are four processes at the start of every run, and one that is killed in between
leaves a `tail` for ever.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dagster._core.execution.compute_logs import redirect_to_file
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType
from dagster._core.storage.local_compute_log_manager import IO_TYPE_EXTENSION, LocalComputeLogManager
from dagster._serdes import ConfigurableClassData
from dagster._utils import ensure_file, touch_file
from typing_extensions import override


class RunLogs(LocalComputeLogManager):
    """The store of outputs that the home's ``dagster.yaml`` names; ``base_dir`` is the directory of the files."""

    @classmethod
    @override
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "RunLogs":
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    @override
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        """Write what this process prints to the files of ``log_key`` alone."""
        out, errors = (
            self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[each])
            for each in (ComputeIOType.STDOUT, ComputeIOType.STDERR)
        )
        for path in (out, errors):
            ensure_file(path)
        with redirect_to_file(sys.stdout, out), redirect_to_file(sys.stderr, errors):
            yield CapturedLogContext(log_key)
        touch_file(self.complete_artifact_path(log_key))  # type: ignore[no-untyped-call]

"""What runs print, as `dagster.yaml` has it kept: in files, with the output of their children, and by no process."""

import subprocess
import sys
from pathlib import Path

import dagster as dg

from sda_platform.runtime import platform_home

PRINTER = """
import os, subprocess, sys
from pathlib import Path
import dagster as dg

@dg.asset
def work():
    print("from Python")
    subprocess.run(["echo", "from a child"], check=True)
    print("of errors", file=sys.stderr)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    print(f"children: {children!r}")

with dg.DagsterInstance.from_config(sys.argv[1]) as instance:
    dg.materialize([work], instance=instance)
print("after it")
"""


def test_outputs_are_kept_for_the_ui_and_no_process_follows_them(tmp_path: Path) -> None:
    platform_home.prepare(tmp_path, "127.0.0.1:1", {})
    home = str(platform_home.dagster_home(tmp_path))
    done = subprocess.run([sys.executable, "-c", PRINTER, home], capture_output=True, text=True, check=True)
    assert done.stdout == "after it\n"
    with dg.DagsterInstance.from_config(home) as instance:
        (run,) = instance.get_runs()
        (captured,) = (
            entry.dagster_event.logs_captured_data
            for entry in instance.all_logs(run.run_id, dg.DagsterEventType.LOGS_CAPTURED)
            if entry.dagster_event
        )
        key = [run.run_id, "compute_logs", captured.file_key]
        data = instance.compute_log_manager.get_log_data(key)
        assert (data.stdout or b"").decode() == "from Python\nfrom a child\nchildren: ''\n"
        assert "of errors\n" in (data.stderr or b"").decode()
        assert instance.compute_log_manager.is_capture_complete(key)

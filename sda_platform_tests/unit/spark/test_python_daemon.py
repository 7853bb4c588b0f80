"""The Python workers of Spark: what they import, and from where."""

import subprocess
import sys

import pytest

SEEN = """
import sys
sys.path[1:1] = {archives}
from sda_platform.spark.python_daemon import leave_archives_out, preload
leave_archives_out()
assert preload() == []
import {module}
print(*sorted(entry for entry in sys.path if entry.endswith((".zip", ".jar"))))
print(*sorted({{"dagster", "pandera", "numba"}} & sys.modules.keys()))
"""


def seen(module: str, archives: list[str]) -> list[str]:
    """Of a worker that imports ``module`` for a task: archives on its path, and large packages that it loaded."""
    text = SEEN.format(module=module, archives=archives)
    return subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_worker_imports_from_directories_alone() -> None:
    archives, _ = seen("json", ["/nowhere/pyspark.zip", "/nowhere/spark-core.jar"])
    assert archives == ""


def test_archives_stay_where_they_alone_hold_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    from sda_platform.spark.python_daemon import leave_archives_out

    monkeypatch.setattr(sys, "path", ["/nowhere", "/nowhere/pyspark.zip"])
    leave_archives_out()
    assert sys.path == ["/nowhere", "/nowhere/pyspark.zip"]


def test_a_task_of_a_screening_loads_neither_dagster_nor_the_tables() -> None:
    _, loaded = seen("sda_platform.conjunction.screening_tasks", [])
    assert loaded == "numba"

"""Programs of the platform run as Python would run them, with a garbage collector that lets them start and end fast."""

import subprocess
from pathlib import Path

import pytest

from sda_platform.runtime.program import program_command
from sda_platform.spark.engine import python_path

_IN_A_CYCLE = """
class Witness:
    def __del__(self):
        print("collected")

witness = Witness()
witness.itself = witness
"""


def _run(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PYTHONPATH": python_path()}
    command = program_command(*arguments)
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("-m", "shown"), ("shown.py",)])
def test_a_module_or_script_has_its_own_name_and_arguments(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "shown.py").write_text("import sys; print(__name__, sys.argv[1:])")
    assert _run(tmp_path, *arguments, "-w", "one").stdout == "__main__ ['-w', 'one']\n"


def test_its_exit_code_is_that_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("raise SystemExit(3)")
    assert _run(tmp_path, "-m", "failing").returncode == 3


def test_garbage_is_collected_after_many_allocations_only(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text("import gc; print(gc.isenabled(), gc.get_threshold()[0])")
    assert _run(tmp_path, "-m", "shown").stdout == "True 50000\n"


def test_what_is_alive_at_exit_is_left_to_the_system(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text(_IN_A_CYCLE)
    assert _run(tmp_path, "-m", "ending").stdout == ""


def test_duckdb_which_reports_what_is_not_freed_has_nothing_to_report(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text("import duckdb\n" + _IN_A_CYCLE)
    done = _run(tmp_path, "-m", "ending")
    assert (done.stdout, done.stderr) == ("collected\n", "")

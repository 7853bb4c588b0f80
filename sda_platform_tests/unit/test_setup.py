"""Set-up runs on a Python that has nothing but its standard library."""

import subprocess
import sys
from pathlib import Path

SETUP = Path(__file__).parents[2] / "setup"


def test_the_steps_of_set_up_need_no_installed_package() -> None:
    load = f"import runpy; runpy.run_path({str(SETUP / 'steps.py')!r})"
    loaded = subprocess.run([sys.executable, "-S", "-I", "-c", load], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr

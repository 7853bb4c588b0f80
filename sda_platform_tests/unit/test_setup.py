"""Set-up runs on a Python that has nothing but its standard library."""

import subprocess
import sys
from pathlib import Path

SETUP = Path(__file__).parents[2] / "setup"


def test_the_steps_of_set_up_need_no_installed_package() -> None:
    load = f"import runpy; runpy.run_path({str(SETUP / 'steps.py')!r})"
    loaded = subprocess.run([sys.executable, "-S", "-I", "-c", load], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr


def test_set_up_is_the_same_whatever_settings_of_a_platform_there_are() -> None:
    """A misspelt variable made it leave out the archive of classes, without a reason."""
    load = (
        f"import runpy; steps = runpy.run_path({str(SETUP / 'steps.py')!r}); "
        "print(steps['_without_settings']({'SDA_SPARK_PORT': '1', 'PATH': 'a'}))"
    )
    loaded = subprocess.run([sys.executable, "-S", "-I", "-c", load], capture_output=True, text=True, check=True)
    assert loaded.stdout == "{'PATH': 'a'}\n"

"""The wheel of this project, unpacked: what a machine has that installed the package and has no checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def unpacked_wheel(work: Path) -> Path:
    """Build the wheel in ``work``; returns the directory of its contents, for PYTHONPATH."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(work)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = work.glob("sda_platform-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(work / "site")
    return work / "site"

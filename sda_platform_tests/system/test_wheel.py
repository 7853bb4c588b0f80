"""The built wheel works without the checkout: the command line runs, the definitions load, the data is there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sda_platform_tests.support.wheels import unpacked_wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheel, in a directory that takes precedence over the checkout."""
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


def _python(installed: Path, home: Path, *arguments: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SDA_")}
    environment = {**inherited, "PYTHONPATH": str(installed), "SDA_HOME": str(home)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_command_line_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """`sda --help` lists the commands and `sda --version` prints the version of the project."""
    run = ("-c", "import sys; from sda_platform.cli.main import main; sys.argv[0] = 'sda'; main()")
    assert "land" in _python(installed, tmp_path, *run, "--help")
    assert "sda-platform 0." in _python(installed, tmp_path, *run, "--version")


def test_the_definitions_load_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Every asset is defined, and the files that the package reads are in the wheel."""
    program = (
        "import sda_platform, sda_platform.definitions as d\n"
        "from importlib.resources import files\n"
        "from sda_platform.formats.fleet import protected_fleet\n"
        "from sda_platform.orbits.sensing.sensors import sensor_registry\n"
        "from sda_platform.simulation.reference import reference_catalogue\n"
        "root = files('sda_platform')\n"
        "assert (root / 'py.typed').is_file() and (root / 'dagster.yaml').is_file()\n"
        "assert protected_fleet() and sensor_registry() and reference_catalogue() is not None\n"
        "print(sda_platform.__file__, len(d.defs.resolve_all_asset_keys()))\n"
    )
    place, assets = _python(installed, tmp_path, "-c", program).split()
    assert Path(place).is_relative_to(installed)
    assert int(assets) >= 15

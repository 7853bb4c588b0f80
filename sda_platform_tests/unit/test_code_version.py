"""Which code made a commit: the package's version, and the revision of a checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import astropy_iers_data
import pytest

from sda_platform import code_version as module
from sda_platform.code_version import code_version

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "code.py").write_text("x = 1\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "first")
    return tmp_path


def git(place: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=place, capture_output=True, text=True, check=True).stdout.strip()


def test_the_revision_of_a_checkout_is_that_of_its_head(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(checkout / "another"))
    assert module._checked_out_revision(checkout) == head[:12]


def test_a_checkout_with_changes_is_marked_as_modified(checkout: Path) -> None:
    (checkout / "code.py").write_text("x = 2\n")
    assert module._checked_out_revision(checkout).endswith(".modified")


def test_a_directory_inside_another_repository_has_no_revision_of_its_own(checkout: Path) -> None:
    (checkout / "site-packages").mkdir()
    assert module._checked_out_revision(checkout / "site-packages") == ""


def test_without_git_the_package_version_stands_alone(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert module._checked_out_revision(checkout) == ""


def test_an_image_without_a_checkout_has_the_revision_that_its_build_recorded_A1_9(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = tmp_path_factory.mktemp("image")
    shutil.copytree(Path(module.__file__).parent, image / "sda_platform", ignore=shutil.ignore_patterns("__pycache__"))
    (image / module.RECORDED).write_text("abc123abc123\n")
    command = [sys.executable, "-c", "from sda_platform.code_version import code_version; print(code_version())"]
    environment = {**os.environ, "PYTHONPATH": str(image), "GIT_DIR": str(checkout / ".git")}
    done = subprocess.run(command, cwd=image, env=environment, capture_output=True, text=True, check=True)
    assert "+abc123abc123 iers" in done.stdout


def test_a_build_of_the_image_without_a_revision_fails_A1_9() -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    (check,) = [line.removeprefix("RUN ") for line in lines if "REVISION" in line and line.startswith("RUN ")]
    command = check.split("&&")[0]
    assert subprocess.run(["sh", "-c", command], env={"PATH": os.environ["PATH"]}, check=False).returncode == 1
    assert subprocess.run(["sh", "-c", command], env={"REVISION": "abc"}, check=False).returncode == 0
    assert "REVISION" in (ROOT / "compose.yaml").read_text()


def test_the_version_is_found_once_per_process() -> None:
    assert code_version() is code_version()
    assert code_version()[0].isdigit()


def test_the_version_of_the_earth_s_orientation_is_part_of_it() -> None:
    assert code_version().endswith(f" iers {astropy_iers_data.__version__}")

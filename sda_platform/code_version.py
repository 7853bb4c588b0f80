"""Which code and Earth orientation a process uses: the package's version, its git revision, and the data's version."""

import importlib.metadata
import json
import os
import subprocess
from functools import cache
from pathlib import Path

_PACKAGE = "sda-platform"
_EARTH_ORIENTATION = "astropy-iers-data"
_ROOT = Path(__file__).resolve().parents[1]
RECORDED = ".revision"
"""The file beside the package in which the build of an image records the revision."""
_DIGITS = 12
_TIMEOUT_S = 10.0


@cache
def code_version() -> str:
    """Return the version of the code in this process, as ``0.1.0+<revision> iers <version>``; found once, at the first
    call.

    A checkout with uncommitted changes has ``.modified`` after its revision. An image has no checkout: its build
    records the revision in the file `RECORDED`. An unknown revision is left out. The last part is the version of the
    published Earth orientation, on which rows depend as on code: a newer one replaces predictions by measurements.
    """
    revision = _installed_revision() or _checked_out_revision(_ROOT) or _recorded_revision(_ROOT)
    version = f"{_version_of(_PACKAGE)}+{revision}" if revision else _version_of(_PACKAGE)
    return f"{version} iers {_version_of(_EARTH_ORIENTATION)}"


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "0"


def _installed_revision() -> str:
    """Return the revision that pip installed the package from, as the installed package records it (PEP 610)."""
    try:
        record = importlib.metadata.distribution(_PACKAGE).read_text("direct_url.json")
        return str(json.loads(record or "{}").get("vcs_info", {}).get("commit_id", ""))[:_DIGITS]
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return ""


def _recorded_revision(root: Path) -> str:
    """Return the revision that the build of an image recorded; empty where none did."""
    try:
        return (root / RECORDED).read_text().strip()
    except OSError:
        return ""


def _checked_out_revision(root: Path) -> str:
    """Return the revision of the checkout at ``root``; empty where ``root`` is none, or git cannot read it."""
    if not (root / ".git").exists():
        return ""
    # A git hook sets variables that point to its own repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        f"--abbrev={_DIGITS}",
        "--exclude=*",
        "--dirty=.modified",
    ]
    try:
        done = subprocess.run(
            command,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()

"""Where programs are that only tests use."""

import shutil
import sys
from pathlib import Path


def program(name: str) -> Path | None:
    """A program beside Python, where set-up puts it, or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return Path(found) if found else None

"""Where nginx is. Set-up imports this before anything is installed."""

import shutil
from pathlib import Path


def nginx_program() -> Path | None:
    """The program, on PATH or where Debian puts it; None without one."""
    found = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    return Path(found) if found else None

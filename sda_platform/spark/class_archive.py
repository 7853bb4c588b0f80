"""The archive of the engine's classes, from which a Java process maps them instead of loading and verifying each.

The engine loads 20,000 classes before its first commit. With the archive it starts in half the time and processor time.
Set-up makes it once for an environment and a Java (`runtime.class_archive`). Java itself refuses an archive of another
Java or of other jars, and then starts as without one.

Source: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html.
"""

import hashlib
import sys
from pathlib import Path

from sda_platform.spark.java import Java

# Java reports an archive that it refuses on the standard output of the engine.
_SILENTLY = "-Xlog:cds=off,cds+dynamic=off"


def archive_directory() -> Path:
    """Where this environment keeps its archive; it ends with the environment, whose jars it names."""
    return Path(sys.prefix) / "share" / "sda-platform"


def archive_path(java: Java) -> Path:
    """Return the archive for ``java`` in its present release."""
    runtime = java.executable.resolve()
    release = runtime.parents[1] / "release"  # of the runtime: version, vendor, build
    known = release.read_bytes() if release.is_file() else str(runtime).encode()
    return archive_directory() / f"engine-{hashlib.sha256(known).hexdigest()[:12]}.jsa"


def use_archive(java: Java) -> list[str]:
    """Return the options of the engine that use the archive; none where it was not made."""
    path = archive_path(java)
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", _SILENTLY] if path.is_file() else []


def make_archive(path: Path) -> list[str]:
    """Return the options of an engine that leaves the archive of the classes it loaded at ``path`` when it ends."""
    return [f"-XX:ArchiveClassesAtExit={path}", _SILENTLY]

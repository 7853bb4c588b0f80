"""Makes the archive of the engine's classes: ``python -m sda_platform.runtime.class_archive``.

An engine starts, is warmed as at any start, and ends; Java then writes the classes that it loaded. Set-up does this
once.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.channel import TOKEN_VARIABLE, kept_token
from sda_platform.spark.class_archive import archive_directory, archive_path
from sda_platform.spark.jars import JarsMissing
from sda_platform.spark.java import Java, JavaMissing, find_java

_START_WITHIN_S, _END_WITHIN_S = 180.0, 300.0
_LOG = "engine.log"
_TOKEN = "token"  # noqa: S105 - the name of a file


class ArchiveFailed(RuntimeError):
    """The archive was not made; the text has the reason."""


def make() -> Path:
    """Make the archive for this environment's Java, in place of earlier ones. Raises ArchiveFailed, JarsMissing."""
    java = find_java()
    path = archive_path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=path.parent) as scratch:
        made = Path(scratch) / path.name
        _train(Path(scratch), made)
        require_usable(java, made)
        for earlier in archive_directory().glob("*.jsa"):
            earlier.unlink()
        made.replace(path)
    return path


def require_usable(java: Java, archive: Path) -> None:
    """Raise ArchiveFailed unless the archive is on disk and Java accepts it: it trusts what it maps later."""
    if not archive.is_file():
        raise ArchiveFailed(f"{java.executable} wrote no archive of classes")
    with archive.open("rb") as content:
        os.fsync(content.fileno())
    options = [f"-XX:SharedArchiveFile={archive}", "-Xshare:on", "-XX:+VerifySharedSpaces"]
    reading = [str(java.executable), *options, "-cp", engine.class_path(), "-version"]
    # Where Java trusts a damaged archive, it crashes and leaves a report in its directory.
    done = subprocess.run(reading, capture_output=True, text=True, check=False, cwd=archive.parent)
    if done.returncode:
        raise ArchiveFailed(
            f"{java.executable} does not accept the archive of classes that it wrote: {done.stdout[-500:]}"
        )


def _train(directory: Path, archive: Path) -> None:
    """Run an engine in ``directory`` until it is warm, then end it."""
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir()
    port = free_port(0)
    command = engine.server_command(find_java(), directory, port=port, driver_memory="1g", archiving=archive)
    try:
        with listening_engine(command, directory, port) as server:
            warm(directory, port)
            server.terminate()
            server.wait(_END_WITHIN_S)
    except (ArchiveFailed, subprocess.TimeoutExpired) as problem:
        log = (directory / _LOG).read_text(errors="replace")
        raise ArchiveFailed(f"{problem}\n{log[-1500:]}") from None


@contextmanager
def listening_engine(command: Sequence[str], directory: Path, port: int) -> "Iterator[subprocess.Popen[bytes]]":
    """The engine of ``command``, once it listens; it ends with the block. Raises ArchiveFailed: it did not start."""
    token = kept_token(directory / _TOKEN)
    environment = {**os.environ, **engine.server_environment(directory), TOKEN_VARIABLE: token}
    with (directory / _LOG).open("wb") as output:
        server = subprocess.Popen(command, env=environment, stdout=output, stderr=output, cwd=directory)
        try:
            deadline = time.monotonic() + _START_WITHIN_S
            while not engine.is_listening(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise ArchiveFailed("the engine did not start")
                time.sleep(0.1)
            yield server
        finally:
            server.kill()
            server.wait()


def warm(directory: Path, port: int) -> None:
    """Warm the engine at ``port`` as a start of the platform does. Raises ArchiveFailed: it does not work."""
    address = engine.remote_address(port, directory / _TOKEN)
    command = [sys.executable, "-m", "sda_platform.runtime.warm_up", address, str(directory)]
    with (directory / _LOG).open("ab") as output:
        if subprocess.run(command, stdout=output, stderr=output, check=False).returncode:
            raise ArchiveFailed("the engine did not answer as it does at a start")


def main() -> int:
    """Make the archive and print its path; 1 where that fails."""
    try:
        path = make()
    except (ArchiveFailed, JarsMissing, JavaMissing) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

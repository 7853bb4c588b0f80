"""The platform's own classes for the engine: the Scala sources here are compiled once into the cache of the jars.

The Scala compiler is among PySpark's own jars, so a Java runtime suffices. A jar is named by the hash of its sources.
Stdlib only.
"""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sda_platform.spark.java import Java

_DIGITS = 12
_TIMEOUT_S = 600


class NotCompiled(RuntimeError):
    """Sources could not be compiled; the text is the compiler's."""


@dataclass(frozen=True)
class CompiledJar:
    """The jar of some sources, which are beside this module."""

    name: str
    source_names: tuple[str, ...]

    @property
    def sources(self) -> list[Path]:
        """Its sources."""
        return [Path(__file__).with_name(name) for name in self.source_names]

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        content = b"".join(source.read_bytes() for source in self.sources)
        return f"{self.name}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.jar"

    def compile_into(self, directory: Path, java: Java, spark_jars: Path, others: Sequence[Path]) -> Path:
        """Compile it against Spark's jars and ``others``; returns the new jar. Raises NotCompiled."""
        partial = directory / f".{os.getpid()}-{self.file_name}"
        class_path = os.pathsep.join([*map(str, spark_jars.glob("*.jar")), *map(str, others)])
        command = [str(java.executable), "-cp", f"{spark_jars}/*", "scala.tools.nsc.Main", "-cp", class_path]
        done = subprocess.run(
            [*command, "-d", str(partial), *map(str, self.sources)],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode or not partial.is_file():
            output = (done.stdout + done.stderr).strip()[-1000:]
            raise NotCompiled(f"{', '.join(self.source_names)} could not be compiled:\n{output}")
        return partial.replace(directory / self.file_name)


PLATFORM = CompiledJar("sda-platform", ("LocalFiles.scala", "DeltaCommits.scala"))
"""Hadoop's file system of this machine without child processes, and Delta's write without looking up the log."""
LOG_STORE = CompiledJar("conditional-put-log-store", ("ConditionalPutLogStore.scala",))
"""Delta's log store for object stores."""

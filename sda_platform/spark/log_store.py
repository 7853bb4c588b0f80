"""Delta's log store for object stores, `ConditionalPutLogStore.scala`: compiled once into the cache of the jars.

The Scala compiler is among PySpark's own jars, so a Java runtime suffices. The jar is named by the hash of its source.
Stdlib only.
"""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sda_platform.spark.java import Java

_SOURCE = Path(__file__).with_name("ConditionalPutLogStore.scala")
_DIGITS = 12
_TIMEOUT_S = 600


class NotCompiled(RuntimeError):
    """The log store could not be compiled; the text is the compiler's."""


def jar_name() -> str:
    """The file name of the compiled log store."""
    return f"conditional-put-log-store-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:_DIGITS]}.jar"


def compile_into(directory: Path, java: Java, spark_jars: Path, others: Sequence[Path]) -> Path:
    """Compile the log store against Spark's jars and ``others``; returns the new jar. Raises NotCompiled."""
    partial = directory / f".{os.getpid()}-{jar_name()}"
    class_path = os.pathsep.join([*map(str, spark_jars.glob("*.jar")), *map(str, others)])
    command = [str(java.executable), "-cp", f"{spark_jars}/*", "scala.tools.nsc.Main", "-cp", class_path]
    done = subprocess.run(
        [*command, "-d", str(partial), str(_SOURCE)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode or not partial.is_file():
        raise NotCompiled(f"{_SOURCE.name} could not be compiled:\n{(done.stdout + done.stderr).strip()[-1000:]}")
    return partial.replace(directory / jar_name())

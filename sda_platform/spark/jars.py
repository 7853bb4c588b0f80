"""The two jars that teach Spark Delta Lake: which, how they are checked, where they are kept.

Set-up fetches them once per user (``python -m sda_platform.spark.jars``); the engine only looks. Stdlib only.
The transport is the Ivy client inside PySpark's own jars, so a site's Java and Ivy settings apply.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sda_platform.spark.java import Java, JavaMissing, find_java

_FETCH_TIMEOUT_S = 300


class JarsMissing(RuntimeError):
    """A jar is absent or has another checksum; the text has the remedy."""


@dataclass(frozen=True)
class Jar:
    """A published jar, known by its contents."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        return f"{self.name}-{self.version}.jar"


DELTA_JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.1_2.13",
        "4.4.0",
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Where this user's jars are: ``$XDG_CACHE_HOME/sda-platform/jars``, by default in ``~/.cache``."""
    values = os.environ if environment is None else environment
    root = values.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "sda-platform" / "jars"


def jar_paths(directory: Path | None = None) -> list[Path]:
    """The Delta jars, ready for Spark. Raises JarsMissing; trusts the checksums that set-up verified."""
    root = directory or cache_directory()
    paths = [root / jar.file_name for jar in DELTA_JARS]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise JarsMissing(f"Spark's Delta jars are not in {root} ({', '.join(missing)}): run `make setup`")
    return paths


def spark_jars_directory() -> Path:
    """The ``jars`` directory of the installed PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsMissing("pyspark is not installed in this Python: run `make setup`")
    return Path(spec.origin).parent / "jars"


def fetch(java: Java, directory: Path | None = None) -> list[Path]:
    """Bring every missing or damaged jar into the cache; returns those fetched. Safe to interrupt."""
    root = directory or cache_directory()
    root.mkdir(parents=True, exist_ok=True)
    wanted = [jar for jar in DELTA_JARS if not _is_sound(root / jar.file_name, jar)]
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as scratch:
        for jar in wanted:
            _retrieve(java, jar, Path(scratch))
            # Checked, then moved in one step: a jar under its final name is always whole.
            (Path(scratch) / jar.file_name).replace(root / jar.file_name)
    return [root / jar.file_name for jar in wanted]


def _is_sound(path: Path, jar: Jar) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256


def _retrieve(java: Java, jar: Jar, scratch: Path) -> None:
    ivy = next(iter(spark_jars_directory().glob("ivy-*.jar")), None)
    if ivy is None:
        raise JarsMissing("PySpark's jars contain no Ivy client; the installed pyspark is not the locked one")
    command = [str(java.executable), "-cp", str(ivy), "org.apache.ivy.Main", "-warn"]
    command += ["-cache", str(scratch / "ivy"), "-dependency", jar.group, jar.name, jar.version]
    command += ["-notransitive", "-types", "jar", "-retrieve", str(scratch / "[artifact]-[revision].[ext]")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise JarsMissing(f"fetching {jar.file_name} took over {_FETCH_TIMEOUT_S} s: is the network up?") from None
    target = scratch / jar.file_name
    if not target.is_file():
        reason = (done.stdout + done.stderr).strip()[-600:]
        raise JarsMissing(f"{jar.group}:{jar.name}:{jar.version} could not be fetched:\n{reason}")
    if not _is_sound(target, jar):
        raise JarsMissing(f"{jar.file_name} as fetched is not the known one (sha256 differs from {jar.sha256[:12]}…)")


def main() -> int:
    """Fetch missing jars and print the result. The exit code is 1 if the jars cannot be fetched."""
    try:
        fetched = fetch(find_java())
    except (JarsMissing, JavaMissing) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    for path in fetched:
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

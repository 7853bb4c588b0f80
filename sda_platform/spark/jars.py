"""The jars that teach Spark Delta Lake and S3: which, how they are checked, where they are kept.

Set-up fetches the two of Delta once per user (``python -m sda_platform.spark.jars``), and compiles the platform's own.
Those for a lake in an object store have 640 MB and are fetched on request (``--s3``). The engine only looks. Stdlib
only.
The transport is the Ivy client inside PySpark's own jars, so a site's Java and Ivy settings apply.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sda_platform.spark.compiled_jars import LOG_STORE, PLATFORM, NotCompiled
from sda_platform.spark.java import Java, JavaMissing, find_java

_FETCH_TIMEOUT_S = 1_800


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


# Of the Hadoop version in PySpark's jars, and the SDK that it was built with.
S3_JARS = (
    Jar(
        "org.apache.hadoop",
        "hadoop-aws",
        "3.4.2",
        "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
    ),
    Jar(
        "software.amazon.awssdk",
        "bundle",
        "2.29.52",
        "62638f33045690c6bc5e496b54b0b2e89a9ad38cbedacdf6e017fea6bc85f55c",
    ),
)


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Where this user's jars are: ``$XDG_CACHE_HOME/sda-platform/jars``, by default in ``~/.cache``."""
    values = os.environ if environment is None else environment
    root = values.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "sda-platform" / "jars"


def jar_paths(directory: Path | None = None, *, with_s3: bool = False) -> list[Path]:
    """Return the jars, ready for Spark; for a lake in an object store also those ``with_s3``.

    Raises JarsMissing; trusts the checksums that were verified when they were fetched.
    """
    root = directory or cache_directory()
    usual = [root / jar.file_name for jar in (*DELTA_JARS, PLATFORM)]
    _require(usual, "Delta", "make setup")
    s3 = [root / jar.file_name for jar in (*S3_JARS, LOG_STORE)] if with_s3 else []
    _require(s3, "S3", "python -m sda_platform.spark.jars --s3")
    return [*usual, *s3]


def _require(paths: Sequence[Path], name: str, remedy: str) -> None:
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise JarsMissing(f"Spark's {name} jars are not in {paths[0].parent} ({', '.join(missing)}): run `{remedy}`")


def spark_jars_directory() -> Path:
    """Return the ``jars`` directory of the installed PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsMissing("pyspark is not installed in this Python: run `make setup`")
    return Path(spec.origin).parent / "jars"


def fetch(java: Java, directory: Path | None = None, *, with_s3: bool = False) -> list[Path]:
    """Bring every missing or damaged jar into the cache; returns those that are new. Safe to interrupt."""
    root = directory or cache_directory()
    root.mkdir(parents=True, exist_ok=True)
    jars = (*DELTA_JARS, *(S3_JARS if with_s3 else ()))
    wanted = [jar for jar in jars if not _is_sound(root / jar.file_name, jar)]
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as scratch:
        for jar in wanted:
            _retrieve(java, jar, Path(scratch))
            # Checked, then moved in one step: a jar under its final name is always whole.
            (Path(scratch) / jar.file_name).replace(root / jar.file_name)
    fetched = [root / jar.file_name for jar in wanted]
    for compiled in (PLATFORM, *([LOG_STORE] if with_s3 else [])):
        if not (root / compiled.file_name).is_file():
            others = [root / jar.file_name for jar in jars]
            fetched.append(compiled.compile_into(root, java, spark_jars_directory(), others))
    return fetched


def _is_sound(path: Path, jar: Jar) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256


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
    """Fetch missing jars, with ``--s3`` also those of S3, and print them; 1 if one cannot be fetched."""
    try:
        fetched = fetch(find_java(), with_s3="--s3" in sys.argv[1:])
    except (JarsMissing, JavaMissing, NotCompiled) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    for path in fetched:
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Finds a Java runtime that Spark can run on. Stdlib only: set-up uses it before anything is installed.

Looks in JAVA_HOME, then on PATH, then where package managers put Java. Installs nothing.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
NEWEST = 23
"""From 24 on Java has no security manager, and the Hadoop client inside Spark 4.1 still requests it."""

VECTOR_MODULE = "jdk.incubator.vector"
_USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)


class JavaMissing(RuntimeError):
    """No usable Java was found; the text has the places searched and the remedy."""


@dataclass(frozen=True)
class Java:
    """A runtime: the path of its ``java`` and its major version."""

    executable: Path
    version: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first usable runtime. Raises JavaMissing, naming each one tried and why it was refused."""
    refusals = []
    for executable in _candidates(os.environ if environment is None else environment):
        try:
            return Java(executable, _version(executable))
        except JavaMissing as refusal:
            refusals.append(f"  {executable}: {refusal}")
    tried = "\n".join(refusals) or "  none was found in JAVA_HOME, on PATH or in the usual places"
    raise JavaMissing(
        f"Spark needs Java {OLDEST} to {NEWEST} with the module {VECTOR_MODULE}:\n{tried}\n"
        "Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; Fedora: dnf install "
        "java-21-openjdk-headless; macOS: brew install openjdk@17), or set JAVA_HOME; then `make setup`."
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    seen = set()
    for path in _paths(environment):
        if path.is_file() and os.access(path, os.X_OK) and path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def _paths(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environment.get("PATH")):
        yield Path(on_path)
    for pattern in _USUAL_PLACES:
        yield from sorted(Path("/").glob(f"{pattern[1:]}/bin/java"))


def _version(executable: Path) -> int:
    """Major version of a usable runtime; JavaMissing with the reason for any other."""
    answer = _ask(executable, "-version")
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if not found:
        raise JavaMissing(f"did not print its version ({answer.strip()[:80]})")
    version = int(found[1])
    if not OLDEST <= version <= NEWEST:
        raise JavaMissing(f"is Java {version}")
    if VECTOR_MODULE not in _ask(executable, "--list-modules"):
        raise JavaMissing(f"is a cut-down Java {version} without {VECTOR_MODULE}")
    return version


def _ask(executable: Path, option: str) -> str:
    try:
        answer = subprocess.run([executable, option], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return answer.stdout + answer.stderr

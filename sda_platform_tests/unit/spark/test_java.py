"""Finding a Java that Spark runs on: versions accepted, and the message otherwise."""

from pathlib import Path

import pytest

from sda_platform.spark import java


def _fake_java(directory: Path, version: str, modules: str) -> Path:
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\nif [ $1 = -version ]; then echo 'openjdk version \"{version}\"' >&2; else echo '{modules}'; fi\n"
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def _nothing_in_the_usual_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_USUAL_PLACES", ())


@pytest.mark.parametrize("version", ["17.0.15", "21", "23.0.1"])
def test_java_home_is_taken_when_spark_runs_on_it(tmp_path: Path, version: str) -> None:
    executable = _fake_java(tmp_path, version, "jdk.incubator.vector@x")
    found = java.find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert found == java.Java(executable, int(version.split(".")[0]))


@pytest.mark.parametrize(
    ("version", "modules", "reason"),
    [
        ("1.8.0_402", "jdk.incubator.vector", "is Java 8"),
        ("25.0.1", "jdk.incubator.vector", "is Java 25"),
        ("17.0.15", "java.base", "without jdk.incubator.vector"),
        ("strange", "java.base", "did not print its version"),
    ],
)
def test_an_unusable_java_is_named_with_its_reason(tmp_path: Path, version: str, modules: str, reason: str) -> None:
    executable = _fake_java(tmp_path, version, modules)
    with pytest.raises(java.JavaMissing) as refusal:
        java.find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert f"{executable}: " in str(refusal.value)
    assert reason in str(refusal.value)
    assert "make setup" in str(refusal.value)


def test_path_is_searched_when_java_home_is_unusable(tmp_path: Path) -> None:
    _fake_java(tmp_path / "old", "11.0.2", "")
    good = _fake_java(tmp_path / "good", "17.0.1", "jdk.incubator.vector@17")
    found = java.find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(good.parent)})
    assert found.executable == good

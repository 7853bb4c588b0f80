"""The archive of the engine's classes: where it is, and when the engine uses it."""

from pathlib import Path

import pytest

from sda_platform.spark import class_archive
from sda_platform.spark.java import Java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    monkeypatch.setattr("sys.prefix", str(tmp_path / "environment"))
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.15"')
    return Java(executable, 17)


def test_an_engine_without_an_archive_starts_without_one(java: Java) -> None:
    assert class_archive.use_archive(java) == []


def test_an_engine_uses_the_archive_of_its_environment_and_java(java: Java) -> None:
    path = class_archive.archive_path(java)
    path.parent.mkdir(parents=True)
    path.touch()
    assert f"-XX:SharedArchiveFile={path}" in class_archive.use_archive(java)


def test_another_release_of_the_same_java_has_another_archive(java: Java) -> None:
    before = class_archive.archive_path(java)
    (java.executable.parents[1] / "release").write_text('JAVA_VERSION="17.0.16"')
    assert class_archive.archive_path(java) != before

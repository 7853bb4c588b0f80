"""The image of the Dockerfile: it runs without a network, and states what is in it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform_tests.containers.engine import build_platform, docker, docker_daemon, make_base

pytestmark = [pytest.mark.timeout(3600)]
_IMAGE = "sda-platform"
_LARGEST_GB = 2.7
_ARCHIVE = """
from sda_platform.runtime.class_archive import require_usable
from sda_platform.spark.class_archive import archive_path
from sda_platform.spark.java import find_java
java = find_java()
require_usable(java, archive_path(java))
print("usable")
"""
_SCHEMA = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read()) or "valid")
"""


@pytest.fixture(scope="module", autouse=True)
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build it from a base of Debian's packages."""
    work = tmp_path_factory.mktemp("image")
    with docker_daemon(work):
        make_base(work)
        build_platform(_IMAGE)
        yield


def test_it_is_no_larger_than_stated() -> None:
    assert json.loads(docker("inspect", _IMAGE))[0]["Size"] < _LARGEST_GB * 1e9


def test_the_demo_runs_without_a_network() -> None:
    output = docker("run", "--rm", "--init", "--network", "none", _IMAGE, "sda", "demo", "--once")
    assert "delivered" in output


def test_its_bill_of_materials_names_every_package_and_jar() -> None:
    bill = _inside("cat sbom.cdx.json")
    components = json.loads(bill)["components"]
    of_debian = {each["name"] for each in components if each["purl"].startswith("pkg:deb/")}
    assert of_debian == set(_inside("dpkg --get-selections | sed 's/[:\\t].*//'").split())
    of_python = {each["name"] for each in components if each["purl"].startswith("pkg:pypi/")}
    directories = _inside("ls -d .venv/lib/python*/site-packages/*.dist-info").split()
    assert {Path(each).stem.split("-")[0].lower().replace("_", "-") for each in directories} == of_python
    # Those elsewhere are of Debian's packages.
    digests = {content["content"] for each in components for content in each.get("hashes", ())}
    assert digests == set(_inside("find /app /home -name '*.jar' -exec sha256sum {} + | cut -c1-64").split())
    validator = ["run", "--no-project", "--with", "cyclonedx-python-lib[json-validation]", "python", "-c", _SCHEMA]
    command = [str(Path(sys.executable).with_name("uv")), *validator]
    done = subprocess.run(command, input=bill, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "valid", done.stderr


def test_its_engine_starts_from_the_archive_of_its_classes() -> None:
    assert _inside(f"python -c '{_ARCHIVE}'").strip() == "usable"


def _inside(command: str) -> str:
    return docker("run", "--rm", "--network", "none", _IMAGE, "sh", "-c", command)

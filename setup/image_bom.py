"""Write the bill of materials of an image (CycloneDX 1.5) to standard output: Debian's packages, Python's, and jars.

    python setup/image_bom.py DIRECTORY...

It runs in the image that it describes. ``DIRECTORY``: where jars are sought. Needs no package beyond Python's own.
"""

import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

Component = dict[str, object]


def bill_of_materials(directories: Sequence[Path]) -> dict[str, object]:
    """Describe what is installed; the same image gives the same text."""
    found = [*_debian_packages(), *_python_packages(), *_jars(directories)]
    unique = {str(each["bom-ref"]): each for each in found}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": "image", "name": "sda-platform"}},
        "components": [unique[reference] for reference in sorted(unique)],
    }


def _debian_packages() -> Iterator[Component]:
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\n"]
    listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    distribution = platform.freedesktop_os_release()["ID"]
    for line in listed.splitlines():
        status, name, version, architecture = line.split("\t")
        if status.startswith("ii"):
            yield _component(name, version, f"pkg:deb/{distribution}/{name}@{quote(version)}?arch={architecture}")


def _python_packages() -> Iterator[Component]:
    for each in importlib.metadata.distributions():
        name = each.metadata["Name"].lower().replace("_", "-")
        yield _component(name, each.version, f"pkg:pypi/{name}@{quote(each.version)}")


def _jars(directories: Sequence[Path]) -> Iterator[Component]:
    for path in (each for directory in directories for each in directory.rglob("*.jar")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        group, name, version = _maven_coordinates(path)
        purl = f"pkg:maven/{group}/{name}@{quote(version)}" if group else f"pkg:generic/{quote(path.name)}"
        # Of one library two files may be here: the digest keeps them apart.
        yield {
            **_component(name, version, f"{purl}?checksum=sha256:{digest}"),
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }


def _maven_coordinates(path: Path) -> tuple[str, str, str]:
    """Group, name and version as the jar itself states them; no group where it states none, or those of several."""
    with zipfile.ZipFile(path) as jar:
        stated = [name for name in jar.namelist() if name.endswith("/pom.properties")]
        texts = [jar.read(name).decode() for name in stated]
    for text in texts:
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
        group, name, version = (found.get(key, "").strip() for key in ("groupId", "artifactId", "version"))
        if group and path.name == f"{name}-{version}.jar":
            return group, name, version
    name, _, version = path.stem.rpartition("-")
    return "", name or path.stem, version if name else ""


def _component(name: str, version: str, purl: str) -> Component:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(bill_of_materials([Path(each) for each in sys.argv[1:]]), indent=1)}\n")

"""What others make and we run is named by its content, and exceptions end."""

import re
import sys
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "setup"))
from vulnerabilities import ACCEPTED, accepted  # noqa: E402 - a script beside its neighbours

TODAY = date(2026, 11, 27)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
_USED = r"(?m)^(?:ARG BASE=| *image: | *BASE: &base \$\{BASE:-)([^\s}]+)"
_IMAGE = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
_PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v\d[\w.]*")


def test_each_action_is_pinned_by_its_commit__S10() -> None:
    used = [
        line.partition("uses: ")[2] for each in WORKFLOWS for line in each.read_text().splitlines() if "uses: " in line
    ]
    assert used
    assert [each for each in used if not _PINNED.fullmatch(each)] == []


def test_a_workflow_may_only_read_the_repository_but_the_release() -> None:
    for each in WORKFLOWS:
        text = each.read_text()
        assert "permissions:\n  contents: read\n" in text, each.name
        assert (": write" in text) is (each.name == "release.yml"), each.name


def test_each_image_is_pinned_by_its_digest__S10() -> None:
    """Those of others; our own is built here."""
    files = [ROOT / "Dockerfile", ROOT / "monitoring/Dockerfile", ROOT / "compose.yaml"]
    used = [found[1] for each in files for found in re.finditer(_USED, each.read_text())]
    assert {each for each in used if not _IMAGE.fullmatch(each)} == {"sda-platform", "sda-prometheus"}
    bases = {each for each in used if each.startswith("python:")}
    assert len(bases) == 1, "one base, wherever it is named"
    stages = [line for each in files for line in each.read_text().splitlines() if line.startswith("FROM ")]
    assert {line.split()[1] for line in stages} == {"$BASE", "base"}


def test_a_release_is_built_from_the_lock_and_each_of_its_files_is_attested() -> None:
    release, make = (ROOT / ".github/workflows/release.yml").read_text(), (ROOT / "Makefile").read_text()
    assert "--build-constraint requirements.lock --require-hashes" in make
    attested, published = release.index("subject-path: dist/*"), release.index("gh release create")
    assert release.index("make release") < attested < published and "dist/* --verify-tag" in release
    assert "gh attestation verify" in (ROOT / "SECURITY.md").read_text()


def test_what_is_not_pinned_is_found() -> None:
    for text in (
        "actions/checkout@v4",
        "actions/checkout@main",
        f"actions/checkout@{'a' * 39}  # v4.0.0",
        "a/b@" + "a" * 40,
    ):
        assert not _PINNED.fullmatch(text)


def test_an_accepted_vulnerability_has_a_last_day_and_a_reason() -> None:
    text = "# none\n\nGHSA-abcd-1234-wxyz 2026-11-27 not used here\nPYSEC-2026-1 2027-01-01 test only\n"
    assert list(accepted(text, TODAY)) == ["GHSA-abcd-1234-wxyz", "PYSEC-2026-1"]


@pytest.mark.parametrize(
    "line",
    ["GHSA-abcd-1234-wxyz 2026-11-26 over", "GHSA-abcd-1234-wxyz 2027-01-01", "GHSA-abcd-1234-wxyz for ever",
     "everything 2027-01-01 because", "GHSA-abcd-1234-wxyz 2027-13-01 no day"],
)  # fmt: skip
def test_one_that_is_over_or_has_no_end_fails_the_check(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(accepted(line, TODAY))


def test_the_list_can_be_read() -> None:
    list(accepted(ACCEPTED.read_text(), date.min))

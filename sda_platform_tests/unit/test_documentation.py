"""The documentation names what exists: pages, headings, modules, tests, commands and settings."""

import re
import runpy
import socket
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sda_platform.cli.main import main
from sda_platform.formats.optical_columns import decode_optical_records
from sda_platform.formats.radar import RADAR_FRAME, decode_radar_frames
from sda_platform.setting_fields import OTHER_VARIABLES
from sda_platform.settings import declared_settings
from sda_platform_tests.support.page_anchors import anchors_of, text_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
NAMED = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""The changelog names things by the names that they had."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FILE = re.compile(r"`([\w./-]+\.(?:py|csv|yaml|xml|toml))`")
_TEXTS = {".py", ".md", ".ipynb", ".yaml", ".yml", ".json", ".toml", ".js"}
_COMMAND = re.compile(r"(?<![\w/.@-])sda\s((?:--home \S+ )?[a-z][^`\n|;&#]*)")
_QUOTED = re.compile(r"(?<=\s)(\"[^\"]*\"|'[^']*')")
_NO_COMMANDS = {"dagster", "on", "restoration"}
"""What follows the word in other meanings: a Helm release, a Docker volume, and the mark of restored rows."""


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to files or headings that do not exist."""
    for target in _LINK.findall(text_of(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (anchor and anchor not in anchors_of(linked)):
            yield target


def unknown_names(text: str) -> Iterator[str]:
    """The commands and options of `sda` that ``text`` names, and that do not exist."""
    for mention in _COMMAND.findall(text.replace("\\\n", " ")):
        words = [word.rstrip(".,:)\\") for word in _QUOTED.sub("", mention).partition('"')[0].split()]
        words = words[2:] if words[0] == "--home" else words
        command: click.Command = main
        for word in words if words[0].partition("/")[0] not in _NO_COMMANDS else ():
            known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
            if word.startswith("--") and word.partition("=")[0] not in known:
                yield f"sda {mention}: {word}"
            if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
                if word not in command.commands:
                    yield f"sda {mention}: {word}"
                    break
                command = command.commands[word]


def names(page: Path) -> str:
    """The page in the id of a test."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", NAMED, ids=names)
def test_named_files_exist(page: Path) -> None:
    named = set(_FILE.findall(text_of(page)))
    tracked = {
        str(path.relative_to(ROOT))
        for base in ("sda_platform", "sda_platform_tests", "benchmarks", "setup")
        for path in (ROOT / base).rglob("*")
        if path.is_file()
    }
    missing = [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not any(path == name or path.endswith(f"/{name}") for path in tracked)
    ]
    assert missing == []


@pytest.mark.parametrize("page", NAMED, ids=names)
def test_named_settings_exist(page: Path) -> None:
    text = page.read_text()
    settings = {setting.variable for setting in declared_settings()} | OTHER_VARIABLES.keys()
    assert {name for name in re.findall(r"\bSDA_[A-Z0-9_]*[A-Z0-9]\b", text) if name not in settings} == set()


def test_every_text_names_commands_and_options_that_exist() -> None:
    """Pages, docstrings, messages, remedies, settings of containers and of CI; not the changelog."""
    folders = (DOCS, *(ROOT / name for name in ("sda_platform", "sda_platform_tests", "benchmarks", "setup", "deploy",
                                                "monitoring", ".github")))  # fmt: skip
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in _TEXTS]
    found = {}
    for path in (*NAMED, *ROOT.glob("*.yaml"), ROOT / "Makefile", ROOT / "Dockerfile", *files):
        if path != Path(__file__) and (unknown := list(unknown_names(path.read_text()))):
            found[str(path.relative_to(ROOT))] = unknown
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run `sda alerts`", ["alerts"]),
        ("`sda lake verify --repair` and `sda lake verify --mend`", ["--mend"]),
        ("$ sda --home var query 'SELECT --x' \\\n  --as-of now --limits 3", ["--limits"]),
        ('f"see `sda lake list {table}`"', ["list"]),
        ("sda lake diff TABLE BEFORE [AFTER], `sda ground`, `sda alert cdm --help`", []),
    ],
)
def test_a_command_or_option_that_does_not_exist_is_found(text: str, words: list[str]) -> None:
    assert [each.rpartition(": ")[2] for each in unknown_names(text)] == words


def test_the_operators_page_names_every_command_of_the_platform_and_of_its_objects() -> None:
    _, _, page = (DOCS / "how-to" / "operate.md").read_text().partition("## Commands of an operator\n")
    named = {mention.split()[0] for mention in _COMMAND.findall(page.partition("\n## ")[0])}
    shown = main.get_help(click.Context(main, info_name="sda")).partition("Platform:\n")[2].partition("Data:\n")[0]
    assert set(re.findall(r"^  (\w+) ", shown, re.MULTILINE)) - named == set()


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_tables_have_no_gap(page: Path) -> None:
    text = f"\n\n{text_of(page)}"
    assert re.findall(r"\n\n(\|.*)\n(?!\|[-:| ]+\|\n)", text) == [], "Markdown ends a table at an empty line"


def test_the_navigation_names_pages_that_exist() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)
    made = {"changelog.md", "contributing.md"}
    assert [page for page in listed if page not in made and not (DOCS / page).exists()] == []


def test_the_reference_pages_are_what_follows_from_the_code() -> None:
    pages = runpy.run_path(str(DOCS / "site" / "reference.py"))["PAGES"]
    outdated = [path for path, text in pages.items() if (DOCS / path).read_text() != text()]
    assert outdated == [], "`make docs` writes them"


def test_the_architecture_shows_every_package() -> None:
    shown = set(re.findall(r"`(\w+)/`", (DOCS / "explanation" / "architecture.md").read_text()))
    packages = {path.parent.name for path in (ROOT / "sda_platform").glob("*/__init__.py")}
    assert packages - shown == set()


def test_the_examples_of_sensors_records_are_read_as_the_page_states(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to" / "add-a-sensor.md").read_text()
    record, source = (page.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("json", "toml"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        assert tomllib.loads(source)["sources"]["radar-tenerife"]["bind"].startswith("127.0.0.1:")
        monkeypatch.setattr(sys, "argv", ["", "31", str(receiver.getsockname()[1]), "1730419200000000000"])
        runpy.run_path(str(DOCS / "how-to/radar_frame.py"))
        frame = receiver.recv(1_000)
    radar, telescope = decode_radar_frames([frame]), decode_optical_records([record.encode()])
    assert (radar.errors, telescope.errors) == ({}, {})
    assert radar.sensor_time_ns.tolist() == [1_730_419_200_000_000_000], "that of `sda now --ns`"
    assert [*radar.source_id.to_pylist(), *telescope.source_id.to_pylist()] == ["radar-31", "optical-teide"]
    assert all(f"`{name}" in page for name in RADAR_FRAME.names or () if name != "reserved")
    offsets = [int(offset) for offset in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert offsets == [field[1] for field in (RADAR_FRAME.fields or {}).values()]

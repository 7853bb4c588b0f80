"""The language of docstrings, help texts and documentation: short sentences, and technical verbs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sda_platform.cli.main import main

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "sda_platform").rglob("*.py"))
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})
MOST_WORDS = 25
PERSONIFICATION = re.compile(r"\b(told|tells|nobody|whoever|believes|hears|stands)\b", re.IGNORECASE)
"""Words that a technical verb replaces (CONTRIBUTING.md)."""
REQUIREMENT = re.compile(r"\b(?:D[PL]\d-[A-Z]+\d+|GF-\d+|GC\d+|DP\d)\b|\([EFIOQ]\d{1,2}(?:\.\d+)?\)")
"""Ids of requirements; only tests name them."""
_CODE = re.compile(r"```.*?```", re.DOTALL)
_ITEM = re.compile(r"\s*([-*+|#>]|\d+\.)\s")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:;])['\")\]*]*\s+")


def paragraphs(text: str) -> Iterator[str]:
    """The running text: no code, no tables, no headings and no lists."""
    for block in re.split(r"\n\s*\n", _CODE.sub("\n\n", text)):
        lines = block.strip("\n").splitlines()
        if not any(_ITEM.match(line) for line in lines) and not all(line.startswith("    ") for line in lines):
            yield " ".join(line.strip() for line in lines)


def sentences(paragraph: str) -> list[str]:
    """Its sentences, where a colon or a semicolon ends one too; a name in backticks is one word."""
    return _END.split(re.sub(r"`+[^`]*`+", "name", _LINK.sub(r"\1", paragraph)))


def long_sentences(text: str) -> list[str]:
    """Those with too many words."""
    found = (sentence for paragraph in paragraphs(text) for sentence in sentences(paragraph))
    return [each for each in found if sum(bool(re.search(r"\w", word)) for word in each.split()) > MOST_WORDS]


def docstrings(module: Path) -> list[str]:
    """The docstrings of a module, its classes and functions."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, documented)]
    return [text for node in nodes if (text := ast.get_docstring(node))]


def help_texts(command: click.Command, name: str = "sda") -> Iterator[tuple[str, str]]:
    """What the command line prints as help of commands and options, by their names."""
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        for part, each in command.commands.items():
            yield from help_texts(each, f"{name} {part}")


def test_a_long_sentence_is_found_and_code_tables_and_lists_are_left_out() -> None:
    long = " ".join(["word"] * (MOST_WORDS + 1))
    assert long_sentences(f"Short. {long}.\n\n- {long}\n\n| {long} |\n\n```\n{long}\n```\n\n    {long}") == [f"{long}."]
    assert long_sentences(" ".join(["word"] * MOST_WORDS) + ": [and more](of-it.md).") == []


def test_docstrings_have_short_sentences() -> None:
    found = {
        str(module.relative_to(ROOT)): [s for t in docstrings(module) for s in long_sentences(t)] for module in MODULES
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_docstrings_use_technical_verbs() -> None:
    found = {
        str(module.relative_to(ROOT)): list(filter(PERSONIFICATION.search, docstrings(module))) for module in MODULES
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


def test_product_text_names_no_requirement() -> None:
    found = {str(module.relative_to(ROOT)): REQUIREMENT.findall(module.read_text()) for module in MODULES}
    assert {name: ids for name, ids in found.items() if ids} == {}


def test_help_texts_have_short_sentences_and_technical_verbs() -> None:
    found = {name: text for name, text in help_texts(main) if long_sentences(text) or PERSONIFICATION.search(text)}
    assert found == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_short_sentences_and_technical_verbs(page: Path) -> None:
    text = page.read_text()
    assert long_sentences(text) == []
    prose = [paragraph for paragraph in paragraphs(text) if PERSONIFICATION.search(re.sub(r"`[^`]*`", "", paragraph))]
    assert prose == []

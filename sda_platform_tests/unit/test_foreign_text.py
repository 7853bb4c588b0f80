"""Text of others is shown and does nothing: on a terminal, and as Markdown by the judgement of another renderer."""

import ast
import csv
import io
import re
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
from markdown_it import MarkdownIt
from rich.table import Table as Grid

import sda_platform
from sda_platform.cli.people import PeopleConsole
from sda_platform.foreign_text import in_csv, in_markdown, in_message, is_plain, printable
from sda_platform.markdown_elements import bullets, picture
from sda_platform.orchestration.materialization import markdown_table
from sda_platform.orchestration.warning import warning
from sda_platform.plain_rows import write_csv
from sda_platform_tests.support.hostile import HOSTILE

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Elements that a table of plain text has.
_PLAIN_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
every_text = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())


@every_text
@pytest.mark.parametrize("as_cell", [True, False], ids=["cell", "line"])
def test_a_terminal_shows_it_and_obeys_none_of_it(text: str, as_cell: bool) -> None:
    console = PeopleConsole(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    grid = Grid("name")
    grid.add_row(text)
    console.print(grid if as_cell else text)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert not _CONTROLS.search(shown), repr(shown)
    first = printable(text).split("\n")[0]
    assert first in shown, "it is shown as it is, markup included"


@every_text
def test_markdown_shows_it_and_makes_nothing_of_it(text: str) -> None:
    page = markdown_table(pa.table({"object_name": [text], "norad_id": [5]}))
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(page)
    assert set(re.findall(r"<(\w+)", html)) == _PLAIN_TAGS, html
    assert html.count("<tr>") == 2 and html.count("<td>") == 2, html
    assert "javascript" not in re.sub(r"<td>.*?</td>", "", html, flags=re.DOTALL)
    for seen in (page, unescape(page)):  # some look for addresses in what the escapes stand for
        assert not re.search(r"\w://|www\.\w|\w@\w", seen), "no renderer makes a link of a bare address"


@every_text
def test_lists_and_captions_show_it_and_make_nothing_of_it(text: str) -> None:
    shown = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    listed = shown.render(bullets([text, f"elements/{text}: torn"]))
    assert set(re.findall(r"<(\w+)", listed)) == {"ul", "li"} and listed.count("<li>") == 2, listed
    pictured = shown.render(picture(b"png", f"Gabbard plot of {text}"))
    assert set(re.findall(r"<(\w+)", pictured)) == {"p", "img"}, pictured
    assert re.findall(r'src="([^"]*)"', pictured) == ["data:image/png;base64,cG5n"], pictured


def test_markdown_is_written_only_where_its_parts_are_escaped() -> None:
    """The type checker refuses other text at `in_ui`, through which all Markdown reaches Dagster's UI."""
    root = Path(sda_platform.__file__).parent
    made = {"Markdown\\(": {"foreign_text.py", "markdown_elements.py"}}
    made["MetadataValue\\.md\\(|MarkdownMetadataValue\\("] = {"orchestration/materialization.py"}
    for pattern, places in made.items():
        found = {str(each.relative_to(root)) for each in root.rglob("*.py") if re.search(pattern, each.read_text())}
        assert found == places


def test_the_descriptions_of_outcomes_are_escaped_everywhere() -> None:
    """Dagster's UI renders them as Markdown, links included; each is a text of ours, or goes through one function."""
    root = Path(sda_platform.__file__).parent
    outcomes = {"AssetCheckResult", "AssetCheckEvaluation", "AssetMaterialization", "AssetObservation"}
    found, raw = 0, []
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in outcomes:
                for stated in (each.value for each in node.keywords if each.arg == "description"):
                    found += 1
                    called = getattr(getattr(stated, "func", None), "id", "")
                    if not isinstance(stated, ast.Constant) and called != "outcome_text":
                        raw.append(f"{path.relative_to(root)}:{stated.lineno}")
    assert found > 10 and raw == []


@every_text
def test_the_description_of_an_outcome_shows_it_and_makes_nothing_of_it(text: str) -> None:
    shown = str(warning([f"the agent {text} is not registered"]).description)
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(shown)
    assert set(re.findall(r"<(\w+)", html)) == {"p"}, html


def test_what_is_harmless_stays_as_it_is() -> None:
    for name in ("ISS (ZARYA)", "COSMOS 2251 DEB", "ŞIRIUS-Ü 3", "北斗", "a\tb\nc"):
        assert printable(name) == name
    assert in_markdown("COSMOS 2251 DEB") == "COSMOS 2251 DEB"


def test_replacing_keeps_the_number_of_characters() -> None:
    for text in HOSTILE.values():
        assert len(printable(text)) == len(text)


def test_a_name_may_have_no_control_character_or_line_break() -> None:
    assert is_plain("ISS (ZARYA) [x] ü")
    refused = {what for what, text in HOSTILE.items() if not is_plain(text)}
    assert refused >= {"window title", "null", "right to left", "line separator", "table", "eight-bit escape"}


@every_text
def test_csv_shows_it_and_a_spreadsheet_executes_none_of_it(text: str) -> None:
    out = io.StringIO(newline="")
    write_csv([{"object_name": text, "pc": -1e-5, "number": "-5.2e3"}], out)
    shown = out.getvalue()
    assert not _CONTROLS.search(shown), repr(shown)
    ((name, pc, number),) = list(csv.reader(io.StringIO(shown)))[1:]
    assert not name.lstrip().startswith(("=", "+", "-", "@")), name
    assert name.replace("'", "") == printable(text).replace("'", "") and (pc, number) == ("-1e-05", "-5.2e3")


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1", "\t=1", "\n=1", "\uff1d1", "-", "-5 DEG"])
def test_what_begins_as_a_formula_is_quoted(text: str) -> None:
    assert in_csv(text) == f"'{text}"


@pytest.mark.parametrize("text", ["SAT;=1+1", "SAT; @SUM(A1)", "a\n=1", "a\t+1", ";=1", "a;\n=1", "a;-1;-2"])
def test_no_cell_of_a_table_that_is_separated_otherwise_is_a_formula(text: str) -> None:
    for cell in re.split(r"[;\t\n]", in_csv(text)):
        assert not cell.strip().startswith(("=", "+", "-", "@")), in_csv(text)
    assert in_csv("a;b = c; d") == "a;b = c; d"


@pytest.mark.parametrize(
    "text",
    ["@everyone", "<@123>", "<!channel>", "[ack](//evil.example)", "[ack](www.a.example)", "see http://a.example"],
)
def test_a_message_calls_nobody_and_links_nowhere(text: str) -> None:
    shown = in_message(f"{text}\nred")
    assert not re.search(r"@\w|<[@!]|\]\(|\w://|www\.\w", shown), shown
    assert shown.replace("\u2060", "") == f"{text} red"
    assert in_message("ISS (ZARYA) 5:30 a/b") == "ISS (ZARYA) 5:30 a/b"


def test_rows_are_written_as_csv_only_where_cells_are_escaped() -> None:
    root = Path(sda_platform.__file__).parent
    writes = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"csv\.writer|DictWriter|to_csv\(", path.read_text())
    }
    assert writes == {"plain_rows.py", "serving/spacetrack.py"}
    assert all("in_csv(" in (root / name).read_text() for name in writes)


def test_every_terminal_of_the_product_is_one_that_shows_text_as_it_is() -> None:
    """A plain console would read markup, emoji and control characters in names."""
    root = Path(sda_platform.__file__).parent
    makes = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"(?<!People)Console\(|from_markup|rich\.markup|from_ansi", path.read_text())
    }
    assert makes == set()

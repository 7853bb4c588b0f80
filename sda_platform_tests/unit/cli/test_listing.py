"""Lists: one renderer gives a table, JSON and CSV, whole or up to a limit."""

import csv
import errno
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.cli.grammar import Commands
from sda_platform.cli.listing import ListedColumn, Output, grid, number, word, words
from sda_platform.cli.main import main
from sda_platform.cli.people import PeopleConsole
from sda_platform.foreign_text import printable
from sda_platform.registry import TABLES
from sda_platform_tests.support.delta_tables import commit, lake_at


@dataclass(frozen=True)
class Orbit:
    """A row with a value of each kind that JSON does not have."""

    name: str
    payload: bytes = b"\x01\xff"
    miss_km: float = float("nan")
    parts: tuple[int, ...] = (1, 2)


ROWS = [Orbit("a, b"), Orbit('"c"'), Orbit("d\x1b[31m")]
COLUMNS = (word("object", "name"), number("parts", lambda row: f"{len(row.parts):,}"))


def test_json_and_csv_have_every_field_of_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Output("json").show(ROWS, COLUMNS)
    found = json.loads(capsys.readouterr().out)
    assert found[0] == {"name": "a, b", "payload": "01ff", "miss_km": None, "parts": [1, 2]}
    Output("csv").show(ROWS, COLUMNS)
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in read] == [printable(row.name) for row in ROWS]
    assert {**read[1], "name": ""} == {"name": "", "payload": "01ff", "miss_km": "", "parts": "[1, 2]"}


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_cuts_no_number_and_no_word_at_any_width__U14(width: int) -> None:
    row = {f"column_{n}": 10_000_000 + n for n in range(5)} | {
        "name": "A LONG NAME OF AN OBJECT",
        "id": "3e8c7a11-86a4",
    }
    console = PeopleConsole(width=width, file=io.StringIO(), record=True)
    console.print(grid([ListedColumn(name, name) for name in row], [row, row], "what it is"))
    text = console.export_text()
    assert all(text.count(str(10_000_000 + n)) == 2 and f"column_{n}" in text for n in range(5))
    assert text.count("3e8c7a11-86a4") == 2 and "…" not in text and "what it is" in text
    assert max(map(len, text.splitlines())) <= width


def test_a_sentence_is_never_a_column_of_single_words() -> None:
    """As the reason of a run was at 80 columns: then each field of a row is a line."""
    facts = [f"fact-{number}-of-the-run" for number in range(4)]
    columns = [*(word(name, name) for name in facts), words("reason", "reason")]
    rows = [
        {
            **dict.fromkeys(facts, "a-value-of-some-length"),
            "reason": "its worker was killed by the machine, which had no memory left",
        }
    ]
    console = PeopleConsole(width=100, file=io.StringIO(), record=True)
    console.print(grid(columns, rows))
    assert "its worker was killed by" in console.export_text()


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_the_home_may_be_given_in_any_place(tmp_path: Path, place: int) -> None:
    commit(lake_at(tmp_path / "lake"), ELEMENT_SETS, [{"record_number": 0}])
    for home in (["--home", str(tmp_path)], [f"--home={tmp_path}"]):
        asked = ["lake", "status", "--json"]
        listed = CliRunner().invoke(main, [*asked[:place], *home, *asked[place:]])
        assert {row["table"]: row["rows"] for row in json.loads(listed.stdout)}[ELEMENT_SETS.name] == 1


@pytest.mark.parametrize("before", [[], ["status"], ["alert", "list"], ["catalog", "show", "ISS"]])
def test_a_home_without_its_value_is_refused(before: list[str]) -> None:
    refused = CliRunner().invoke(main, [*before, "--home"])
    assert (refused.exit_code, "Option '--home' requires an argument" in refused.output) == (2, True)


@pytest.mark.parametrize(("form", "lines"), [("json", 2), ("csv", 3)])
def test_a_limit_counts_in_every_form(form: str, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    Output(form, limit=2).show(ROWS, COLUMNS)
    text = capsys.readouterr().out
    assert len(json.loads(text) if form == "json" else text.splitlines()) == lines


def test_a_table_of_people_states_what_is_left_out_and_shows_control_characters(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, ELEMENT_SETS, [{"record_number": n, "object_name": "d\x1b[31m"} for n in range(3)])
    asked = ["--home", str(tmp_path), "query", "SELECT record_number, object_name FROM element_sets ORDER BY 1"]
    text = CliRunner().invoke(main, [*asked, "--limit", "2"]).stdout
    assert "2 rows; --limit shows more" in text and "\x1b" not in text and "as of" in text
    written = CliRunner().invoke(main, [*asked, "--format", "csv"]).stdout
    assert [row["record_number"] for row in csv.DictReader(io.StringIO(written))] == ["0", "1", "2"]
    empty = CliRunner().invoke(main, [*asked[:-1], "SELECT 1 AS n WHERE false", "--format", "csv"])
    assert (empty.exit_code, empty.stdout) == (0, "n\n")


def test_the_state_of_the_tables_is_a_list(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, ELEMENT_SETS, [{"record_number": 0}])
    listed = CliRunner().invoke(main, ["--home", str(tmp_path), "lake", "status", "--json"])
    rows = {row["table"]: row["rows"] for row in json.loads(listed.stdout)}
    assert rows == {table.name: int(table == ELEMENT_SETS) for table in TABLES}


def test_a_pipe_that_nobody_reads_is_no_error_message() -> None:
    group = Commands(name="sda")

    @group.command()
    def ended() -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    result = CliRunner().invoke(group, ["ended"])
    assert (result.exit_code, result.output) == (1, "")

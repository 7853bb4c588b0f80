"""A user's mistake, with every command: one message, one exit code, no traceback, and nothing made."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.grammar import RENAMED
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform_tests.support.segments import START_NS

NO_HOME_NEEDED = {"alert evidence-key", "alert verify-evidence", "catalog site-key", "channel add",
                  "connect celestrak", "connect space-track", "convert",
                  "land", "pc", "screen", "simulate", "up", "demo", "service", "collector run",
                  "collector status", "collector feed", "catalog serve", "catalog put", "ground issue",
                  "ground commander-key", "ground leases", "ground station", "ground uplink", "ground fleet admit",
                  "ground fleet remove", "ground fleet report", "ground state replicas", "ground state put",
                  "ground state get",
                  "ground state promote", "lake restore", "restore", "sensor add", "sensor close", "user"}  # fmt: skip
"""Commands that begin a home, or answer without one."""
NO_HOME_READ = {
    "alert evidence-key",
    "alert verify-evidence",
    "catalog site-key",
    "convert",
    "ground commander-key",
    "ground leases",
    "ground station",
    "ground uplink",
    "ground fleet report",
    "pc",
    "screen",
    "simulate",
    "user",
}
"""Commands that read no home, or run until they are interrupted, and report what fails meanwhile."""
VALUES = {
    "kind": "SAFE_MODE",
    "start": "2024-11-01",
    "table": "tracks",
    "to": "tle",
    "source_id": "radar-1",
    "station": "a",
    "until": "+3d",
    "url": "http://127.0.0.1:9",
}


def commands(group: click.Group = main, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its name without `sda`."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands())
LISTS = sorted(
    {name for name, each in COMMANDS.items() if "form" in {parameter.name for parameter in each.params}}
    - {"query", "lake sql", "lake replay"}
)
"""Commands that list rows, but for those that start an engine."""


def arguments(name: str, place: Path) -> list[str]:
    """The command with a value for each parameter that it requires."""
    given = name.split()
    for each in COMMANDS[name].params:
        if each.required:
            given += [each.opts[0]] if isinstance(each, click.Option) else []
            given.append(value(each, place))
    return given


def value(parameter: click.Parameter, place: Path) -> str:
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    if isinstance(kind, click.Path):
        return str(place if not kind.file_okay else place / "file")
    return "5" if isinstance(kind, (click.IntRange, click.FloatRange)) else VALUES.get(str(parameter.name), "x")


def run(home: Path, arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *arguments])


def is_one_message(answer: Result) -> bool:
    """Whether it is an error in one line, after the usage where the use was wrong."""
    *_, last = answer.stderr.strip().splitlines() or [""]
    assert isinstance(answer.exception, SystemExit), answer.exception
    return last.startswith("Error: ") and answer.stderr.count("Error: ") == 1 and "Traceback" not in answer.output


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_does_not_exist_is_a_wrong_use(name: str, tmp_path: Path) -> None:
    answer = run(tmp_path, [*name.split(), "--nonsense"])
    assert (answer.exit_code, is_one_message(answer)) == (2, True)
    assert "No such option '--nonsense'" in answer.stderr


@pytest.mark.parametrize("variable", ["SDA_STATION_STATE", "SDA_ETCD", "SDA_SCREENING_HORIZON_H", "SDA_SERVING_PORT"])
def test_a_setting_that_is_refused_is_named_without_its_value(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, '"postgresql://station:s3cr3t@db/state"')
    answer = CliRunner().invoke(main, ["status"])
    assert (answer.exit_code, variable in answer.stderr, "s3cr3t" in answer.output) == (1, True, False), answer.output


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NO_HOME_NEEDED))
def test_a_home_that_is_none_is_refused_and_nothing_is_made_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = run(tmp_path / "typo", arguments(name, tmp_path))
    assert (answer.exit_code, is_one_message(answer)) == (1, True), answer.output
    assert f"{tmp_path}/typo is no home of a platform: give one by --home or SDA_HOME" in answer.stderr
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NO_HOME_READ))
def test_a_file_in_the_place_of_the_home_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    answer = run(tmp_path / "file", arguments(name, tmp_path))
    assert (answer.exit_code, is_one_message(answer)) == (1, True), answer.output


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", LISTS)
def test_a_list_without_rows_prints_json_and_no_sentence(name: str, tmp_path: Path) -> None:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    (tmp_path / "file").touch()
    answer = run(tmp_path, [*arguments(name, tmp_path), "--json"])
    assert answer.stdout == "" if answer.exit_code else is_json(answer.stdout), answer.output


def test_an_audit_prints_json_alone_and_an_empty_audit_log_says_so(tmp_path: Path) -> None:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    answer = run(tmp_path, ["lake", "audit", "lineage", "--json"])
    assert is_json(answer.stdout), answer.stdout
    other = tmp_path / "other"
    MissionClock(START_NS, 0, 0.0).save(other)
    assert run(other, ["lake", "audit", "--history"]).stdout == "no event was recorded\n"
    assert run(other, ["lake", "audit", "--history", "--json"]).stdout == ""


@pytest.mark.parametrize("verb", ["show", "trace", "ack", "cdm"])
def test_a_revision_is_refused_where_the_whole_alert_is_meant(verb: str, tmp_path: Path) -> None:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    answer = run(tmp_path, ["alert", verb, "3f2a@1"])
    assert (answer.exit_code, is_one_message(answer)) == (1, True), answer.output
    assert "names a revision" in answer.stderr and "`sda alert explain 3f2a@1`" in answer.stderr


def test_an_earlier_name_runs_the_command_and_prints_its_new_name(tmp_path: Path) -> None:
    for old, given, words in (("retention untag", [], "Missing argument 'NAME'"), ("alerts", ["--limit", "0"], "0 is")):
        answer = run(tmp_path, [*old.split(), *given])
        assert answer.stderr.splitlines()[0] == f"`sda {old}` is now `sda {RENAMED[old]}`"
        assert words in answer.stderr and answer.stdout == ""


def test_every_earlier_name_leads_to_a_command_and_is_none_any_more() -> None:
    assert set(RENAMED.values()) <= COMMANDS.keys()
    assert RENAMED.keys() & {*COMMANDS, *main.commands} == set()
    listed = CliRunner().invoke(main, ["--help"]).output
    assert "\n  alert " in listed and not [old for old in RENAMED if f"\n  {old} " in listed]


def test_lists_have_the_same_options_everywhere() -> None:
    """`--format`, `--json` and `--limit` have one meaning; a list has the first two."""
    helps: dict[str, set[str | None]] = {"--limit": set(), "--json": set()}
    for command in COMMANDS.values():
        options = {each.opts[0]: each for each in command.params if isinstance(each, click.Option)}
        for name in helps.keys() & options.keys():
            helps[name].add(options[name].help)
        if "form" in {each.name for each in options.values()}:
            assert "--json" in options
    assert helps["--json"] == {"Print JSON.", "The same as --format json."}
    assert {text and text.partition(" (default")[0] for text in helps["--limit"]} == {"Most rows"}

"""`sda sensor add` and `close`: whole after an interruption, and nothing where something is refused."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.edge.config import load_config
from sda_platform.formats.closures import listed_closures
from sda_platform.orbits.sensing.sensors import sensor_network
from sda_platform.units import HOUR_NS

SITE = ("latitude_deg=28.3", "longitude_deg=-16.5", "altitude_m=2390")
SOURCES = '# of the night shift\n[sources.radar-90]   # north\nkind = "radar"\nbind = "127.0.0.1:7009"\n'


def add(home: Path, name: str, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["--home", str(home), "sensor", "add", name, *SITE, "--like", "radar-1", *arguments]
    )


def test_a_sensor_and_its_source_are_added_and_an_interrupted_command_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "collect.toml").write_text(SOURCES)
    for _ in range(2):
        answer = add(tmp_path, "radar-31", "--source", "127.0.0.1:7031")
        assert answer.exit_code == 0, answer.output
        assert "radar-31" in sensor_network(tmp_path / "sensors.csv")
        assert {*load_config(tmp_path / "collect.toml").sources} == {"radar-90", "radar-31"}
        assert (tmp_path / "collect.toml").read_text().startswith(SOURCES)
        (tmp_path / "sensors.csv").unlink()  # as if the command had been killed between the two files


@pytest.mark.parametrize(
    ("name", "place", "reason"),
    [
        ("radar-31", "nowhere", "is no address"),
        ("radar-90", "127.0.0.1:7031", "there is a source 'radar-90' already"),
        ("radar-1", "127.0.0.1:7031", "lists radar-1 already"),
    ],
)
def test_what_is_refused_adds_neither(tmp_path: Path, name: str, place: str, reason: str) -> None:
    (tmp_path / "collect.toml").write_text(SOURCES)
    answer = add(tmp_path, name, "--source", place)
    assert (answer.exit_code, reason in answer.stderr) == (1, True), answer.output
    assert [path.name for path in tmp_path.iterdir()] == ["collect.toml"]
    assert (tmp_path / "collect.toml").read_text() == SOURCES


def test_a_list_that_is_a_link_stays_one(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared.csv"
    home.mkdir()
    assert add(home, "radar-31").exit_code == 0
    (home / "sensors.csv").rename(shared)
    (home / "sensors.csv").symlink_to(shared)
    assert add(home, "radar-32").exit_code == 0
    assert (home / "sensors.csv").is_symlink() and "radar-32" in sensor_network(shared)


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0c"])
def test_a_list_stays_one_whatever_marks_of_lines_a_name_has(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "sensors.csv"
    assert add(tmp_path, "radar-31").exit_code == 0
    path.write_text(path.read_text().replace("radar-31,radar,radar-31", f"radar-31,radar,two{mark}names"))
    assert mark in path.read_text()
    assert add(tmp_path, "radar-32").exit_code == 0
    assert {"radar-31", "radar-32"} <= {*sensor_network(path)}


def close(home: Path, name: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "sensor", "close", name, *arguments])


def test_closures_are_added_to_those_that_people_wrote(tmp_path: Path) -> None:
    (tmp_path / "closures.csv").write_text("source_id,start,end,reason\nradar-2,2026-01-01,2026-01-02,x", "utf-8-sig")
    first = ("--start", "2026-05-01T12:00Z", "--until", "2026-05-03", "--reason", "=clouds, and wind")
    assert close(tmp_path, "radar-1", *first).exit_code == 0
    assert close(tmp_path, "radar-1", "--until", "+3d").exit_code == 0
    mine, _, theirs = listed_closures(str(tmp_path / "closures.csv"))
    assert (mine.end_ns - mine.start_ns, theirs.source_id) == (36 * HOUR_NS, "radar-2")
    assert mine.reason.endswith("=clouds, and wind") and mine.reason[0] != "="
    twice = close(tmp_path, "radar-1", *first)
    assert (twice.exit_code, "is closed already, from 2026-05-01T12:00:00Z" in twice.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("radar-77", "--until", "+3d"), "'radar-77' is no sensor"),
        (("radar-1", "--until", "-1h"), "'-1h' is not after the start"),
        (("radar-1", "--until", "soon"), "is no ISO 8601 instant"),
        (("radar-1", "--until", "+1h", "--reason", "two\nlines"), "a reason is one line of text"),
    ],
)
def test_a_closure_that_cannot_be_is_refused_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    answer = close(tmp_path, *arguments)
    assert (answer.exit_code, reason in answer.stderr) == (2, True), answer.output
    assert not [*tmp_path.iterdir()]

"""`sda alert list`: in which order, what is never cut, how current the list is, and where there is none."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.cli.alert.current import CurrentAlert, alert_grid, currency_lines, current_alerts
from sda_platform.cli.main import main
from sda_platform.cli.people import PeopleConsole
from sda_platform.clock import MissionClock
from sda_platform.conjunction.currency import Currency, words_of
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SCREENED_FROM,
    SCREENED_UPTO,
)
from sda_platform.console.conjunctions import csv_of
from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.subscriber import AlertEntry
from sda_platform.observability.vitals.faults import Fault, Side, red
from sda_platform.observability.vitals.history import VitalHistory, store
from sda_platform.runtime.platform_home import take_lock
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import after


def delivered(home: Path, *alerts: dict[str, Any]) -> Settings:
    """A home whose subscriber holds these alerts."""
    settings = Settings(home=home)
    lake_at(home / "lake")
    (home / "lake").mkdir(parents=True, exist_ok=True)
    known = {"object_name_1": "A", "object_name_2": "B", "norad_id_1": 1, "norad_id_2": 2, "miss_distance_km": 0.5,
             "relative_speed_km_s": 10.0, "track_id_1": None, "track_id_2": None}  # fmt: skip
    entries = [
        AlertEntry(a["event_id"], 0, "insert", json.dumps({**known, "tca_time_ns": after(3600), **a})) for a in alerts
    ]
    chosen_subscriber(settings.subscriber, settings.home).apply("a-batch", entries)
    return settings


def alert(name: str, risk: str, pc: float, hours: float = 1.0) -> dict[str, Any]:
    return {"event_id": name, "risk": risk, "collision_probability": pc, "tca_time_ns": after(hours * 3600)}


def printed(alerts: list[CurrentAlert], width: int, limit: int = 40) -> str:
    console = PeopleConsole(width=width, file=io.StringIO(), record=True)
    console.print(alert_grid(alerts, limit))
    return console.export_text()


def test_a_level_that_does_not_follow_from_our_pc_names_its_rule(tmp_path: Path) -> None:
    rules = {"likely": "probability", "wide": "dilution", "told": "stated_by_other"}
    settings = delivered(tmp_path, *({**alert(name, "red", 2e-4), "rule": rule} for name, rule in rules.items()))
    text = printed(current_alerts(settings), 120)
    assert text.count("rule: ") == 2 and "rule: dilution" in text and "rule: stated_by_other" in text


def test_alerts_are_listed_by_level_then_pc_then_tca(tmp_path: Path) -> None:
    settings = delivered(
        tmp_path,
        alert("of-small-pc", "red", 3e-6),
        *(alert(f"yellow-{n}", "yellow", 2e-5, hours=9 - n) for n in range(3)),
        alert("likely", "yellow", 9e-5),
        alert("worst", "red", 4e-4),
    )
    found = [each.event_id for each in current_alerts(settings)]
    assert found == ["worst", "of-small-pc", "likely", "yellow-2", "yellow-1", "yellow-0"]


LISTED = [
    {**alert("iss-red", "red", 4e-4, hours=30), "norad_id_1": 25544, "object_name_1": "ISS (ZARYA)"},
    {**alert("grace-red", "red", 2e-4, hours=50), "norad_id_1": 43476, "object_name_1": "GRACE-FO 1"},
    {**alert("iss-near", "yellow", 1e-5, hours=3), "norad_id_1": 25544, "object_name_1": "ISS (ZARYA)"},
    {**alert("debris", "yellow", 2e-5, hours=90), "norad_id_2": 43477, "miss_distance_km": 0.1},
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["iss-red", "grace-red", "debris", "iss-near"]),
        (["--level", "yellow"], ["debris", "iss-near"]),
        (["--level", "yellow", "--level", "red", "--within", "2d"], ["iss-red", "iss-near"]),
        (["--satellite", "25544", "--sort", "tca"], ["iss-near", "iss-red"]),
        (["--satellite", "grace"], ["grace-red"]),
        (["--satellite", "2554"], []),
        (["--operator", "aurora"], ["grace-red", "debris"]),
        (["--within", "180min"], []),
        (["--within", "181min"], ["iss-near"]),
        (["--sort", "miss"], ["debris", "iss-red", "grace-red", "iss-near"]),
        (["--sort", "tca", "--limit", "1"], ["iss-near", "iss-red", "grace-red"]),
    ],
)
def test_alerts_are_selected_and_sorted_and_a_limit_cuts_no_red_one__U15(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: list[str]
) -> None:
    delivered(tmp_path, *LISTED)
    MissionClock(after(0), 0, 0.0).save(tmp_path)
    (tmp_path / "fleet.csv").write_text(
        "norad_id,name,operator\n43476,GRACE,Aurora\n43477,GRACE 2,Aurora\n25544,ISS,NASA\n"
    )
    monkeypatch.setenv("SDA_FLEET", str(tmp_path / "fleet.csv"))
    asked = ["--home", str(tmp_path), "alert", "list", *options]
    found = [row["event_id"] for row in json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)]
    assert found == expected
    written = CliRunner().invoke(main, [*asked, "--csv"]).stdout.splitlines()
    assert [line.split(",")[0] for line in written[1:]] == expected
    assert written[0] == csv_of((), 0).strip("\ufeff\n"), "the columns are those of the console's CSV"
    table = CliRunner().invoke(main, asked).stdout
    assert "of 4 active alerts" in table if len(expected) < 4 and "--limit" not in options else "4 active" in table


def test_a_row_has_the_figures_of_one_assessment(tmp_path: Path) -> None:
    """A later assessment has changed no alert: the row had its components beside the alert's own miss distance."""
    stated = {"miss_distance_km": 3.0004, "radial_miss_km": 1.0, "in_track_miss_km": 2.0, "cross_track_miss_km": 2.0}
    later = {"miss_distance_km": 0.3, "radial_miss_km": 0.1, "in_track_miss_km": 0.2, "cross_track_miss_km": 0.2}
    sources = ("fused_track", "element_set")
    events = [
        {
            "event_id": "e",
            "norad_id_1": 1,
            "norad_id_2": 2,
            "sequence": n,
            "op": "insert",
            "state_source_1": source,
            **miss,
        }
        for n, (source, miss) in enumerate(zip(sources, (stated, later), strict=True))
    ]
    settings = delivered(tmp_path, {**alert("e", "red", 2e-4), "miss_distance_km": 3.0})
    stated["miss_distance_km"] = 3.0
    commit(lake_at(tmp_path / "lake"), CONJUNCTION_ASSESSMENTS, events)
    MissionClock(after(0), 0, 0.0).save(tmp_path)
    (found,) = current_alerts(settings, with_origins=True)
    assert found.state_source_1 == "fused_track"
    written = CliRunner().invoke(main, ["--home", str(tmp_path), "alert", "list", "--csv"]).stdout.splitlines()
    (row,) = csv.DictReader(written)
    assert {name: float(row[name]) for name in stated} == stated
    assert row["state_source_1"] == "fused_track"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--operator", "nobody"], "no satellite of the fleet has the operator 'nobody'; there are: "),
        (["--within", "3"], "'3' is no span of time, such as 3d, 12h, 90min or 30s"),
        (["--level", "green"], "'green' is not one of 'red', 'yellow'"),
    ],
)
def test_a_selection_that_nothing_can_match_is_no_all_clear(tmp_path: Path, options: list[str], reason: str) -> None:
    delivered(tmp_path, *LISTED)
    result = CliRunner().invoke(main, ["--home", str(tmp_path), "alert", "list", *options])
    assert result.exit_code == 2 and reason in " ".join(result.output.split())


@pytest.mark.parametrize("at_subscriber", [[], ["red", "yellow"], ["yellow"]])
def test_what_the_subscriber_lacks_is_stated(tmp_path: Path, at_subscriber: list[str]) -> None:
    settings = delivered(tmp_path, *(alert(name, name, 1e-4) for name in at_subscriber))
    rows = [
        {**alert(name, level, 1e-4), "op": "insert", "sequence": 0, "status": status}
        for name, level, status in (("red", "red", "new"), ("yellow", "yellow", "new"), ("past", "red", "closed"))
    ]
    commit(lake_at(tmp_path / "lake"), CONJUNCTION_ALERTS, rows)
    (stated,) = [line for line in currency_lines(settings) if line.startswith("not in the list: ")] or [""]
    lacking = {"red", "yellow"} - set(at_subscriber)
    expected = f"not in the list: {len(lacking)} active alerts of the lake, {int('red' in lacking)} of them red, "
    assert stated.startswith(expected) if lacking else not stated


def test_the_list_states_the_faults_of_the_platform_that_runs_without_control_characters(tmp_path: Path) -> None:
    delivered(tmp_path, alert("a", "red", 2e-4))
    faults = [Fault("a-zone", Side.SOURCES, "unknown feed \x07\x9b31m")]
    store(tmp_path, VitalHistory().after([red("no_orphans_wait", faults)], 1.0))
    asked = ["--home", str(tmp_path), "alert", "list"]
    assert "fault: " not in CliRunner().invoke(main, asked).output, "of a platform that ended"
    with take_lock(tmp_path):
        text = CliRunner().invoke(main, asked).output
    assert "fault: no_orphans_wait (sources): unknown feed" in text
    assert not set("\x07\x9b") & set(text)


def test_a_list_never_cuts_a_red_alert(tmp_path: Path) -> None:
    reds = [alert(f"red-{n:03}", "red", 1e-6) for n in range(45)]
    found = current_alerts(delivered(tmp_path, *reds, *(alert(f"yellow-{n}", "yellow", 2e-5) for n in range(45))))
    text = printed(found, 120, limit=3)
    assert all(f"red-{n:03}" in text for n in range(45)) and "yellow-" not in text
    assert "90 active alerts, 45 of them shown (--limit)" in text


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_of_the_list_is_cut_and_names_wrap(tmp_path: Path, width: int) -> None:
    (found,) = current_alerts(delivered(tmp_path, alert("3e8c7a11", "yellow", 5.4e-5)))
    long = replace(
        found, object_name_1="A LONG NAME OF AN OBJECT", object_name_2="[/b]another[bold]", acknowledged_by="ann"
    )
    text = printed([long], width)
    for word in ("3e8c7a11", "11-01 01:00:00", "0.500", "5.4e-05", "0/2", "ann"):
        assert word in text, word
    assert "[/b]another[bold]" in text and {"A", "LONG", "NAME", "OF", "AN", "OBJECT"} <= {*text.split()}
    assert max(map(len, text.splitlines())) <= width


def test_the_list_states_what_it_rests_on_and_that_the_platform_is_stopped(tmp_path: Path) -> None:
    settings = delivered(tmp_path, alert("a", "red", 1e-4))
    MissionClock(after(7200), 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    (line, stopped) = currency_lines(settings)
    assert "nothing was screened yet; no object in the catalogue" in line
    assert "the platform does not run: no alert; `sda up` starts it" in stopped
    commit(lake, ORBITAL_CATALOG, [{"norad_id": n, "epoch_time_ns": after(-86_400 * n)} for n in (1, 2, 9)])
    commit(lake, CONJUNCTION_CANDIDATES, [], watermarks={SCREENED_FROM: after(3600), SCREENED_UPTO: after(86_400)})
    line, _ = currency_lines(settings)
    assert line == (
        "as of 2024-11-01T02:00:00Z: all objects screened 1.0 h ago, up to 2024-11-02T00:00Z; "
        "element sets of 3 objects, 2.1 d old in the median, 9.1 d at most"
    )
    assert "which has passed" in str(replace(Currency.of(lake), now_ns=after(86_400)))


@pytest.mark.parametrize(
    ("stated", "levels", "risk", "words"),
    [
        (1.2e-3, {}, None, "reports Pc 1.2e-03 (red) of A (1) and B (2), TCA 2024-11-01T01:00:00.000Z; our screening"),
        (2e-5, {}, None, "Pc 2.0e-05 (yellow)"),
        (1e-6, {}, None, ""),
        (1.2e-3, {"collision_probability": 5e-5}, None, "our Pc is 5.0e-05, no alert (one)"),
        (1.2e-3, {"collision_probability": 5e-5}, "yellow", "our Pc is 5.0e-05, the alert is yellow (one)"),
        (1.2e-3, {"collision_probability": 5e-4}, "red", ""),
        (2e-5, {"collision_probability": 5e-4}, "red", ""),
    ],
)
def test_what_others_state_at_the_level_of_an_alert_is_never_missing_from_the_list__U7(
    tmp_path: Path, stated: float, levels: dict[str, float], risk: str | None, words: str
) -> None:
    settings = delivered(tmp_path)
    MissionClock(after(60), 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    pair = {"norad_id_1": 1, "norad_id_2": 2, "tca_time_ns": after(3600)}
    names = {"object_name_1": "A", "object_name_2": "B", "originator": "18 SDS", "record_number": 0}
    commit(lake, RECEIVED_CDMS, [{**pair, **names, "stated_probability": stated, "received_time_ns": after(0)}])
    ours = {"event_id": "one", "sequence": 0, "op": "insert", **pair}
    if levels:
        commit(lake, CONJUNCTION_ASSESSMENTS, [{**ours, **levels}])
    if risk:
        commit(lake, CONJUNCTION_ALERTS, [{**ours, "risk": risk}])
    found = [line for line in currency_lines(settings) if line.startswith("not among the alerts: ")]
    assert len(found) == bool(words)
    assert words in "".join(found)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (90, "2 min"), (3600, "1.0 h"), (172_800, "2.0 d")]
)
def test_a_span_of_time_is_stated_in_one_unit(seconds: float, words: str) -> None:
    assert words_of(seconds) == words


def test_json_stays_a_list_and_the_state_of_the_list_goes_to_the_standard_error(tmp_path: Path) -> None:
    delivered(tmp_path, alert("a", "red", 1e-4))
    result = CliRunner().invoke(main, ["--home", str(tmp_path), "alert", "list", "--json"])
    assert [each["event_id"] for each in json.loads(result.stdout)] == ["a"]
    assert "nothing was screened yet" in result.stderr and "does not run" in result.stderr

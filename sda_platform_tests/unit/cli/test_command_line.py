"""The command line: what it prints, and that a user's mistake ends in one line instead of a traceback."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.catalog.tables import ELEMENT_SETS
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock, parse_instant_ns, parse_iso_ns
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry
from sda_platform.formats.registry import ZONES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.manifest import TableWindow
from sda_platform.published import CATALOGUE, publish
from sda_platform.registry import TABLES
from sda_platform.retention_settings import RetentionSettings
from sda_platform.runtime.platform_home import take_lock, take_locks, write_state
from sda_platform.runtime.services import Addresses
from sda_platform.settings import Settings
from sda_platform_tests.support.delta_tables import commit, commit_file, lake_at
from sda_platform_tests.support.sample_inputs import SAMPLES
from sda_platform_tests.support.segments import START_NS, after


def sda(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *arguments])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS + 60_000_000_000, 0, 0.0).save(tmp_path)
    return tmp_path


def test_status_shows_every_table_and_zone_of_an_empty_platform(home: Path) -> None:
    answer = sda(home, "status", "--json")
    found = json.loads(answer.output)
    assert [t["table"] for t in found["tables"]] == [t.name for t in TABLES]
    assert {t["version"] for t in found["tables"]} == {-1}
    assert {z["zone"] for z in found["zones"]} == set(ZONES)


@pytest.mark.parametrize(
    ("processes", "words"),
    [(["engine", "code-server"], "standing by for another site"), (["engine", "webserver"], "UI at http://it")],
)
def test_status_says_whether_a_platform_works_or_waits(home: Path, processes: list[str], words: str) -> None:
    facts = {"pid": os.getpid(), "restarts": 0, "is_exhausted": False, "log": ""}
    state = {"processes": dict.fromkeys(processes, facts)}
    with take_lock(home):
        assert "starting" in sda(home, "status").output, "before its first process"
        write_state(home, {**state, "addresses": asdict(Addresses("http://it", "unix:it", "sc://127.0.0.1:1"))})
        assert words in sda(home, "status").output


def test_a_landed_ephemeris_has_a_command_that_asks_what_became_of_it(home: Path) -> None:
    for name, words in (
        ("FIRST", "once `sda up` serves the catalogue, GET /ephemerides/"),
        ("SECOND", "curl http://127.0.0.1:3100/ephemerides/"),
    ):
        plan = home / f"{name}.oem"
        plan.write_bytes(SAMPLES["oem-kvn"].replace(b"OPS", name.encode()))
        assert words in " ".join(sda(home, "land", str(plan)).output.split())
        publish(home, CATALOGUE, "127.0.0.1:3100")


def test_retention_is_that_of_the_platform_that_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_EVIDENCE_DAYS", "111")
    assert "settings of this command: no platform runs" in (shown := sda(home, "lake", "retention").output)
    assert "111 days" in shown
    running = {**RetentionSettings(evidence_days=444).model_dump(), "of_another_release": 1}
    with take_lock(home):
        assert "settings of this command" in sda(home, "lake", "retention").output, "before its first process"
        write_state(home, {"retention": running})
        assert "settings of the platform that runs" in (shown := sda(home, "lake", "retention").output)
        assert ("444 days" in shown, "111 days" in shown) == (True, False)


def test_status_counts_rows_age_backlog_and_names_orphans(home: Path) -> None:
    lake = lake_at(home / "lake")
    commit(lake, ELEMENT_SETS, [{"record_number": 0}, {"record_number": 1}])
    commit(lake, CONJUNCTION_ASSESSMENTS)
    commit(lake, CONJUNCTION_ASSESSMENTS)
    commit(lake, CONJUNCTION_ALERTS, windows=[TableWindow("conjunction_assessments", 0, 1, -1, 0)])
    (home / "landing" / "lidar").mkdir(parents=True)
    found = json.loads(sda(home, "status", "--json").output)
    tables = {t["table"]: t for t in found["tables"]}
    assert (tables["element_sets"]["rows"], tables["element_sets"]["age_s"]) == (2, 60.0)
    assert tables["conjunction_alerts"]["backlog"] == 1
    vitals = {vital["vital"]: vital for vital in found["vitals"]}
    assert "unknown feed 'lidar'" in vitals["no_orphans_wait"]["text"]
    assert (vitals["no_orphans_wait"]["side"], vitals["daemon_beats"]["state"]) == ("sources", "unknown")
    shown = " ".join(sda(home, "status").output.split())
    assert "unknown feed 'lidar'" in shown and "Else: bad input (docs/how-to/land-files.md" in shown


def test_verify_shows_a_damaged_lake_repairs_it_on_demand_and_status_remembers(home: Path) -> None:
    lake = lake_at(home / "lake")
    for name in ("a", "b"):
        commit(lake, OBSERVATIONS, [{"observation_id": name}])
    assert "not verified yet" in sda(home, "status").output
    sound = sda(home, "lake", "verify", "--deep")
    every = f"{len(TABLES)} of {len(TABLES)} tables are sound (2 commits and 2 files read)"
    assert (sound.exit_code, every in sound.output) == (0, True)
    commit_file(lake, OBSERVATIONS, 1).write_text("")
    told = sda(home, "lake", "verify")
    assert (told.exit_code, "observations: damaged: version 1 is empty" in told.output) == (1, True)
    assert "observations damaged" in sda(home, "status").output
    mended = sda(home, "lake", "verify", "--repair")
    assert (mended.exit_code, "observations: repaired: version 1 is empty" in mended.output) == (0, True)
    assert "observations repaired" in sda(home, "status").output


def test_verify_does_not_repair_beneath_a_running_platform(home: Path) -> None:
    with take_lock(home):
        answer = sda(home, "lake", "verify", "--repair")
    assert (answer.exit_code, "a platform already runs" in answer.output) == (1, True)


@pytest.mark.parametrize("command", [("up",), ("lake", "verify", "--repair")])
def test_a_second_home_on_a_lake_in_use_is_refused_D13(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    lake = tmp_path / "shared-lake"
    monkeypatch.setenv("SDA_LAKE", str(lake))
    with take_locks(tmp_path / "first", str(lake), str(tmp_path / "first" / "landing")):
        answer = sda(home, *command)
    assert answer.exit_code == 1
    assert f"the lake {lake} is in use by the platform of {tmp_path}/first (process {os.getpid()}" in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize("command", [("up",), ("lake", "verify", "--repair")])
def test_a_second_platform_on_landing_zones_in_use_is_refused_A9(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    landing = tmp_path / "shared-landing"
    monkeypatch.setenv("SDA_LANDING", str(landing))
    with take_locks(tmp_path / "first", str(tmp_path / "first" / "lake"), str(landing)):
        answer = sda(home, *command)
    assert answer.exit_code == 1
    assert f"the landing directory {landing} is in use by the platform of {tmp_path}/first" in answer.output


def test_the_place_of_a_lake_does_not_depend_on_the_working_directory_of_a_process_D13(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings(lake="lake", landing="in").lake_uri == str(tmp_path / "lake")
    assert Settings(lake="lake", landing="in").landing_uri == str(tmp_path / "in")
    assert Settings(lake="s3://bucket/lake").lake_uri == "s3://bucket/lake"


def test_where_nothing_was_committed_there_is_nothing_to_replay(home: Path) -> None:
    assert json.loads(sda(home, "lake", "replay", "all", "--json").output) == []
    answer = sda(home, "lake", "replay", "fused_tracks", "--from-sequence", "5")
    assert answer.exit_code == 0 and "no commit lies in this range" in answer.output
    assert not list(home.glob("lake*")), "no shadow is left"
    commit(lake_at(home / "lake"), OBSERVATIONS, as_of_ns=1_730_419_200_000_000_000)
    answer = sda(home, "lake", "replay", "observations", "--since", "2024-11-02")
    assert "observations has 1 to 1, of 2024-11-01T00:00:00Z" in " ".join(answer.output.split())


@pytest.mark.parametrize(
    ("option", "value", "names"), [("--kind", "nonsense", "bad_length"), ("--stage", "raw_record", "raw_records")]
)
def test_a_filter_of_dead_letters_that_can_choose_none_is_refused(
    home: Path, option: str, value: str, names: str
) -> None:
    answer = sda(home, "lake", "reprocess", option, value)
    assert answer.exit_code == 1
    assert f"is named '{value}'; there are: " in answer.output and names in answer.output


def test_alerts_are_listed_most_dangerous_first(home: Path) -> None:
    facts = {
        "tca_time_ns": START_NS, "norad_id_1": 25544, "object_name_1": "ISS (ZARYA)", "norad_id_2": 5,
        "object_name_2": "VANGUARD 1", "miss_distance_km": 1.25, "relative_speed_km_s": 9.5, "track_id_1": None,
        "track_id_2": "t",
    }  # fmt: skip
    entries = [
        AlertEntry(name, 0, "insert", json.dumps({**facts, "collision_probability": pc, "risk": risk}))
        for name, pc, risk in (("mild", 2e-7, "yellow"), ("grave", 3e-4, "red"))
    ]
    SqliteSubscriber(home / "subscriber.sqlite").apply("b1", entries)
    listed = json.loads(sda(home, "alert", "list", "--json").stdout)
    assert [(a["event_id"], a["from_tracks"]) for a in listed] == [("grave", 1), ("mild", 1)]
    text = sda(home, "alert", "list").output
    assert text.index("grave") < text.index("mild") and "25544 ISS (ZARYA)" in text and "5 VANGUARD 1" in text


def test_a_trace_leads_from_the_alert_to_the_records(home: Path) -> None:
    lake = lake_at(home / "lake")
    event = {"event_id": "3f2a-event", "norad_id_1": 25544, "norad_id_2": 5}
    read = {"source_id": "radar-7", "segment_name": "pass"}
    seen = [(25544, 0.0), (25544, 600.0), (5, 600.0), (25544, 8_000.0)]
    observed = [
        {**read, "observation_id": f"obs-{n}", "record_number": 12 + n, "sensor_time_ns": after(seconds)}
        for n, (_, seconds) in enumerate(seen)
    ]
    commit(lake, OBSERVATIONS, observed)
    windows = [
        {
            "fit_id": f"track-{n}",
            "norad_id": norad_id,
            "window_start_ns": after(seconds - 7.5),
            "epoch_time_ns": after(seconds),
            "observation_ids": [f"obs-{n}"],
        }
        for n, (norad_id, seconds) in enumerate(seen)
    ]
    commit(lake, FUSED_TRACKS, [{**window, "op": "insert"} for window in windows])
    assessed = {**event, "op": "insert", "tca_time_ns": after(9_000.0), "track_id_1": "track-1"}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**assessed, "track_id_2": None}])
    commit(lake, CONJUNCTION_ALERTS, [{**event, "op": "insert", "risk": "yellow", "track_id_1": "track-1"}])
    answer = sda(home, "alert", "trace", "3f2a")
    assert answer.exit_code == 0, answer.output
    assert "radar-7" in answer.output and "segment pass record 12" in answer.output
    found = json.loads(sda(home, "alert", "trace", "3f2a", "--json").output)
    assert [o["observation_id"] for o in found["observations"]] == ["obs-0", "obs-1"], "of every window of the track"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("alert", "trace", "nothing"), "no alert begins with 'nothing', of 0; `sda alert list` lists the active"),
        (("lake", "replay", "orbits"), "no table is named 'orbits'; there are: alert_acknowledgements,"),
        (("land", "missing.jsonl"), "missing.jsonl: cannot be read"),
        (("land", "--feed", "lidar", __file__), "does not determine its format"),
    ],
)
def test_a_mistake_is_one_line_and_no_traceback(home: Path, arguments: tuple[str, ...], words: str) -> None:
    answer = sda(home, *arguments)
    assert answer.exit_code == 1 and words in answer.output
    assert "Traceback" not in answer.output and len(answer.output.strip().splitlines()) == 1


def test_a_setting_that_cannot_be_used_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_WEBSERVER_PORT", "three thousand")
    answer = sda(home, "status")
    assert answer.exit_code == 1 and "SDA_WEBSERVER_PORT: Input should be" in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize("command", [("simulate", "world", "--start"), ("lake", "replay", "all", "--since")])
def test_what_is_no_instant_is_a_wrong_use(home: Path, command: tuple[str, ...]) -> None:
    answer = sda(home, *command, "someday")
    assert answer.exit_code == 2 and "'someday' is no ISO 8601 instant" in answer.output


def test_what_is_no_regime_is_a_wrong_use(home: Path) -> None:
    answer = sda(home, "catalog", "list", "--regime", "low")
    assert answer.exit_code == 2 and "'low' is none of LEO, MEO, GEO, HEO, decaying" in answer.output


def test_a_home_that_cannot_be_written_is_reported_by_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    night = tmp_path / "night.jsonl"
    night.write_bytes(b"{}\n")
    answer = sda(tmp_path / "file", "land", str(night))
    assert answer.exit_code == 1 and str(tmp_path / "file") in answer.output
    assert "Traceback" not in answer.output and isinstance(answer.exception, SystemExit)


def test_simulated_files_can_be_landed_and_their_truth_lies_beside(home: Path) -> None:
    answer = sda(home, "simulate", str(home / "world"), "--minutes", "0.5")
    assert answer.exit_code == 0, answer.output
    files = sorted(p for p in (home / "world").iterdir() if p.suffix in {".radar", ".isl", ".jsonl"})
    assert files and (home / "world" / "truth.parquet").exists()
    assert "records" in sda(home, "land", str(files[0])).output


def test_landing_says_what_landed_what_had_landed_and_what_is_refused(home: Path) -> None:
    night, torn = home / "night.jsonl", home / "torn.jsonl.gz"
    night.write_text('{"obs_id": "1"}\n' * 3)
    torn.write_bytes(b"\x1f\x8b\x08")
    landed, again, refused = (sda(home, "land", str(path)) for path in (night, night, torn))
    assert landed.output.startswith(f"{night} → optical: 3 records in night-")
    assert again.output == f"{night} → optical: nothing to do: these bytes were landed before\n"
    assert (refused.exit_code, refused.output.startswith(f"Error: {torn}: cannot be read past byte 0")) == (1, True)
    zones = {z["zone"]: z["backlog"] for z in json.loads(sda(home, "status", "--json").output)["zones"]}
    assert (zones["optical"]["segments"], zones["optical"]["bytes"]) == (1, night.stat().st_size)


def letter(number: int, **values: object) -> dict[str, object]:
    kept = {"feed": "radar", "stage": "raw_records", "segment_format": "radar-frames", "error_class": "permanent"}
    told = {"error_kind": "bad_length", "error": f"radar/a record {number}: too short", "schema_version": 2}
    times = {"received_time_ns": START_NS, "rejected_time_ns": START_NS, "retry_count": 0}
    return {**kept, **told, **times, "segment_sha256": "s", "segment_name": "a", "record_number": number, **values}


@pytest.fixture
def letters(home: Path) -> Path:
    """A platform with three dead letters of two kinds."""
    rows = [letter(0, payload=b"one"), letter(1, payload=b"two"), letter(2, payload=b"x", error_kind="torn_record")]
    commit(lake_at(home / "lake"), DEAD_LETTERS, rows)
    return home


def test_reprocess_says_beforehand_what_would_go_back_and_touches_nothing__DP5_F8(letters: Path) -> None:
    answer = sda(letters, "lake", "reprocess", "--dry-run")
    assert answer.exit_code == 0, answer.output
    assert "2 bad_length raw_records radar" in " ".join(answer.output.split())
    assert "dry run: 2 dead letters would return as 1 segments" in answer.output
    assert "skipped 1: torn: the rest of the record is missing (radar/a record 2)" in answer.output
    assert not (letters / "landing").exists()


def test_reprocess_brings_letters_back_once_here_or_into_another_root(letters: Path) -> None:
    elsewhere = letters / "elsewhere"
    trial = sda(letters, "lake", "reprocess", "--kind", "bad_length", "--into", str(elsewhere))
    assert "2 reprocessed, 0 skipped" in trial.output
    assert not (letters / "landing").exists()
    assert "2 reprocessed, 1 skipped, 0 had returned before" in sda(letters, "lake", "reprocess").output
    assert "0 reprocessed, 1 skipped, 2 had returned before" in sda(letters, "lake", "reprocess").output
    since = sda(letters, "lake", "reprocess", "--since", "2030-01-01T00:00:00Z")
    assert "0 reprocessed, 0 skipped, 0 had returned before" in since.output


def test_reprocess_without_any_letter_and_with_a_wrong_time_prints_one_line(home: Path) -> None:
    assert "0 reprocessed, 0 skipped" in sda(home, "lake", "reprocess").output
    wrong = sda(home, "lake", "reprocess", "--since", "someday")
    assert (wrong.exit_code, "'someday' is no ISO 8601 instant" in wrong.output) == (2, True)


def test_status_shows_the_days_dead_letters_by_kind_and_source(letters: Path) -> None:
    found = json.loads(sda(letters, "status", "--json").output)
    assert found["letters"] == [
        {"kind": "bad_length", "disposition": "permanent", "letters": 2, "source": "radar",
         "newest_utc": "2024-11-01T00:00:00.000Z"},
        {"kind": "torn_record", "disposition": "permanent", "letters": 1, "source": "radar",
         "newest_utc": "2024-11-01T00:00:00.000Z"},
    ]  # fmt: skip
    assert "dead letters (24 h)" in sda(letters, "status").output


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2024-11-01T12:00:00Z"), ("today", "2024-11-01T00:00:00Z"), ("yesterday", "2024-10-31T00:00:00Z"),
        ("tomorrow", "2024-11-02T00:00:00Z"), ("+3d", "2024-11-04T12:00:00Z"), ("-90min", "2024-11-01T10:30:00Z"),
        ("2024-11-05", "2024-11-05T00:00:00Z"),
    ],
)  # fmt: skip
def test_times_may_be_relative(text: str, meant: str) -> None:
    assert parse_instant_ns(text, parse_iso_ns("2024-11-01T12:00:00Z")) == parse_iso_ns(meant)


@pytest.mark.parametrize("text", ["", "+", "3d", "++3d", "-", "noon", "+3 d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_instant_ns(text, 0)


def test_without_a_home_of_ones_own_that_of_the_demo_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SDA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    MissionClock(START_NS, 0, 0.0).save(Path("var/demo"))

    def status(*arguments: str) -> Result:
        return CliRunner().invoke(main, [*arguments, "status"])

    meant = status()
    assert (meant.exit_code, meant.stderr) == (0, "home: var/demo, that of the demo\n")
    assert f"platform at {tmp_path}/var/demo:" in meant.stdout
    new = CliRunner().invoke(main, ["restore", str(tmp_path / "backups")])
    assert new.stderr.startswith("home: var, a new one; for that of the demo: sda --home var/demo restore\n")
    assert status("--home", "var").exit_code == 1, "the home that was asked for"
    monkeypatch.setenv("SDA_HOME", "var")
    assert status().exit_code == 1, "the home that was set"
    monkeypatch.delenv("SDA_HOME")
    MissionClock(START_NS, 0, 0.0).save(Path("var"))
    assert f"platform at {tmp_path}/var:" in status().output, "one's own"


LIST = """
import sys
from click.testing import CliRunner
from sda_platform.cli.main import main
answer = CliRunner().invoke(main, sys.argv[1:])
print(answer.exit_code, *sorted({"dagster", "numba", "scipy"} & sys.modules.keys()))
"""


@pytest.mark.parametrize("command", ["alert list", "query 'select 1'"])
def test_a_list_starts_without_what_takes_long_to_import(command: str, home: Path) -> None:
    arguments = [sys.executable, "-c", LIST, "--home", str(home), *shlex.split(command)]
    assert subprocess.run(arguments, check=True, capture_output=True, text=True).stdout == "0\n"

"""Settings come from the environment; a misspelt one is refused, not passed over."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_settings import SettingsError

from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.cli.main import main
from sda_platform.conjunction.objects_of_interest import InterestResource
from sda_platform.conjunction.resource import AlertingResource, ScreeningResource
from sda_platform.dead_letters.growth import GrowthResource
from sda_platform.definitions import build_defs
from sda_platform.edge.report_client import TOKEN_VARIABLE
from sda_platform.fusion.resource import FusionResource
from sda_platform.http_gate import is_own_host
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import delta_log
from sda_platform.orchestration.resources import LandingResource
from sda_platform.runtime import guardian, platform_home
from sda_platform.setting_fields import OTHER_VARIABLES
from sda_platform.settings import (
    Settings,
    UnknownSetting,
    UnusablePlace,
    declared_settings,
    require_known_variables,
)
from sda_platform.tasking.resource import TaskingResource
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sampling import sampled


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("SDA_WEBSERVR_PORT", "did you mean SDA_WEBSERVER_PORT?"),
        ("SDA_ORPHAN_GRACE", "did you mean SDA_ORPHAN_GRACE_S?"),
        ("sda_lak", "did you mean SDA_LAKE?"),
        ("SDA_XYZZY", "unset it; sda_platform/settings.py lists the settings"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_closest_name_spec_114(name: str, remedy: str) -> None:
    with pytest.raises(UnknownSetting) as refused:
        require_known_variables({name: "secret", "SDA_HOME": "/tmp", "PATH": "/bin"})
    assert str(refused.value) == f"{name} is not a setting: {remedy}"


MODULES = ["definitions", "runtime.run_workers", "runtime.verification", "runtime.warm_up"]


def test_every_setting_and_every_other_variable_is_known_spec_114() -> None:
    names = [setting.variable for setting in declared_settings()]
    require_known_variables(dict.fromkeys([*names, *OTHER_VARIABLES, *map(str.lower, names)], ""))
    assert set(OTHER_VARIABLES) == {guardian.MARK, platform_home.POSTGRES_VARIABLE, TOKEN_VARIABLE}


def test_the_command_line_says_so_in_one_line_spec_114(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_HOEM", "var/demo")
    answer = CliRunner().invoke(main, ["status"])
    assert (answer.exit_code, answer.output) == (1, "Error: SDA_HOEM is not a setting: did you mean SDA_HOME?\n")


def test_the_definitions_do_not_load_with_it_spec_114(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_WINDOWS_S", "60")
    with pytest.raises(UnknownSetting, match="did you mean SDA_WINDOW_S"):
        build_defs()


@pytest.mark.parametrize("module", sampled(MODULES, "runtime.verification"))
def test_no_process_of_the_platform_starts_with_it_spec_114(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", f"sda_platform.{module}"],
        env={**os.environ, "SDA_WINDOWS_S": "60"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert "SDA_WINDOWS_S is not a setting: did you mean SDA_WINDOW_S?" in ended.stderr


SECTIONS = {
    "intake": LandingResource,
    "growth": GrowthResource,
    "fusion": FusionResource,
    "screening": ScreeningResource,
    "alerting": AlertingResource,
    "scheduling": TaskingResource,
    "weather": SpaceWeatherResource,
    "refinement": InterestResource,
}
VARIABLES = {
    "SDA_BACKUP",
    "SDA_BACKUPS_KEPT",
    "SDA_BACKUP_MAX_AGE_S",
    "SDA_EVIDENCE_DAYS",
    "SDA_LEGAL_HOLD",
    "SDA_OPERATIONS_DAYS",
    "SDA_RECORD_DAYS",
    "SDA_SERVING",
    "SDA_STATION_KEYS",
    "SDA_COMMANDERS",
    "SDA_COMMANDER_KEY",
    "SDA_SERVING_CLIENTS",
    "SDA_SERVING_GROUPS",
    "SDA_SERVING_HOST",
    "SDA_SERVING_PORT",
    "SDA_EVENT_STREAM",
    "SDA_EVENT_STREAM_CREDENTIALS",
    "SDA_NOTIFY",
    "SDA_NOTIFY_LAG_S",
    "SDA_UMASK",
    "SDA_NOTICE_KEYS",
    "SDA_SITES",
    "SDA_SITE_KEY",
    "SDA_SUBSCRIBER_KEYS",
    "SDA_WEBHOOK_PLAIN_HTTP",
    "SDA_WEBSERVER_USERS",
    "SDA_SERVING_CERTIFICATE",
    "SDA_SERVING_KEY",
    "SDA_SERVING_OPEN",
    "SDA_WEBSERVER_WRITES",
    "SDA_FAILED_RUNS_MAX",
    "SDA_SILENCE_OF_ALL_S",
    "SDA_NOTICE_REPEAT_S",
    "SDA_ALERT_DILUTION_RED_PC",
    "SDA_ALERT_DILUTION_RED_SIGMAS",
    "SDA_ALERT_DILUTION_WITHIN_H",
    "SDA_ALERT_DILUTION_YELLOW_PC",
    "SDA_ALERT_DILUTION_YELLOW_SIGMAS",
    "SDA_ALERT_HYSTERESIS_DECADES",
    "SDA_ALERT_MANOEUVRE_DECADES",
    "SDA_ALERT_RED_PC",
    "SDA_ALERT_REVISE_DECADES",
    "SDA_ALERT_REVISE_MISS_KM",
    "SDA_ALERT_REVISE_TCA_S",
    "SDA_ALERT_STATED_BY_OTHER",
    "SDA_ALERT_YELLOW_PC",
    "SDA_ALLOWED_LATENESS_S",
    "SDA_BACKLOG_MAX_AGE_S",
    "SDA_BATCH_MAX_BYTES",
    "SDA_BATCH_MAX_SEGMENTS",
    "SDA_DEAD_LETTER_FLOOR_PER_MIN",
    "SDA_DEAD_LETTER_GROWTH",
    "SDA_DEAD_LETTER_GROWTH_BY_KIND",
    "SDA_FLEET",
    "SDA_IDLE_AFTER_S",
    "SDA_ORPHAN_GRACE_S",
    "SDA_REFINED_AT_ONCE",
    "SDA_SCREENING_AT_ONCE",
    "SDA_SCREENING_FLEET_INTERNAL",
    "SDA_SCREENING_HORIZON_H",
    "SDA_SCREENING_MANOEUVRE_SIGMAS",
    "SDA_SCREENING_OBJECTS_PER_TASK",
    "SDA_SCREENING_REFRESH_H",
    "SDA_SCREENING_SATELLITE_CATALOGUE",
    "SDA_SCREENING_SCOPE",
    "SDA_SCREENING_REACH_KM",
    "SDA_SCREENING_SIGMAS",
    "SDA_SCREENING_THRESHOLD_KM",
    "SDA_SCREENING_VOLUMES",
    "SDA_SENSORS",
    "SDA_CLOSURES",
    "SDA_SOURCES",
    "SDA_SPACE_WEATHER",
    "SDA_TASKING_HORIZON_H",
    "SDA_TASKING_SCOPE",
    "SDA_WINDOW_S",
    "SDA_DISK_MIN_FREE",
    "SDA_HEARTBEAT_MAX_S",
    "SDA_QUEUE_MAX_S",
    "SDA_RUN_MAX_S",
    "SDA_SUBSCRIBER_LAG_S",
    "SDA_VITALS_INTERVAL_S",
    "SDA_METRICS_INTERVAL_S",
    "SDA_WATERMARK_STALL_S",
}


def test_the_variables_of_the_sections_keep_their_names() -> None:
    found = {setting.variable for setting in declared_settings() if len(setting.path) == 2}
    assert found == VARIABLES


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_is_the_resource_that_uses_it(name: str) -> None:
    section = Settings.model_fields[name].annotation
    assert isinstance(section, type)
    assert issubclass(SECTIONS[name], section)


def test_a_variable_sets_every_section_that_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_SENSORS", "/data/sensors.csv")
    monkeypatch.setenv("sda_screening_at_once", "7")
    settings = Settings()
    assert settings.fusion.sensors == settings.scheduling.sensors == "/data/sensors.csv"
    assert settings.screening.at_once == settings.scheduling.at_once == 7


def test_the_host_of_the_address_in_links_is_one_of_ours() -> None:
    behind = Settings(ui_url="https://sda.example.org/", http_hosts=("other.example.org",))
    assert [host for host in ("sda.example.org", "other.example.org", "rebound.example.org")
            if is_own_host(host, behind.own_hosts)] == ["sda.example.org", "other.example.org"]  # fmt: skip
    assert not is_own_host("sda.example.org", Settings().own_hosts)


def test_an_argument_replaces_one_value_of_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDA_SCREENING_REFRESH_H", "3")
    settings = Settings(screening={"horizon_h": 24.0})
    assert (settings.screening.horizon_h, settings.screening.refresh_h) == (24.0, 3.0)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("SDA_SOURCES", "radar", "SDA_SOURCES is not JSON"),
        ("SDA_WINDOW_S", "half", "fusion.window_s"),
        ("SDA_SCREENING_SCOPE", "some", "screening.scope"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises((ValidationError, SettingsError), match=re.escape(reason)):
        Settings()


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"SDA_ALERT_RED_PC": "abc"}, "SDA_ALERT_RED_PC: Input should be a valid number"),
        ({"SDA_HEALTH_PORT": "x"}, "SDA_HEALTH_PORT: Input should be a valid integer"),
        ({"SDA_ALERT_RED_PC": "2"}, "SDA_ALERT_RED_PC: Input should be less than or equal to 1"),
        (
            {"SDA_ALERT_YELLOW_PC": "1e-3", "SDA_ALERT_RED_PC": "1e-5"},
            "SDA_ALERT_YELLOW_PC is 0.001, above SDA_ALERT_RED_PC, which is 1e-05: exchange them",
        ),
        ({"SDA_HTTP_HOSTS": "sda.example.org"}, 'SDA_HTTP_HOSTS is not JSON; a list is written ["a", "b"]'),
        ({"SDA_ETCD": "http://10.0.0.1:2379"}, "SDA_ETCD is not JSON"),
        ({"SDA_DEAD_LETTER_GROWTH_BY_KIND": "x"}, "SDA_DEAD_LETTER_GROWTH_BY_KIND is not JSON"),
        ({"SDA_ALERT_DILUTION_YELLOW_PC": "0.1"}, "above SDA_ALERT_DILUTION_RED_PC"),
        ({"SDA_ALERT_DILUTION_RED_SIGMAS": "3"}, "above SDA_ALERT_DILUTION_YELLOW_SIGMAS"),
    ],
)
def test_a_refusal_names_the_variable_that_a_person_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], named: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    answer = CliRunner().invoke(main, ["--home", str(tmp_path), "status"])
    assert answer.exit_code == 1
    assert answer.output.startswith("Error: a setting cannot be used: ") and named in answer.output


@pytest.mark.parametrize("variable", ["SDA_LAKE", "SDA_LANDING"])
@pytest.mark.parametrize("uri", ["file:///data/x", "file:/data/x", "s3a://bucket/x", "gs://bucket/x", "memory://x"])
def test_a_place_that_is_neither_a_path_nor_s3_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, variable: str, uri: str
) -> None:
    monkeypatch.setenv(variable, uri)
    with pytest.raises(UnusablePlace) as refused:
        Settings()
    assert str(refused.value) == f"{variable}: {uri} is neither a path nor s3://bucket/prefix: write one of these"


@pytest.mark.parametrize("character", [*"%*?[]{}^|`\\", "\n", "\x7f"])
@pytest.mark.parametrize("place", ["/data/{}/lake", "s3://bucket/{}"])
def test_a_lake_that_delta_rs_or_spark_cannot_use_is_refused_at_once(place: str, character: str) -> None:
    with pytest.raises(UnusablePlace, match=re.escape(f"has the character {character!r}, which delta-rs, Spark")):
        Settings(lake=place.format(f"a{character}b"))


def test_so_is_a_home_in_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home [1]"
    answer = CliRunner().invoke(main, ["--home", str(home), "status"])
    assert answer.exit_code == 1
    assert answer.output == (
        f"Error: SDA_HOME: the path '{home}' has the character '[', which delta-rs, Spark or SQLite cannot use there: "
        "choose another place\n"
    )


@pytest.mark.parametrize("name", ["a b", "a#b", "é", "a:b", "a~b", "a,b", "a+b", "a'b", 'a"b', "a::b"])
def test_other_characters_are_usable_in_the_path_of_a_lake(name: str, tmp_path: Path) -> None:
    uri = Settings(home=tmp_path / name).lake_uri
    lake = lake_at(uri)
    for number in range(2):
        commit(lake, OBSERVATIONS, [{"observation_id": str(number)}])
    log = lake.log(OBSERVATIONS)
    assert (len(log.rows()), log.head().sequence) == (2, 2)
    files = delta_log.data_files(log.uri, log.open())
    assert [file.parent for file in files] == [Path(uri, OBSERVATIONS.name)] * 2
    assert all(file.exists() for file in files)


@given(
    horizon_h=st.floats(0.1, 1e4),
    is_internal=st.booleans(),
    by_kind=st.dictionaries(st.text(st.characters(codec="ascii", exclude_characters="\0")), st.floats(1.0, 1e6)),
    sources=st.lists(st.sampled_from(["radar", "optical", "isl"]), unique=True),
)
def test_child_processes_get_the_settings_whole(
    horizon_h: float, is_internal: bool, by_kind: dict[str, float], sources: list[str]
) -> None:
    chosen = Settings(
        home=Path("/somewhere/var"),
        lake="s3://bucket/lake",
        landing="/somewhere/landing",
        own_elements=False,
        growth={"factor_by_kind": by_kind},
        fusion={"sources": sources},
        screening={"horizon_h": horizon_h, "fleet_internal": is_internal, "volumes": "standard"},
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in chosen.environment().items():
            patch.setenv(name, value)
        assert Settings() == chosen


def test_child_processes_find_the_files_of_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"fleet": "fleet.csv", "volumes": "volumes.csv"}
    variables = Settings(home=Path("var"), subscriber="alerts.sqlite", screening=files).environment()
    places = {
        "SDA_HOME": "var",
        "SDA_LAKE": "var/lake",
        "SDA_LANDING": "var/landing",
        "SDA_SUBSCRIBER": "alerts.sqlite",
        "SDA_FLEET": "fleet.csv",
        "SDA_SCREENING_VOLUMES": "volumes.csv",
    }
    assert {name: variables[name] for name in places} == {name: str(tmp_path / path) for name, path in places.items()}
    assert variables["SDA_SENSORS"] == ""

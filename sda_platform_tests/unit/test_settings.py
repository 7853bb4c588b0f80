"""Settings come from the environment; a misspelt one is refused, not passed over."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.cli.sources import TOKEN_VARIABLE
from sda_platform.definitions import build_defs
from sda_platform.runtime import guardian, platform_home
from sda_platform.settings import OTHER_VARIABLES, Settings, UnknownSetting, require_known_variables


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


def test_every_setting_and_every_other_variable_is_known_spec_114() -> None:
    names = [f"SDA_{name.upper()}" for name in Settings.model_fields]
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


@pytest.mark.parametrize("module", ["definitions", "runtime.run_workers", "runtime.verification", "runtime.warm_up"])
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

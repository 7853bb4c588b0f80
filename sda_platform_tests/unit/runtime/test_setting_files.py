"""Files that people change while the platform runs: `sda status` says what is wrong with each."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.edge.config import ConfigError
from sda_platform.formats.listings import ListingError
from sda_platform.runtime.setting_files import require_usable_files, wrong_files
from sda_platform.settings import Settings


def test_every_wrong_file_is_named_with_its_line_and_a_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, sensors, collect = (tmp_path / name for name in ("fleet.csv", "sensors.csv", "collect.toml"))
    monkeypatch.setenv("SDA_HOME", str(tmp_path))
    fleet.write_text("norad_id,name,operator,yellow_pc,red_pc\n25544,ISS,NASA,,\n20580,HST,NASA,1e-3,1e-5\n")
    assert [text.partition(":")[0] for text in wrong_files(Settings())] == [str(fleet)]
    fleet.write_text("norad_id,name,operator\n25544,ISS,NASA\n20580,,NASA\n")
    with pytest.raises(ListingError, match=r"fleet.csv line 3: satellite 20580 has no name"):
        require_usable_files(Settings())
    sensors.write_text("nothing\n")
    collect.write_text("[sources.a]\nkind = 'laser'\n")
    found = wrong_files(Settings())
    assert [Path(text.partition(":")[0].partition(" ")[0]).name for text in found] == [
        "fleet.csv", "sensors.csv", "collect.toml",
    ]  # fmt: skip
    fleet.write_text("norad_id,name,operator\n25544,ISS,NASA\n")
    sensors.unlink()
    with pytest.raises(ConfigError, match="laser"):
        require_usable_files(Settings())
    collect.unlink()
    assert wrong_files(Settings()) == []
    monkeypatch.setenv("SDA_COMMANDERS", str(tmp_path / "commanders.toml"))
    assert "commanders.toml: cannot be read" in wrong_files(Settings())[0]
    (tmp_path / "commanders.toml").write_text("[commanders.ann]\nkey = 'ann.pub'\n")
    assert "ann.pub" in wrong_files(Settings())[0]
    (tmp_path / "commanders.toml").write_text("[commanders.ann]\nkey = 'ann.pub'\nissues = ['DANCE']\n")
    assert "'DANCE' is no kind of command" in wrong_files(Settings())[0]
    monkeypatch.delenv("SDA_COMMANDERS")
    (tmp_path / "closures.csv").write_text("source_id,start,end,reason\nradar-1,now,2026-11-29T00:00:00Z,x\n")
    assert "closures.csv line 2: start is 'now'" in wrong_files(Settings())[0]


def test_status_says_first_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "collect.toml").write_text("[\n")
    monkeypatch.setenv("SDA_HOME", str(tmp_path))
    output = CliRunner().invoke(main, ["status"]).output
    assert output.startswith(f"cannot be used: {tmp_path}/collect.toml: is no TOML"), output

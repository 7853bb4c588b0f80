"""Shadows: next to the lake, and gone with their process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sda_platform.replay.shadow import is_shadow, remove_left_shadows, temporary_shadow

KILLED = """
import os, signal, sys
from pathlib import Path
from sda_platform.replay.shadow import temporary_shadow
with temporary_shadow(sys.argv[1], "replay") as uri:
    Path(uri, "observations").mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(home: Path) -> set[str]:
    return {each.name for each in home.iterdir()}


def test_a_shadow_is_removed_at_its_end_and_also_after_an_error(tmp_path: Path) -> None:
    with temporary_shadow(str(tmp_path / "lake"), "impact") as uri:
        Path(uri).mkdir()
        assert remove_left_shadows(str(tmp_path / "lake")) == [], "its process lives"
    with pytest.raises(ValueError, match="damaged"), temporary_shadow(str(tmp_path / "lake"), "audit") as uri:
        Path(uri).mkdir()
        raise ValueError("damaged")
    assert names(tmp_path) == set()


def test_what_a_killed_process_left_is_removed_and_what_a_person_keeps_is_not(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert subprocess.run([sys.executable, "-c", KILLED, lake], check=False).returncode == -9
    (left,) = names(tmp_path) - {each for each in names(tmp_path) if each.endswith(".lock")}
    assert is_shadow(left, "lake") and not is_shadow(left, "other")
    with temporary_shadow(lake, "replay", keep=True) as kept:
        Path(kept).mkdir()
    assert names(tmp_path) == {Path(kept).name}


def test_those_of_an_earlier_release_are_removed_after_a_day(tmp_path: Path) -> None:
    old, new, foreign = (tmp_path / f"lake.{name}" for name in ("replay-0a1b2c3d", "impact-0a1b2c3e", "replay-notes"))
    for each in (old, new, foreign):
        each.mkdir()
    os.utime(old, (time.time() - 90_000.0,) * 2)
    assert remove_left_shadows(str(tmp_path / "lake")) == [old.name]
    assert names(tmp_path) == {new.name, foreign.name}

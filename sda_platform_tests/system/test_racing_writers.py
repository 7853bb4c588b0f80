"""Several processes, each with its own engine, write one table: every sequence lands once, and a zombie lands nothing.

``RACE_COMMITS`` sets for how many commits four writers race; `make soak RACE=2000` asks for 500 of each. Two real
engines race for a tenth of them in each write path, and for at least 200 in a soak.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.support import injections
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.racing import answer, raced, writer
from sda_platform_tests.support.racing_writer import ids_of
from sda_platform_tests.support.sampling import sampled

CONTROL_COMMITS = 24
COMMITS = int(os.environ.get("RACE_COMMITS", CONTROL_COMMITS))
ENGINE_COMMITS = max(200, COMMITS // 10) if "RACE_COMMITS" in os.environ else 8
ZOMBIE_COMMITS = 6
WRITERS = 4
pytestmark = pytest.mark.timeout(900 + COMMITS)
_TIMEOUT_S = 240.0


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    """Return when the process has been stopped by its signal."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        _, status = os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)
        if os.WIFSTOPPED(status):
            return
        assert process.poll() is None, "the writer ended"
        time.sleep(0.05)
    raise AssertionError("the writer was not stopped")


def test_two_engines_race_and_a_zombie_comes_back_spec_86_87_cp_27(tmp_path: Path) -> None:
    """One of them is stopped just before it sends its second commit, and continues when the other has done the rest."""
    order = tmp_path / "order"
    injections.Injection("commit.planned", "stop", nth=2).arm(order)
    with (
        writer(tmp_path, "zombie", injections.armed(order), commits=ZOMBIE_COMMITS) as zombie,
        writer(tmp_path, "other", commits=ZOMBIE_COMMITS) as other,
    ):
        assert (answer(zombie), answer(other)) == ("ready", "ready")
        for process in (zombie, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        wait_until_stopped(zombie)
        others = json.loads(answer(other))
        assert lake_at(tmp_path).head(OBSERVATIONS).sequence == ZOMBIE_COMMITS
        os.kill(zombie.pid, signal.SIGCONT)
        zombies = json.loads(answer(zombie))
    lake = lake_at(tmp_path)
    log = lake.log(OBSERVATIONS)
    commits = log.commits(None)
    assert [c.sequence for c in commits] == list(range(ZOMBIE_COMMITS, 0, -1))
    assert broken_chain(commits) == []
    rows = sorted(log.rows(["observation_id"]).column("observation_id").to_pylist())
    assert rows == [name for sequence in range(1, ZOMBIE_COMMITS + 1) for name in ids_of(sequence)]
    assert (others["won"] + zombies["won"], injections.hits(order)) == (ZOMBIE_COMMITS, ["commit.planned"])
    assert zombies["lost"] >= 1


def stored(root: Path) -> tuple[list[int], list[str]]:
    """The sequences in the log, newest first, and the stored rows in order."""
    log = lake_at(root).log(OBSERVATIONS)
    rows: list[str] = log.rows(["observation_id"]).column("observation_id").to_pylist()
    return [each.sequence for each in log.commits(None)], sorted(rows)


def test_four_writers_commit_each_sequence_once_spec_86_87(tmp_path: Path) -> None:
    reports = raced(tmp_path, ["delta-rs"] * WRITERS, COMMITS)
    sequences, rows = stored(tmp_path)
    assert sequences == list(range(COMMITS, 0, -1))
    assert broken_chain(lake_at(tmp_path).log(OBSERVATIONS).commits(None)) == []
    assert rows == [name for sequence in range(1, COMMITS + 1) for name in ids_of(sequence)]
    assert len(reports) == WRITERS and sum(each["lost"] for each in reports) >= 1, "they did race"


@pytest.mark.parametrize("engine", sampled(["spark", "spark-files"]))  # two engines race above, too
def test_two_real_engines_commit_each_sequence_once_S0(tmp_path: Path, engine: str) -> None:
    reports = raced(tmp_path, [engine] * 2, ENGINE_COMMITS)
    sequences, rows = stored(tmp_path)
    assert sequences == list(range(ENGINE_COMMITS, 0, -1))
    assert broken_chain(lake_at(tmp_path).log(OBSERVATIONS).commits(None)) == []
    assert rows == [name for sequence in range(1, ENGINE_COMMITS + 1) for name in ids_of(sequence)]
    assert len(reports) == 2 and sum(each["lost"] for each in reports) >= 1, "they did race"


@pytest.mark.parametrize("engine", sampled(["unchecked", "unchecked-files"], "unchecked-files"))
def test_the_race_shows_an_engine_that_ignores_conflicts_spec_86(tmp_path: Path, engine: str) -> None:
    raced(tmp_path, [engine] * WRITERS, CONTROL_COMMITS)
    sequences, rows = stored(tmp_path)
    assert len(sequences) > len(set(sequences)) and len(rows) > len(set(rows))

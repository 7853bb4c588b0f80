"""Supervised processes and their guardian, with small real processes: none outlasts the process that started it."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
import yaml

from sda_platform.runtime import guardian, platform_home
from sda_platform.runtime.lake_lock import LakeInUse, take_lake_lock
from sda_platform.runtime.processes import LONGEST_PAUSE_S, Service, free_port, stop_all
from sda_platform.runtime.sqlite_storage import SqliteStorage

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


def _service(tmp_path: Path, mark: str, command: list[str]) -> Service:
    environment = {**os.environ, guardian.MARK: mark}
    return Service("sleeper", command, environment, tmp_path, tmp_path / "sleeper.log")


def _eventually(condition: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_stopping_ends_the_whole_group(tmp_path: Path, mark: str) -> None:
    parent = [sys.executable, "-c", f"import subprocess; subprocess.run({SLEEP!r})"]
    service = _service(tmp_path, mark, parent)
    service.start()
    assert _eventually(lambda: len(guardian.marked(mark)) == 2)
    stop_all([service], signal.SIGTERM, 3.0)
    assert _eventually(lambda: not guardian.marked(mark))


def test_a_deaf_process_is_killed_after_its_grace(tmp_path: Path, mark: str) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    service = _service(tmp_path, mark, [sys.executable, "-c", deaf])
    service.start()
    assert _eventually(lambda: "deaf" in service.last_words())
    stop_all([service], signal.SIGTERM, 0.2)
    assert _eventually(lambda: not service.is_alive)
    assert service.exit_code == -signal.SIGKILL


def test_restarts_pause_twice_as_long_up_to_a_bound_and_spend_a_budget__DP2_F5(tmp_path: Path, mark: str) -> None:
    service = _service(tmp_path, mark, [sys.executable, "-c", "raise SystemExit(3)"])
    service.start()
    pauses, now = [], time.monotonic()
    for _ in range(8):
        assert _eventually(lambda: not service.is_alive)
        line = service.revive(now)
        assert line is not None and "exit code 3" in line
        pauses.append(float(line.split(" in ")[1].split()[0]))
        assert service.revive(now + pauses[-1] - 0.01) is None
        assert service.revive(now + pauses[-1]) == f"sleeper restarted (number {len(pauses)})"
        assert service.is_exhausted is (len(pauses) > 5)
        assert ("more than 5 times within a minute" in line) is (len(pauses) > 5)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_guardian_ends_grandchildren_in_other_sessions_when_its_owner_is_killed(tmp_path: Path, mark: str) -> None:
    owner = (
        "import subprocess, sys, os, time\n"
        f"guard = subprocess.Popen([sys.executable, {guardian.__file__!r}, 'guard', {mark!r}], stdin=subprocess.PIPE,"
        " start_new_session=True)\n"
        f"env = {{**os.environ, {guardian.MARK!r}: {mark!r}}}\n"
        f"subprocess.Popen({SLEEP!r}, env=env, start_new_session=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", owner])
    assert _eventually(lambda: len(guardian.marked(mark)) == 1)
    process.kill()
    process.wait()
    assert _eventually(lambda: not guardian.marked(mark))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's leash is Linux's")
def test_a_leashed_process_is_killed_with_its_parent(mark: str) -> None:
    owner = (
        "import subprocess, sys, os, time\n"
        f"env = {{**os.environ, {guardian.MARK!r}: {mark!r}}}\n"
        f"command = [sys.executable, {guardian.__file__!r}, 'leash', str(os.getpid()), *{SLEEP!r}]\n"
        "subprocess.Popen(command, env=env)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", owner])
    assert _eventually(lambda: len(guardian.marked(mark)) == 1)
    process.kill()
    process.wait()
    assert _eventually(lambda: not guardian.marked(mark))


def test_one_platform_per_home(tmp_path: Path) -> None:
    lock = platform_home.take_lock(tmp_path)
    platform_home.write_state(tmp_path, {"pid": 42, "addresses": {"webserver": "http://127.0.0.1:3000"}})
    running = platform_home.running_platform(tmp_path)
    assert running is not None and running["pid"] == 42
    with pytest.raises(platform_home.AlreadyRunning, match=r"process 42, http://127\.0\.0\.1:3000"):
        platform_home.take_lock(tmp_path)
    lock.close()
    assert platform_home.running_platform(tmp_path) is None


def test_one_platform_per_lake_spec_87_90_D13(tmp_path: Path) -> None:
    lake, other_lake = str(tmp_path / "lake"), str(tmp_path / "other")
    held = platform_home.take_locks(tmp_path / "a", lake, str(tmp_path / "a"))
    holder = rf"the platform of {tmp_path}/a \(process {os.getpid()} on .+\): stop that platform, or choose another"
    with pytest.raises(LakeInUse, match=holder):
        platform_home.take_locks(tmp_path / "b", str(lake), str(tmp_path / "b"))
    platform_home.take_locks(tmp_path / "b", other_lake, str(tmp_path / "b")).close()
    held.close()
    platform_home.take_locks(tmp_path / "b", lake, str(tmp_path / "b")).close()
    assert take_lake_lock("s3://bucket/lake", tmp_path) is None


def test_the_lock_of_a_lake_ends_with_its_holder_D13(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from sda_platform.runtime.lake_lock import take_lake_lock\n"
        "lock = take_lake_lock(sys.argv[1], Path('home')); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with pytest.raises(LakeInUse, match=f"process {holder.pid}"):
        take_lake_lock(str(tmp_path), tmp_path / "home")
    holder.kill()
    holder.communicate()
    lock = take_lake_lock(str(tmp_path), tmp_path / "home")
    assert lock is not None
    lock.close()


def test_a_busy_port_is_replaced_by_a_free_one() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        assert free_port(busy) not in (0, busy)


def test_the_storage_of_dagster_is_one_setting(tmp_path: Path) -> None:
    address = {platform_home.POSTGRES_VARIABLE: f"{platform_home.POSTGRES_SCHEME}me@host/db"}
    chosen = platform_home.prepare(tmp_path / "a", "127.0.0.1:4000", address).with_name("dagster.yaml").read_text()
    storage_of = yaml.safe_load(chosen)["storage"]["custom"]
    assert storage_of["class"] == "PostgresStorage"
    assert storage_of["config"] == {"postgres_url": {"env": "SDA_DAGSTER_POSTGRES_URL"}}
    platform_home.prepare(tmp_path / "b", "127.0.0.1:4000", {})
    with dg.DagsterInstance.from_config(str(tmp_path / "b" / "dagster")) as instance:
        storage = instance.get_ref().storage_data
        assert storage is not None
        assert storage.class_name == SqliteStorage.__name__

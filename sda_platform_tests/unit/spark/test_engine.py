"""The engine's configuration and the cache of its jars."""

import subprocess
from pathlib import Path

import pytest

from sda_platform.definitions import default_resources
from sda_platform.settings import Settings
from sda_platform.spark import engine, jars
from sda_platform.spark.compiled_jars import LOG_STORE, PLATFORM
from sda_platform.spark.java import Java
from sda_platform.spark.pools import WARM_POOLS
from sda_platform.spark.session import RECONNECTING, session_id

JAVA = Java(Path("/usr/bin/java"), 17)


@pytest.fixture(autouse=True)
def _cached_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = jars.cache_directory()
    directory.mkdir(parents=True)
    for jar in (*jars.DELTA_JARS, PLATFORM):
        (directory / jar.file_name).write_bytes(b"a jar")
    return directory


def test_missing_jars_name_the_remedy(_cached_jars: Path) -> None:
    (_cached_jars / jars.DELTA_JARS[0].file_name).unlink()
    with pytest.raises(jars.JarsMissing, match="make setup"):
        engine.spark_conf()


def test_server_and_local_session_share_their_configuration(tmp_path: Path) -> None:
    shared = engine.spark_conf()
    server = engine.server_conf(tmp_path, 15002)
    assert {name: value for name, value in shared.items() if name != "spark.jars"}.items() <= server.items()


def test_no_limit_of_spark_ends_what_a_join_broadcasts() -> None:
    assert engine.spark_conf()["spark.sql.broadcastTimeout"] == "-1", "300 s by default, which a screening exceeds"


def test_what_is_open_beyond_loopback_is_the_port_that_asks_for_the_token(tmp_path: Path) -> None:
    command = engine.server_command(JAVA, tmp_path, port=15002, driver_memory="2g", host="engine")
    beyond = [option for option in command if option.endswith("=engine")]
    assert beyond == ["-Dspark.connect.grpc.binding.address=engine"]
    assert "-Dspark.authenticate=true" in command


def test_server_answers_on_loopback_only_and_keeps_pool_sessions(tmp_path: Path) -> None:
    server = engine.server_conf(tmp_path, 15002)
    assert server["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert server["spark.connect.grpc.binding.port"] == "15002"
    assert server["spark.connect.session.manager.defaultSessionTimeout"] == "-1"


def test_command_has_the_jars_on_its_class_path_and_the_heap_asked_for(tmp_path: Path) -> None:
    command = engine.server_command(JAVA, tmp_path, port=15002, driver_memory="2g")
    assert command[0] == "/usr/bin/java"
    assert "-Xmx2g" in command
    class_path = command[command.index("-cp") + 1].split(":")
    assert class_path[1:] == [str(path) for path in jars.jar_paths()]
    assert command[-1].endswith("SparkConnectServer")


def test_a_lake_in_an_object_store_adds_its_jars_and_its_log_store(_cached_jars: Path, tmp_path: Path) -> None:
    lake = "s3://bucket/lake"
    with pytest.raises(jars.JarsMissing, match="jars --s3"):
        engine.spark_conf(lake)
    added = [jar.file_name for jar in (*jars.S3_JARS, LOG_STORE)]
    for name in added:
        (_cached_jars / name).write_bytes(b"a jar")
    command = engine.server_command(JAVA, tmp_path, port=15002, driver_memory="2g", lake_uri=lake)
    class_path = command[command.index("-cp") + 1].split(":")
    assert [Path(path).name for path in class_path[4:]] == added
    assert "-Dspark.delta.logStore.s3.impl=sda.platform.ConditionalPutLogStore" in command
    assert not any("logStore" in name for name in engine.spark_conf())


def test_session_url_carries_the_session_and_the_user() -> None:
    url = engine.session_url("sc://127.0.0.1:15002", "0c2c5e1e-0000-5000-8000-000000000000")
    assert url == "sc://127.0.0.1:15002/;session_id=0c2c5e1e-0000-5000-8000-000000000000;user_id=sda"


def test_a_fetched_jar_with_the_wrong_checksum_never_reaches_the_cache(
    _cached_jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Done:
        stdout = stderr = ""

    def deliver_something_else(command: list[str], **_: object) -> Done:
        pattern = command[command.index("-retrieve") + 1]
        name, version = command[command.index("-dependency") + 2 : command.index("-dependency") + 4]
        Path(pattern.replace("[artifact]", name).replace("[revision]", version).replace("[ext]", "jar")).write_bytes(
            b"x"
        )
        return Done()

    before = {path.name: path.read_bytes() for path in _cached_jars.iterdir()}
    monkeypatch.setattr(subprocess, "run", deliver_something_else)
    with pytest.raises(jars.JarsMissing, match="sha256 differs"):
        jars.fetch(JAVA)
    assert {path.name: path.read_bytes() for path in _cached_jars.iterdir()} == before


def test_each_lake_and_pool_has_a_session_of_its_own_that_never_changes__D1(tmp_path: Path) -> None:
    sessions = {session_id(pool, lake) for pool in WARM_POOLS for lake in ("/a/lake", "/b/lake", "s3://bucket/lake")}
    assert len(sessions) == 3 * len(WARM_POOLS)
    assert session_id("alerts", "/a/lake") == session_id("alerts", "/a/lake/") == "fbb136b1-2cea-5865-a7dc-7498fd03a3a6"


def test_the_platforms_session_is_that_of_its_lake__D1(tmp_path: Path) -> None:
    resources = [default_resources(Settings(home=tmp_path / name)) for name in ("a", "b")]
    assert [resource["lake"].spark.lake_uri for resource in resources] == [f"{tmp_path}/{n}/lake" for n in ("a", "b")]


def test_the_attempts_to_reach_an_engine_again_end_within_40_s() -> None:
    attempts = RECONNECTING.to_state()
    waits_ms = list(iter(attempts.next_attempt, None))
    assert len(waits_ms) == 10
    assert 30 < sum(waits_ms) / 1e3 < 40

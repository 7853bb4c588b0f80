"""How the Spark engine is configured and started: one place for the local server and the in-process session.

The engine is one Spark Connect server: a JVM on this machine, bound to loopback, that every run attaches to.
This module has its command and environment, and tests whether it listens. The supervisor starts, watches and restarts
it; `spark.session` opens sessions. This module neither imports PySpark nor starts a process.
"""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sda_platform.lake.object_store import is_object_store, spark_options
from sda_platform.private_home import own_umask
from sda_platform.spark.channel import with_token_file
from sda_platform.spark.class_archive import make_archive, use_archive
from sda_platform.spark.jars import jar_paths, spark_jars_directory
from sda_platform.spark.java import Java

HOST = "127.0.0.1"
USER_ID = "sda"
_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LANES = Path(__file__).with_name("pools.xml")
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]

_JAVA_OPENS = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""What Spark 4.1 opens when its own launcher starts it (org.apache.spark.launcher.JavaModuleOptions)."""


UNTIMED: Final = {"spark.sql.broadcastTimeout": "-1"}
"""What a join broadcasts may take as long as its run: a whole screening is computed there, and 300 s would end it."""


def spark_conf(lake_uri: str = "") -> dict[str, str]:
    """Return the configuration that the server and an in-process session share, for the lake at ``lake_uri``.

    Raises JarsMissing before set-up.
    """
    is_remote = is_object_store(lake_uri)
    partitions = str(min(max((os.cpu_count() or 2) // 2, 1), 16))
    return {
        "spark.jars": ",".join(str(path) for path in jar_paths(with_s3=is_remote)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Delta replays its log in 50 tasks by default, which costs seconds on a log of a few kilobytes.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": partitions,
        # VACUUM lists directories in ten thousand tasks by default: minutes, for tables that have one directory.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": partitions,
        # A batch of the alerts pool is small: planning again between the stages of a query costs more than it saves.
        "spark.sql.adaptive.enabled": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": _LANES.as_uri(),
        # Two fifths smaller than with the default, and what is written twice, read back and synced is as much less.
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
        **UNTIMED,
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        # Narrow numeric rows: fewer, larger batches suit the numpy kernels.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.python.worker.reuse": "true",
        "spark.python.daemon.module": "sda_platform.spark.python_daemon",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The driver's own ports are for executors, and run what is sent to them. None is elsewhere, and Spark makes a
        # secret for them: other users of the machine share its loopback.
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.authenticate": "true",
        **(spark_options() if is_remote else {}),
    }


def server_conf(directory: Path, port: int, lake_uri: str = "", host: str = HOST) -> dict[str, str]:
    """Return the server's configuration: `spark_conf`, where it takes calls, and its warehouse below ``directory``."""
    conf = {
        **spark_conf(lake_uri),
        # Twice as many slots as cores: a screening takes half of them, and whatever else comes finds one free.
        "spark.master": f"local[{2 * (os.cpu_count() or 2)}]",
        "spark.app.name": "sda-engine",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        # A pool's session stays for the engine's life: its next run shall find it warm.
        "spark.connect.session.manager.defaultSessionTimeout": "-1",
        "spark.hadoop.fs.permissions.umask-mode": f"{own_umask():03o}",
        # Hadoop's own start a process for each permission and each question for a link: thirty a commit.
        "spark.hadoop.fs.file.impl": "sda.platform.LocalFiles",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "sda.platform.LocalContext",
    }
    del conf["spark.jars"]  # on the server's class path from the start, so no session has to load them
    return conf


def server_command(
    java: Java,
    directory: Path,
    *,
    port: int,
    driver_memory: str,
    lake_uri: str = "",
    host: str = HOST,
    conf: Mapping[str, str] | None = None,
    archiving: Path | None = None,
) -> list[str]:
    """Return the command line of the server. ``driver_memory`` in JVM notation; ``conf`` replaces settings of
    `server_conf`.

    It takes calls at ``host``, an address or name of this machine. With ``archiving`` it leaves an archive of its
    classes there, instead of using the one that exists. Raises JarsMissing before set-up.
    """
    options = [f"-Xmx{driver_memory}", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+ExitOnOutOfMemoryError"]
    options += ["--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"]
    options += [f"--add-opens={name}=ALL-UNNAMED" for name in _JAVA_OPENS]
    options += ["-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true"]
    options += [
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
        f"-Djava.io.tmpdir={directory / 'scratch'}",
    ]
    options += [
        f"-D{name}={value}" for name, value in {**server_conf(directory, port, lake_uri, host), **(conf or {})}.items()
    ]
    options += make_archive(archiving) if archiving else use_archive(java)
    return [str(java.executable), *options, "-cp", class_path(lake_uri), _SERVER_CLASS]


def class_path(lake_uri: str = "") -> str:
    """Return the server's class path; what a lake in an object store needs is at its end. Raises JarsMissing."""
    return os.pathsep.join([f"{spark_jars_directory()}/*", *map(str, jar_paths(with_s3=is_object_store(lake_uri)))])


def server_environment(directory: Path, host: str = HOST) -> dict[str, str]:
    """Return what the server's environment adds: its workers are this Python, and can import this package."""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": python_path(),
        "SPARK_HOME": str(spark_jars_directory().parent),
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(directory / "scratch"),
    }


def python_path() -> str:
    """PYTHONPATH by which a child process imports this very package, installed or not."""
    return os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])


def remote_address(port: int, token_path: Path | None = None) -> str:
    """Return the Spark Connect address of a server on this machine, whose token is in the file at ``token_path``."""
    address = f"sc://{HOST}:{port}"
    return with_token_file(address, token_path) if token_path else address


def session_url(remote: str, session_id: str) -> str:
    """Where a client attaches to the session ``session_id`` (a UUID), making it if there is none.

    ``remote`` may have parameters: ``sc://host:port/;use_ssl=true``.
    """
    address, _, parameters = remote.partition(";")
    given = "".join(f";{each}" for each in parameters.split(";") if each)
    return f"{address.rstrip('/')}/{given};session_id={session_id};user_id={USER_ID}"


def is_listening(port: int, timeout_s: float = 1.0, host: str = HOST) -> bool:
    """True when something accepts connections on ``port`` of ``host``; the server does when ready."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s):
            return True
    except OSError:
        return False

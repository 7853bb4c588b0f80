"""Starts the Spark Connect server of a cluster, configured as the platform's own engine is:

    python -m sda_platform.spark.connect_server spark://host:7077 DIRECTORY [--host ADDRESS] [--port 15002]
        [--driver-memory 3g] [--conf NAME=VALUE]…

It replaces this process. DIRECTORY holds its warehouse and scratch. ADDRESS is this machine's, as the cluster and the
platforms reach it (default: loopback). Platforms attach with SDA_SPARK_REMOTE=sc://host:port.
The server refuses calls without the token in SPARK_CONNECT_AUTHENTICATE_TOKEN. Master, workers, executors and this
server prove to each other that they have the secret in _SPARK_AUTH_SECRET, and encrypt what they send. Master and
workers need the options that ``python -m sda_platform.spark.connect_server --daemon-options`` prints.
The executors run the Python that PYSPARK_PYTHON names (default: this one's path), which must have this package.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sda_platform.spark import engine
from sda_platform.spark.channel import TOKEN_VARIABLE
from sda_platform.spark.java import find_java

SECRET_VARIABLE: Final = "_SPARK_AUTH_SECRET"  # noqa: S105 - the name of Spark's variable
_SECRET: Final = re.compile("[0-9A-Za-z]{32,}")
_BETWEEN_MACHINES: Final = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
"""Settings of every process of the cluster."""


def daemon_options() -> str:
    """Return SPARK_DAEMON_JAVA_OPTS of master and workers: they refuse who has not the secret."""
    return " ".join(f"-D{name}={value}" for name, value in _BETWEEN_MACHINES.items())


def main(arguments: Sequence[str] | None = None) -> None:
    """Become the server. Raises JavaMissing, JarsMissing."""
    module = "python -m sda_platform.spark.connect_server"
    parser = argparse.ArgumentParser(module, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemon-options", action="version", version=daemon_options())
    parser.add_argument("master")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--host", default=engine.HOST)
    parser.add_argument("--port", type=int, default=15002)
    parser.add_argument("--driver-memory", default="3g")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE")
    chosen = parser.parse_args(arguments)
    if not os.environ.get(TOKEN_VARIABLE):
        parser.error(f"who reaches the server can execute code: set {TOKEN_VARIABLE}, for example openssl rand -hex 32")
    secret = os.environ.get(SECRET_VARIABLE, "")
    if not _SECRET.fullmatch(secret):
        parser.error(
            f"who reaches the cluster can execute code: set {SECRET_VARIABLE} to 32 letters and digits or more"
        )
    directory = chosen.directory.absolute()
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    lake_uri = os.environ.get("SDA_LAKE", "")
    added = dict(each.split("=", 1) for each in chosen.conf)
    command = engine.server_command(
        find_java(),
        directory,
        port=chosen.port,
        driver_memory=chosen.driver_memory,
        lake_uri=lake_uri,
        host=chosen.host,
        # Executors fetch the jars from the server, and report to the driver.
        conf={
            "spark.driver.host": chosen.host,
            "spark.driver.bindAddress": chosen.host,
            "spark.jars": engine.spark_conf(lake_uri)["spark.jars"],
            **added,
            **_BETWEEN_MACHINES,
            "spark.master": chosen.master,
        },
    )
    # The driver reads the secret from its settings; a command line would show it to every user of the machine.
    options = directory / "secret.options"
    options.touch(0o600)
    options.chmod(0o600)
    options.write_text(f"-Dspark.authenticate.secret={secret}\n")
    command.insert(1, f"@{options}")
    environment = {**os.environ, **engine.server_environment(directory, chosen.host)}
    environment["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    os.chdir(directory)
    os.execve(command[0], command, environment)  # noqa: S606 - a process manager then watches the server itself


if __name__ == "__main__":
    main()

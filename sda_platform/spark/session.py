"""The Spark resource: one setting chooses between the local engine, a remote one and a session in this process.

Runs attach to the engine with a session id that is constant per lake and pool. So the pool's Python workers and caches
stay warm from run to run; runs never stop that session. Platforms that share an engine share no session. Nothing here
starts an engine: a dead one fails the run at once with a message, because the Connect client by itself would retry for
minutes.
"""

import atexit
import os
import sys
import threading
import uuid
from typing import Any, cast

import dagster as dg
import grpc
from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession as ConnectSession

from sda_platform.lake.errors import EngineUnavailable
from sda_platform.spark import engine, statements
from sda_platform.spark.channel import TOKEN_VARIABLE, open_channel, token_file, without_token_file
from sda_platform.spark.pools import GIVING_WAY, WARM_POOLS
from sda_platform.spark.priority import give_way

POOL_TAG = "sda/pool"
IN_PROCESS = "local"
# A cold or busy engine needs seconds for its first statement.
_PROBE_TIMEOUT_S = 30.0
# Half a minute of attempts to reach an engine again; PySpark's default is ten minutes, while the pool is blocked.
RECONNECTING = DefaultPolicy(max_retries=10, max_backoff=5_000)


class SparkResource(LazyPySparkResource):
    """dagster-pyspark's lazy session, attached to the pool's engine session.

    ``remote``: ``sc://host:port``, or ``local`` for a classic session inside this process.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)
    remote: str = Field(description="sc://host:port of a Spark Connect engine, or 'local'.")
    lake_uri: str = Field(
        default="", description="Lake of the runs that use the session; each lake has its own session."
    )
    _pool: str = PrivateAttr(default="adhoc")
    _opening: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Read the pool from the run's tags and lower the priority of less urgent ones; open nothing.

        A session that is closed after its run is that of the run: an engine does not open a closed one again.
        """
        run = context.run
        if run is not None:
            pool = run.tags.get(POOL_TAG, "adhoc")
            self._pool = pool if pool in WARM_POOLS else f"{pool}-{run.run_id}"
        if self._pool in GIVING_WAY and self.remote != IN_PROCESS:
            give_way()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Close the session of a run without a pool; the session of a pool stays open for its next run."""
        if self._spark_session is not None and self._pool not in WARM_POOLS and self.remote != IN_PROCESS:
            self._spark_session.stop()
            self._spark_session = None

    def _init_session(self) -> None:
        with self._opening:  # the steps' thread and the one that anticipates their commits may both be first
            if self._spark_session is None:
                self._spark_session = attach(self.remote, self._pool, self.spark_config, lake_uri=self.lake_uri)


def attach(remote: str, pool: str, extra_conf: dict[str, Any] | None = None, *, lake_uri: str = "") -> SparkSession:
    """Return the session of ``pool`` and lake on the engine at ``remote``. Raises EngineUnavailable where none
    answers.
    """
    if remote == IN_PROCESS:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").appName("sda")
        for name, value in {**engine.spark_conf(lake_uri), **(extra_conf or {})}.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    if not remote:
        raise EngineUnavailable(
            "no Spark engine: start one with `sda up`, or set SDA_SPARK_REMOTE to sc://host:port or to 'local'"
        )
    try:
        probe(remote)
    except ValueError as error:
        raise EngineUnavailable(str(error)) from None
    # Not getOrCreate: that gives whichever session this process opened first, also one of another engine or lake.
    session = open_session(remote, session_id(pool, lake_uri))
    _left_to_stop(session)
    cast("Any", session).client.set_retry_policies([RECONNECTING])
    for name, value in {**engine.UNTIMED, **(extra_conf or {})}.items():
        session.conf.set(name, value)
    return session


class _Channels(DefaultChannelBuilder):
    """PySpark's own sends a token with TLS or to ``localhost`` only; here all channels are those of `channel`."""

    def __init__(self, remote: str, session: str) -> None:
        super().__init__(engine.session_url(without_token_file(remote), session))
        self._remote = remote

    def toChannel(self) -> grpc.Channel:  # noqa: N802 - PySpark's name
        return open_channel(self._remote, self._channel_options)


def open_session(remote: str, session: str) -> SparkSession:
    """Return the session with the id ``session`` (a UUID) on the engine at ``remote``, made if there is none."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as `SparkSession.builder.remote`, which takes no builder, does
    return cast("SparkSession", ConnectSession.builder.channelBuilder(_Channels(remote, session)).create())


def _left_to_stop(session: SparkSession) -> None:
    """Have neither a garbage collection nor the end of the process use ``session``; `stop` alone ends it.

    PySpark's finaliser shuts down the threads that all sessions of the process share. A garbage collection may run it
    while one of these threads is being started: that start and the shutdown then wait for each other for ever. At the
    end of a process, PySpark clears a cache of models, which nothing here uses. Without an engine that takes minutes.
    """
    connected = cast("Any", session)
    type(connected).__del__ = lambda _session: None
    atexit.unregister(connected.client._cleanup_ml_cache)


def session_id(pool: str, lake_uri: str) -> str:
    """Return the constant Connect session id of a pool of the platform whose lake is at ``lake_uri``: a hash of
    both.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"sda-platform/lake/{lake_uri.rstrip('/')}/pool/{pool}"))


def probe(remote: str) -> None:
    """Raise EngineUnavailable unless the engine at ``remote`` executes a trivial statement in time.

    Raises ValueError for what is no address of an engine.
    """
    try:
        with open_channel(remote) as channel:
            statements.ask(channel, _PROBE_TIMEOUT_S)
    except grpc.RpcError as error:
        details = getattr(error, "details", lambda: None)() or error
        if getattr(error, "code", lambda: None)() is grpc.StatusCode.UNAUTHENTICATED:
            state = "does not hold the engine's token" if os.environ.get(TOKEN_VARIABLE) else "is not set"
            given = f"{TOKEN_VARIABLE} {state}; it is sent to addresses with use_ssl=true only"
            if path := token_file(remote):
                given = f"{path} does not hold the engine's token"
            raise EngineUnavailable(
                f"the Spark engine at {remote} refuses this process ({details}): {given}"
            ) from error
        raise EngineUnavailable(
            f"the Spark engine at {remote} does not answer ({details}); `sda status` shows the platform's processes, "
            "`sda up` starts the local engine"
        ) from error

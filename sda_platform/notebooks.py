"""Access for notebooks: all tables as of one moment, in this process or on Spark, in one line."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sda_platform.clock import MissionClock
from sda_platform.history.moments import NOW, vector_of
from sda_platform.history.pinned_files import Projection
from sda_platform.history.pinned_session import PinnedSession, SqlLimits, pinned_session
from sda_platform.history.pinned_view import PinnedView
from sda_platform.lake.lake import Lake, without_session
from sda_platform.registry import TABLES_BY_NAME
from sda_platform.settings import Settings
from sda_platform.spark.session import attach


def open_archive(
    as_of: str = NOW, columns: Projection = "snapshot_time", settings: Settings | None = None
) -> PinnedView:
    """All tables as of one moment, without an engine: ``open_archive("423709bc@3").rows("FROM tracks").to_pandas()``.

    ``as_of`` as in `sda query`; ``settings`` default to those of the environment. Raises as `vector_of`.
    """
    lake, tables = _lake(settings or Settings()), TABLES_BY_NAME
    return PinnedView(lake, tables, vector_of(lake, tables, as_of), columns)


@contextmanager
def open_on_spark(
    remote: str,
    as_of: str = NOW,
    columns: Projection = "snapshot_time",
    settings: Settings | None = None,
    limits: SqlLimits | None = None,
) -> Iterator[PinnedSession]:
    """All tables as of one moment as views of a new session at ``remote`` (``sc://host:port``), through Spark Connect.

    What the views read is leased until the context ends. Raises as `vector_of`, and EngineUnavailable.
    """
    lake, tables = _lake(settings or Settings()), TABLES_BY_NAME
    vector, session = vector_of(lake, tables, as_of), attach(remote, f"notebook-{uuid.uuid4().hex}", lake_uri=lake.uri)
    try:
        with pinned_session(session, lake, tables, vector, projection=columns, limits=limits) as view:
            yield view
    finally:
        session.stop()


def _lake(settings: Settings) -> Lake:
    return Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)

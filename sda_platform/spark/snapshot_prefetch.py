"""Snapshot prefetch: the engine reads the Delta snapshot of a table before a run commits to it.

To write under a transaction id, Delta first rebuilds the table's state from its log: half a second even for a log of a
few kilobytes, nearly all of it planning. The engine keeps that state until the next commit. The tables that a
run may write are known at its start. So the engine rebuilds their states once a run's alerts are sent, for the next
run. At a run's start it does so for what is left, while the run reads and decodes. The prefetch is optional: a commit
without it reads the snapshot itself.
"""

import logging
import threading
from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from sda_platform.lake import delta_log

# Without an engine the client retries for minutes; the prefetch is then abandoned.
_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class SnapshotPrefetch:
    """Has the engine rebuild the states of the tables at ``uris``, in this order, from a thread of its own."""

    def __init__(self, session: Callable[[], SparkSession], uris: Iterable[str]) -> None:
        self._session = session
        self._uris = uris
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="anticipation", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when every snapshot was requested."""
        self._thread.join()

    def end(self) -> None:
        """Stop; return when the current request has ended."""
        self._ended.set()
        self._thread.join(_TIMEOUT_S)

    def _ask(self) -> None:
        for uri in self._uris:
            if self._ended.is_set():
                return
            try:
                if delta_log.newest_version(uri) >= 0:
                    # Of all statements the one that needs the state and reads no row.
                    self._session().sql(f"DESCRIBE DETAIL delta.`{uri}`").collect()
            except Exception as error:  # the commit will raise the same error
                logger.info("the state of %s was not anticipated: %s", uri, str(error).split("\n")[0])
                return

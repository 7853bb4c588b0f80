"""Delta's checkpoints, written through delta-rs after a commit that ends ten versions without one.

A checkpoint holds the state of a table at a version, so that readers need no older commits. Spark writes one within
every tenth commit, in a job that takes longer than the commit itself. Here it takes some hundredths of a second.
"""

import logging
from typing import Final

from deltalake.exceptions import DeltaError

from sda_platform.lake import delta_log
from sda_platform.lake.log import TableLog

_AFTER_VERSIONS: Final = 10
_LOGGER = logging.getLogger(__name__)


def write_if_due(log: TableLog, version: int) -> None:
    """Write the checkpoint of ``version``, a synced commit, if the last one is ten versions old or older.

    The log is whole without it, so a failure is logged, and the next commit tries again. Raises SyncFailed.
    """
    if version - delta_log.checkpointed_version(log.uri) < _AFTER_VERSIONS:
        return
    table = log.open(version)
    if table is None:
        return
    try:
        delta_log.forget_checksums_of_checkpoint(log.uri, version)
        table.create_checkpoint()
    except (DeltaError, OSError) as error:
        _LOGGER.warning("%s: Delta's checkpoint of version %d was not written: %s", log.table.name, version, error)
        return
    log.make_durable(version, version)

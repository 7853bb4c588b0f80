"""Forks: a table's state at one version, with its log, in another place; later commits there leave the table alone.

A fork shares the data files: on a local disk by hard links, in an object store by copies on the server.
"""

import json
import os
import shutil

import pyarrow.parquet as pq
from upath import UPath

from sda_platform.lake import delta_log, durable
from sda_platform.lake.log import TableLog
from sda_platform.lake.read_errors import gone

_CHECKPOINT = ".checkpoint.parquet"


def fork(source: TableLog, target: TableLog, version: int) -> None:
    """Make ``target``, which does not exist, what ``source`` was at ``version``. Raises VersionGone."""
    files = delta_log.data_files(source.uri, source.open(version))
    table = delta_log.table_directory(target.uri)
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    for file in files:
        try:
            _share(file, table / file.name)
        except FileNotFoundError:
            raise gone(source.table.name, version) from None
    for file in sorted(delta_log.log_directory(source.uri).iterdir(), key=lambda each: each.name):
        number = file.name.partition(".")[0]
        if number.isdigit() and int(number) <= version:
            _share(file, log / file.name)
    _point_to_checkpoint(log)


def _share(source: UPath, target: UPath) -> None:
    if not durable.is_synced_by_hand(source):
        source.fs.cp_file(source.path, target.path)
        return
    try:
        os.link(source.path, target.path)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(source.path, target.path)


def _point_to_checkpoint(log: UPath) -> None:
    """Name the newest checkpoint, from which readers search for the newest version."""
    names = sorted(file.name for file in log.iterdir() if file.name.endswith(_CHECKPOINT))
    whole = [name for name in names if name.removesuffix(_CHECKPOINT).isdigit()]
    if whole:
        with (log / whole[-1]).open("rb") as stream:
            actions = pq.ParquetFile(stream).metadata.num_rows
        pointer = {"version": int(whole[-1].removesuffix(_CHECKPOINT)), "size": actions}
        (log / delta_log.LAST_CHECKPOINT).write_text(json.dumps(pointer))

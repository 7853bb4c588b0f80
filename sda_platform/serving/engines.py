"""The engines by name: each passes the contract of `serving.engine`."""

from pathlib import Path

from sda_platform.serving.engine import Engine
from sda_platform.serving.errors import UnknownEngine

ENGINES = ("lmdb", "rocksdb")
"""Names of the engines: a memory-mapped B+ tree (LMDB), and a log-structured merge tree (RocksDB)."""


def open_engine(name: str, directory: Path) -> Engine:
    """The map in ``directory``, which is made where it is missing. Raises UnknownEngine."""
    directory.mkdir(parents=True, exist_ok=True)
    if name == "lmdb":
        from sda_platform.serving.lmdb_engine import LmdbEngine

        return LmdbEngine(directory)
    if name == "rocksdb":
        from sda_platform.serving.rocksdb_engine import RocksDbEngine

        return RocksDbEngine(directory)
    raise UnknownEngine(f"no serving engine is named {name!r}; there are: {', '.join(ENGINES)}")

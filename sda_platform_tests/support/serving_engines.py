"""The engines that keep the contract of `serving.engine`: the platform's RocksDB, and two that it was compared with."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sda_platform.serving.engine import Engine
from sda_platform.serving.rocksdb_engine import RocksDbEngine
from sda_platform_tests.support.lmdb_engine import LmdbEngine
from sda_platform_tests.support.sqlite_engine import SqliteEngine

ENGINES: Mapping[str, Callable[[Path], Engine]] = {"rocksdb": RocksDbEngine, "lmdb": LmdbEngine, "sqlite": SqliteEngine}

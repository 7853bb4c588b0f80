"""Generations of the serving index on disk: a new one is loaded while the old one serves, and takes over in one step.

`<root>/CURRENT` names the generation that serves. A crash while one is loaded leaves that name as it was, so the old
index continues to serve; files that the crash left are removed when the next generation is loaded. The index is
derived: where it is damaged or lost, it is loaded again from the catalogue.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from sda_platform import failpoints
from sda_platform.serving.errors import DamagedIndex
from sda_platform.serving.index import Binding, CatalogueIndex
from sda_platform.serving.rocksdb_engine import RocksDbEngine

_POINTER = "CURRENT"
_BEFORE = "lmdb"
"""Where earlier releases kept the index."""


class IndexStore:
    """The generations of the index below ``root``, each in an engine of its own. One process writes at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root / "rocksdb"

    def open(self) -> CatalogueIndex | None:
        """Return the index that serves; None where none was loaded. Raises DamagedIndex."""
        name = self._serving()
        if name is None:
            return None
        if not (self.root / name).is_dir():
            raise DamagedIndex(f"{self.root / name}: the index is gone; rebuild it")
        return CatalogueIndex(RocksDbEngine(self.root / name))

    def rebuild(self, binding: Binding, current: pa.Table, history: Iterable[pa.Table]) -> CatalogueIndex:
        """Load a new generation and have it serve; the old one is removed (an open reader keeps its files)."""
        self._sweep()
        name = f"generation-{self._next_number():06d}"
        with ExitStack() as on_failure:
            index = CatalogueIndex(RocksDbEngine(self.root / name))
            # RocksDB opens a directory once: left open, it would refuse the next try.
            on_failure.callback(index.engine.close)
            index.load(binding, current, history)
            failpoints.hit("serving.loaded")
            self._point_to(name)
            failpoints.hit("serving.switched")
            self._sweep()
            on_failure.pop_all()
        return index

    def _serving(self) -> str | None:
        try:
            return (self.root / _POINTER).read_text().strip() or None
        except FileNotFoundError:
            return None

    def _next_number(self) -> int:
        serving = self._serving()
        return int(serving.rpartition("-")[2]) + 1 if serving else 1

    def _point_to(self, name: str) -> None:
        partial = self.root / f"{_POINTER}.tmp"
        with partial.open("w") as file:
            file.write(name + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.root / _POINTER)
        directory = os.open(self.root, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _sweep(self) -> None:
        """Remove the generations that do not serve."""
        shutil.rmtree(self.root.with_name(_BEFORE), ignore_errors=True)
        serving = self._serving()
        for each in self.root.glob("generation-*"):
            if each.name != serving:
                shutil.rmtree(each, ignore_errors=True)
